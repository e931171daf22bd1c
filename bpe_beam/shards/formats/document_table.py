"""Formats whose shards are one table of documents; see `table_schema.py` for its columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import BinaryIO

import pyarrow as pa

from bpe_beam.shards.formats.interface import (
    MAX_DOCUMENT_TOKENS,
    ShardFormat,
)
from bpe_beam.shards.formats.table_access import TableAccess
from bpe_beam.shards.formats.table_check import TableCheck
from bpe_beam.shards.formats.table_groups import TableFile
from bpe_beam.shards.formats.table_reader import TableReader
from bpe_beam.shards.formats.table_writer import OpenWriter, TableWriter


def table_format(
    name: str,
    suffix: str,
    open_writer: OpenWriter,
    open_reader: Callable[[BinaryIO | pa.NativeFile], TableFile],
    *,
    maps: bool = False,
) -> ShardFormat:
    """Return the format of shards that are files of one kind."""
    writer = partial(TableWriter, suffix=suffix, open_file=open_writer)
    return ShardFormat(
        name=name,
        suffixes=(suffix,),
        max_document_tokens=MAX_DOCUMENT_TOKENS,
        writer=writer,
        reader=partial(TableReader, suffix=suffix, open_file=open_reader),
        check=partial(TableCheck, suffix=suffix),
        labelled_writer=writer,
        access=partial(TableAccess, suffix=suffix, open_file=open_reader, maps=maps),
    )
