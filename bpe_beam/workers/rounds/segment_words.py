"""Pairs added up, words cut at their cold boundaries, segments added up.

`training/rounds.py` says why.

A worker holds the round's hot pairs, and one table: of at most `TABLE_BYTES` where it cuts, of one
shard's pairs or segments where it adds up.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from bpe_beam import _native, progress
from bpe_beam.counts.packed_words import (
    PACKED_SCHEMA,
    Columns,
    PackedCounts,
    checked,
    columns_of,
    from_stream,
    read_words,
    symbols_of,
    to_stream,
    write_words,
)
from bpe_beam.counts.pair_counts import PAIR_SCHEMA, PairCounts
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.training.rounds import ShardPairs, threshold
from bpe_beam.training.segments import width_of
from bpe_beam.training.trainer_limits import Size
from bpe_beam.workers import metric_names
from bpe_beam.workers.rounds.task import (
    CANDIDATES,
    HOT_PAIRS,
    TABLE_BYTES,
    BlockReference,
    RoundCache,
    RoundTask,
    Written,
    open_blocks,
    read_blocks,
    read_file,
    round_file,
    write_file,
)
from bpe_beam.workers.rounds.word_batches import (
    PairShard,
    PairStats,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    size_of,
)
from bpe_beam.workers.split_task import task_name

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right and count of each pair."""

_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))
_cached_hot_pairs: RoundCache[_native.FrequentPairs | None] = RoundCache()


def sum_pairs(task: RoundTask, shard: int, references: Iterable[BlockReference]) -> PairShard:
    """Add up the pairs of a shard, and write its frequent pairs and its best ones.

    Args:
        task: The round.
        shard: The shard's number.
        references: Where its blocks are.

    Raises:
        DataError: A block came twice, or is damaged; storage fails.
    """
    pairs = PairCounts()
    references = once("pairs", references)
    for data in read_blocks(task.folder.storage, references):
        pairs.add_block(from_stream(data, PAIR_SCHEMA, "a block of pairs"))
    given = round_file(task)
    hot, floor = pairs.frequent(task.floor, HOT_PAIRS // task.shards)
    best = pairs.best(CANDIDATES, given.ranks)
    files = [
        write_file(task, f"pairs/{task_name('hot', shard, task.shards)}.arrow", to_stream(hot)),
        write_file(task, f"pairs/{task_name('best', shard, task.shards)}.arrow", to_stream(best)),
    ]
    most = int(best.column("count")[0].as_py()) if best.num_rows else 0
    stats = PairStats(floor, most, len(pairs), hot.num_rows, len(references))
    task.folder.write_receipt(task_name("pairs", shard, task.shards), files, asdict(stats))
    return PairShard(files[0], stats)


def segment_words(
    task: RoundTask,
    number: int,
    word_batch: WordBatch,
    word_batches: Iterable[WordBatch],
    shards: Iterable[PairShard],
) -> Written:
    """Cut the words of a word batch into segments, and count them.

    Args:
        task: The round.
        number: The word batch's number.
        word_batch: The word batch, as `apply_merges` returned it.
        word_batches: All word batches; read once a process and round.
        shards: All shards of pairs, as `sum_pairs` returned them; likewise.

    Raises:
        DataError: The runner lost a block of pairs, a file is damaged, or storage fails.
    """
    storage = task.folder.storage
    hot = _cached_hot_pairs.get(
        (task.folder.url, task.given), lambda: _hot_pairs(task, word_batches, shards)
    )
    table = PackedCounts()
    symbols = 0
    words = word_batch.file
    with ExitStack() as stack:
        blocks = open_blocks(task, stack, "segments", number)
        for columns in read_words(storage, words.name, words.sha256):
            with checked(words.name):
                cut = columns if hot is None else hot.segments(*columns, singles=task.singles)
            symbols += symbols_of(cut)
            table.add(cut)
            if table.memory_bytes > TABLE_BYTES:
                blocks.write(table.blocks(task.shards))
                table.clear()
        blocks.write(table.blocks(task.shards))
    stats = SegmentedStats(symbols, len(blocks.references))
    name = task_name("cut", number, task.word_batches)
    task.folder.write_receipt(name, [blocks.info()], asdict(stats))
    progress.report(task.stage, pieces=1)
    size = blocks.info().bytes
    return Written(blocks.references, {metric_names.SEGMENT_BLOCK_BYTES: size})


def once(kind: str, references: Iterable[BlockReference]) -> list[BlockReference]:
    """Return where the blocks of a shard are.

    Args:
        kind: `pairs` or `segments`.
        references: Where they are, as the runner gave it.

    Raises:
        DataError: One is there twice, so that it would be counted twice.
    """
    found = list(references)
    if len(set(found)) < len(found):
        raise DataError(
            f"the runner gave a block of {kind} twice: the same command goes on from the last round"
        )
    return found


def require_all(kind: str, made: Iterable[int], added: Iterable[int]) -> None:
    """Refuse sums that lack blocks, which workers made and the runner lost.

    That no block came twice has been checked for each shard.

    Args:
        kind: `pairs` or `segments`.
        made: The number of blocks that each word batch made.
        added: The number of blocks that each shard added up.

    Raises:
        DataError: The sums differ.
    """
    blocks, sums = sum(made), sum(added)
    if blocks != sums:
        raise DataError(
            f"the workers made {blocks:,} blocks of {kind}, and the runner handed on {sums:,}: the "
            "same command goes on from the last round"
        )


def width_of_columns(columns: Columns, widths: npt.NDArray[np.uint32] | None) -> int:
    """The characters that packed symbols cover, or how many these are; see `room.Size`."""
    if widths is None:
        return symbols_of(columns)
    symbols, _ = _native.unpack_symbols(columns[0], columns[1])
    return width_of(symbols, widths)


def floor_of(task: RoundTask, words: Size, shards: Iterable[ShardPairs]) -> int | None:
    """The threshold that a round is cut by; None: nothing is cut, since all words fit the driver.

    Every worker and the driver find the same.

    Args:
        task: The round.
        words: Of the state.
        shards: What is known of each shard's pairs.
    """
    if task.room.holds(words):
        return None
    return threshold(list(shards), task.divisor)


def read_hot(task: RoundTask, files: Iterable[FileInfo], floor: int) -> Pairs:
    """Return all pairs that count at least `floor`: left, right, count.

    Args:
        task: The round.
        files: The files of frequent pairs of all shards.
        floor: The least count.
    """
    found = [_read_pairs(task, file) for file in files]
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *found, strict=True))
    kept = counts >= floor
    return left[kept], right[kept], counts[kept]


