"""The frequent pairs and the best pairs of a round, as the files of its shards have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.counts.packed_words import from_stream
from bpe_beam.counts.pair_counts import PAIR_SCHEMA
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.merges.rounds import ShardPairs, threshold
from bpe_beam.training.merges.trainer_memory import Size
from bpe_beam.workers.rounds.blocks import require_all
from bpe_beam.workers.rounds.task import CANDIDATES, PairShard, RoundTask, WordBatch, size_of

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right and count of each pair."""

_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))


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


def frequent_pairs(
    task: RoundTask, word_batches: list[tuple[int, str]], shards: list[str]
) -> _native.FrequentPairs | None:
    rows = list(map(PairShard.from_json, shards))
    batches = [WordBatch.from_json(text) for _, text in word_batches]
    require_all("pairs", batches, rows)
    floor = floor_of(task, size_of(batches), rows)
    if floor is None:
        return None
    left, right, _ = read_frequent(task, rows, floor)
    return _native.FrequentPairs(left, right)
