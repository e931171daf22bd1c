"""The order of documents that `ReadDocuments` read: a batch has its split and its first document.

A `PCollection` has no order, so each batch carries its place in the schema, through all steps that
keep the schema's metadata.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from bpe_beam import json_structs

_KEY = b"bpe_beam.documents"


class BatchOrder(Struct, frozen=True, omit_defaults=True):
    """The place of a batch of documents in the corpus.

    Attributes:
        split: The number of its split in the plan.
        first: The number of its first document in the split.
        rows: The number of its documents when it was read.
        text_files: The text files of the split, whose documents have positions as ids.
    """

    split: int
    first: int
    rows: int
    text_files: tuple[str, ...] = ()


def with_order(batch: pa.RecordBatch, order: BatchOrder) -> pa.RecordBatch:
    """Return a batch with its place in its schema's metadata."""
    value = msgspec.json.encode(order)
    return batch.replace_schema_metadata({**(batch.schema.metadata or {}), _KEY: value})


def order_of(batch: Any) -> BatchOrder | None:
    """Return the place of a batch or table; None if it has none."""
    value = (batch.schema.metadata or {}).get(_KEY)
    return None if value is None else json_structs.decode(value, BatchOrder)
