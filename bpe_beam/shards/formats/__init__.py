"""The formats of token shards: a module for each format, by its name.

Importing this registry imports no format: `bpe-beam --help` needs the names only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_beam.shards.formats.interface import ShardFormat

SHARD_FORMATS = (
    "megatron",
    "parquet",
    "arrow",
    "datatrove",
    "dolma",
    "nanogpt",
    "llmc",
    "flat",
    "megatron_preprocess_data",
    "tfrecord",
    "arrayrecord",
    "mds",
    "litdata",
)
"""The names of all formats. Each names the module of this folder that defines its `FORMAT`."""

DEFAULT_SHARD_FORMAT = SHARD_FORMATS[0]

PLAIN_FORMAT = "flat"  # the format of documents that a job reads again

LABELLED_FORMAT = "arrow"  # the same with labels

TRAINER_COLUMNS = ("attention_mask", "labels", "position_ids", "loss_mask", "seq_start_id")
"""Columns that tables of documents can have for trainers, see `table_schema.py`."""

DOCUMENT_COLUMNS = TRAINER_COLUMNS[:2]  # the columns that rows of one document can have, too


def shard_format(name: str) -> ShardFormat:
    """Return the format with this name, one of SHARD_FORMATS."""
    if name not in SHARD_FORMATS:
        raise ValueError(f"format must be one of {', '.join(SHARD_FORMATS)}, got {name!r}")
    format_: ShardFormat = importlib.import_module(f"{__name__}.{name}").FORMAT
    return format_