def read_best(
    task: RoundTask, files: Iterable[FileInfo], ranks: npt.NDArray[np.uint32] | None
) -> tuple[Pairs, bool]:
    """Return the best pairs of all shards, and whether there are no others.

    Args:
        task: The round.
        files: The files of best pairs of all shards.
        ranks: See `Vocabulary.ranks`.

    Returns:
        The pairs in the tie rule's order, as far as that is certain.
    """
    found = [_read_pairs(task, file) for file in files]
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *found, strict=True))
    places = np.repeat(np.arange(len(found)), [len(shard[0]) for shard in found])
    by = (left, right) if ranks is None else (ranks[left], ranks[right])
    order = np.lexsort((by[1], by[0], -counts))
    # After the last of a list that was broken off, that shard's own may come.
    broken = [i for i, shard in enumerate(found) if len(shard[0]) == CANDIDATES]
    lasts = [int(np.flatnonzero(places[order] == i)[-1]) for i in broken]
    sure = order[: min(lasts, default=len(order)) + 1]
    return (left[sure], right[sure], counts[sure]), not broken


def _read_pairs(task: RoundTask, file: FileInfo) -> Pairs:
    url = task.folder.path(file.name)
    data = read_file(task.folder.storage, url, file.sha256)
    batch = from_stream(data, PAIR_SCHEMA, url)
    left, right, counts = (batch.column(name).to_numpy() for name in PAIR_SCHEMA.names)
    return left, right, counts


def _hot_pairs(
    task: RoundTask, word_batches: Iterable[WordBatch], shards: Iterable[PairShard]
) -> _native.FrequentPairs | None:
    rows = list(shards)
    words = [word_batch.stats for word_batch in word_batches]
    require_all("pairs", (row.blocks for row in words), (row.stats.blocks for row in rows))
    known = [ShardPairs(row.stats.floor, row.stats.most) for row in rows]
    floor = floor_of(task, size_of(words), known)
    if floor is None:
        return None
    left, right, _ = read_hot(task, [row.hot for row in rows], floor)
    return _native.FrequentPairs(left, right)


def add_segments(task: RoundTask, shard: int, references: Iterable[BlockReference]) -> str:
    """Add up the segments of a shard, write them, and return the name of the task.

    Args:
        task: The round.
        shard: The shard's number.
        references: Where its blocks are.

    Raises:
        DataError: A block came twice, or is damaged; storage fails.
    """
    table = PackedCounts()
    references = once("segments", references)
    for data in read_blocks(task.folder.storage, references):
        table.add(columns_of(from_stream(data, PACKED_SCHEMA, "a block of segments")))
    widths = round_file(task).widths
    width = 0
    name = task_name("segments", shard, task.shards)
    file = f"segments/{name}.arrow"
    with write_words(task.folder.storage, task.folder.path(file)) as writer:
        for _, block in table.blocks(1):
            columns = columns_of(block)
            writer.write(columns)
            width += width_of_columns(columns, widths)
    stats = SegmentStats(writer.words, writer.symbols, width, len(references))
    task.folder.write_receipt(name, [writer.info(file)], asdict(stats))
    return name
