"""Blocks of pairs and of segments on storage: a file for each word batch, read by shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from zlib import crc32

import pyarrow as pa

from bpe_beam.counts.packed_words import to_stream
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.workers.rounds.task import (
    BlockReference,
    PairShard,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
)
from bpe_beam.workers.split_task import task_name

Blocks = tuple[int, Iterable[BlockReference]]
"""A shard's number, and where its blocks are."""


class BlocksFile:
    """The file of a word batch's blocks, one after another, and their references by shard.

    It appears whole when the stack ends.
    """

    def __init__(self, task: RoundTask, stack: ExitStack, kind: str, number: int) -> None:
        self._name = f"work/{task_name(kind, number, task.word_batches)}.blocks"
        self._url = task.folder.path(self._name)
        self._file = HashingFile(stack.enter_context(task.folder.storage.create(self._url)))
        self.references: list[tuple[int, BlockReference]] = []

    def write(self, blocks: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        """Append blocks with their shards."""
        for shard, block in blocks:
            data = to_stream(block)
            start = self._file.bytes
            self._file.write(data)
            self.references.append((shard, (self._url, start, len(data), crc32(data))))

    def info(self) -> FileInfo:
        """Return the description of the bytes written so far."""
        return FileInfo.written(self._name, self._file)


def read_blocks(storage: Storage, references: Iterable[BlockReference]) -> Iterator[bytes]:
    """Yield the bytes of blocks, each file opened once."""
    opened = ""
    with ExitStack() as stack:
        for url, start, size, crc in sorted(references):
            if url != opened:
                stack.close()
                file = stack.enter_context(storage.open(url))
                opened = url
            file.seek(start)
            data = file.read(size)
            if crc32(data) != crc:
                raise DataError(f"{url}: the block at byte {start} is not the one that was written")
            yield data


def unique_blocks(kind: str, references: Iterable[BlockReference]) -> list[BlockReference]:
    """Return the blocks of a shard, after a check that none appears twice."""
    blocks = list(references)
    if len(set(blocks)) < len(blocks):
        raise DataError(
            f"the runner returned a block of {kind} twice: run the same command again, which "
            "continues from the last round"
        )
    return blocks


def require_all(
    kind: str,
    written: Iterable[WordBatch | SegmentedStats],
    added: Iterable[PairShard | SegmentStats],
) -> None:
    """Check that the runner lost no block: shards must have added up all that were written."""
    blocks, sums = sum(row.blocks for row in written), sum(row.blocks for row in added)
    if blocks != sums:
        raise DataError(
            f"the workers wrote {blocks:,} blocks of {kind}, and the runner returned {sums:,}: run "
            "the same command again, which continues from the last round"
        )
