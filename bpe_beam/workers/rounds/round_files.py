"""Files of a round on storage: blocks of pairs and segments, and the pairs of each shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bpe_beam.counts.packed_words import (
    PAIR_SCHEMA,
    PackedCounts,
    PairCounts,
    from_stream,
    to_stream,
)
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile, read_hashed
from bpe_beam.training.merges.rounds import ShardPairs, threshold
from bpe_beam.training.merges.words import Size
from bpe_beam.workers.rounds.task import (
    CANDIDATES,
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

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right and count of each pair."""

_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))


class BlocksFile:
    """The file of a word batch's blocks, one after another, and their references by shard.

    It appears whole when the stack ends.
    """

    def __init__(self, task: RoundTask, stack: ExitStack, kind: str, number: int) -> None:
        self._name = f"work/{task_name(kind, number, task.word_batches)}.blocks"
        self._url = task.folder.path(self._name)
        self._file = HashingFile(stack.enter_context(task.folder.storage.create(self._url)))
        self._shards = task.shards
        self.references: list[tuple[int, BlockReference]] = []

    def take(self, table: PairCounts | PackedCounts, above: int = 0) -> None:
        """Move the content of a table to the file, if it takes more than `above` bytes."""
        if table.memory_bytes > above:
            for shard, block in table.blocks(self._shards):
                data = to_stream(block)
                start = self._file.bytes
                self._file.write(data)
                self.references.append((shard, (self._url, start, len(data), crc32(data))))
            table.clear()

    def info(self) -> FileInfo:
        """Return the description of the bytes written so far."""
        return FileInfo.written(self._name, self._file)


def read_blocks(storage: Storage, references: Iterable[BlockReference]) -> Iterator[bytes]:
    """Yield the bytes of blocks, each file opened once."""
    for url, blocks in groupby(sorted(references), itemgetter(0)):
        with storage.open(url) as file:
            for _, start, size, crc in blocks:
                file.seek(start)
                data = file.read(size)
                if crc32(data) != crc:
                    problem = f"the block at byte {start} is not the one that was written"
                    raise DataError(f"{url}: {problem}")
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


def floor_of(task: RoundTask, words: Size, shards: Iterable[PairShard]) -> int | None:
    """Return the minimum count of a frequent pair; None if all words fit the driver undivided.

    Every worker and the driver get the same value.
    """
    if task.room.fits(words):
        return None
    return threshold([ShardPairs(row.floor, row.best_count) for row in shards], task.divisor)


def read_frequent(task: RoundTask, shards: Iterable[PairShard], floor: int) -> Pairs:
    """Return all pairs that count at least `floor`: left, right, count."""
    left, right, counts = _joined(_read_pairs(task, row.frequent) for row in shards)
    kept = counts >= floor
    return left[kept], right[kept], counts[kept]


def read_best(
    task: RoundTask, files: Iterable[FileInfo], ranks: npt.NDArray[np.uint32] | None
) -> tuple[Pairs, bool]:
    """Return the best pairs in the tie rule's order, as far as it is certain; and whether no
    other pair exists.
    """
    listed = [_read_pairs(task, file) for file in files]
    left, right, counts = _joined(listed)
    shards = np.repeat(np.arange(len(listed)), [len(pairs[0]) for pairs in listed])
    by = (left, right) if ranks is None else (ranks[left], ranks[right])
    order = np.lexsort((by[1], by[0], -counts))
    # A shard that lists CANDIDATES pairs may have more, which sort after its last listed one. So
    # the order is certain up to the first of these last pairs.
    partial = [i for i, pairs in enumerate(listed) if len(pairs[0]) == CANDIDATES]
    lasts = [int(np.flatnonzero(shards[order] == i)[-1]) for i in partial]
    sure = order[: min(lasts, default=len(order)) + 1]
    return (left[sure], right[sure], counts[sure]), not partial


def _read_pairs(task: RoundTask, file: FileInfo) -> Pairs:
    url = task.folder.path(file.name)
    batch = from_stream(read_hashed(task.folder.storage, url, file.sha256), PAIR_SCHEMA, url)
    left, right, counts = (batch.column(name).to_numpy() for name in PAIR_SCHEMA.names)
    return left, right, counts


def _joined(pairs: Iterable[Pairs]) -> Pairs:
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *pairs, strict=True))
    return left, right, counts
