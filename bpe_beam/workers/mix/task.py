"""The tasks that mix documents, and their files of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.mixture_documents import InputFolder
from bpe_beam.shards.mixture_tables import SourceRange, Table
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.arrange.block_files import BlockFileWriter, blocks_of
from bpe_beam.workers.arrange.task import ArrangeTask, PartSums

RECORDS = 1 << 20
"""A group of identities, or a range of keys, has at most about so many documents: a worker has all
of them in memory."""


@dataclass(frozen=True)
class MixTask:
    """What the tasks of a mixture share; plain and picklable.

    `arrange` describes the new shards; its `shards` are the shards that are read.
    """

    arrange: ArrangeTask
    folders: tuple[InputFolder, ...]
    names: tuple[str, ...]  # the sources of the mixture, by number
    by_id: tuple[bool, ...]  # whether the documents of a source are known by their ids
    seed: int
    duplicates: str
    groups: int
    identities: str = "ids"  # in the names of tasks, which differ by `by_id`
    ranges: tuple[SourceRange | None, ...] = ()
    partitions: int = 0  # the number of ranges of keys

    @property
    def folder(self) -> TaskFolder:
        """The folder of the run."""
        return self.arrange.folder


class InputShard(Struct, frozen=True):
    """A task: a shard that is read, by the number of its folder; `index` counts over all."""

    index: int
    folder: int
    name: str
    files: tuple[FileInfo, ...]


class Group(Struct, frozen=True):
    """A task: a group of identities; `numbered` is the URL of its file if that is needed."""

    index: int
    numbered: str = ""


class KeyRange(Struct, frozen=True):
    """A task: a range of keys.

    `before` has the tokens of earlier ranges by slot, see `mixture_tables.slots`; `sums` the taken
    documents before it; `selected` the URL of the file of its documents.
    """

    index: int
    before: tuple[int, ...] = ()
    sums: tuple[PartSums, ...] = ()
    selected: str = ""


class IndexStats(Struct, frozen=True):
    """The stats in the receipt of an indexed shard: the sources that lack a usable id."""

    made_of: str
    without_id: tuple[int, ...]


class GroupStats(Struct, frozen=True):
    """The stats in the receipt of a numbered group.

    `sums` has (documents, tokens) by part and source; `dropped` documents by source; `repeated` the
    sources that have an id twice.
    """

    made_of: str
    sums: tuple[tuple[tuple[Count, Count], ...], ...]
    dropped: tuple[Count, ...]
    repeated: tuple[int, ...]


class RecordBlocks(BlockFileWriter):
    """Writes a block file of records, under a name of the run's folder; a context manager."""

    def __init__(self, folder: TaskFolder, task: str, dtype: np.dtype[Any], blocks: int) -> None:
        self._name = f"{WORK}/{task}.bin"
        self._stored = folder.storage.create(folder.path(self._name))
        super().__init__(self._stored.__enter__(), _schema(dtype), blocks)

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._stored.__exit__(*exception)

    def add_table(self, table: Table, blocks: Any) -> None:
        """Add records; `blocks` is int64[n], the block of each."""
        schema = _schema(table.dtype)
        buffers = [None, pa.py_buffer(table.tobytes())]
        column = pa.Array.from_buffers(schema.field(0).type, len(table), buffers)
        self.add(pa.RecordBatch.from_arrays([column], schema=schema), blocks)

    def info(self) -> FileInfo:
        """Return the file when all is written."""
        file: HashingFile = self.file
        return FileInfo.written(self._name, file)


def read_blocks(
    storage: Storage, urls: Iterable[str], dtype: np.dtype[Any], number: int, blocks: int
) -> Table:
    """Return the records of one block of all files."""
    parts = [np.empty(0, dtype)]
    for batches in blocks_of(storage, sorted(urls), _schema(dtype), number, blocks):
        for batch in batches:
            data, column = batch.column(0).buffers()[1], batch.column(0)
            size = dtype.itemsize
            parts.append(np.frombuffer(data, dtype, len(column), column.offset * size))
    return np.concatenate(parts)


def write_table(folder: TaskFolder, task: str, table: Sequence[Any] | Any) -> FileInfo:
    """Write an array as a file of a task."""
    name, data = f"{WORK}/{task}.bin", np.ascontiguousarray(table).tobytes()
    folder.storage.write_bytes(folder.path(name), data)
    return FileInfo.of(name, data)


def read_table(storage: Storage, url: str, dtype: Any) -> Any:
    """Return an array from such a file."""
    return np.frombuffer(storage.read_bytes(url), dtype)


@cache
def _schema(dtype: np.dtype[Any]) -> pa.Schema:
    return pa.schema([("record", pa.binary(dtype.itemsize))])
