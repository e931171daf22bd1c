"""The steps of a merge round, as workers do them.

Apply the last round's merges to a word batch, and count its pairs; add up the pairs of a shard;
divide words into segments at infrequent pairs (`training/rounds.py` says why); add up the segments
of a shard. A worker has in memory a batch of words, the round's merges or its frequent pairs, and a
table of about `TABLE_BYTES`; while a shard is added up, all of its pairs or segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam import _native, progress
from bpe_beam.counts.artifact import added_up, read_part
from bpe_beam.counts.packed_words import (
    BATCH_WORDS,
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
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.initial_vocabulary import InitialVocabulary
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.rounds import ShardPairs, threshold
from bpe_beam.training.seen_symbols import find_symbols
from bpe_beam.training.special_token_conflicts import refuse_spelled
from bpe_beam.training.trainer_limits import Size
from bpe_beam.training.words import gather_words, weighted_total
from bpe_beam.workers import metric_names
from bpe_beam.workers.rounds.task import (
    CANDIDATES,
    FREQUENT_PAIRS,
    STAGE,
    TABLE_BYTES,
    BlockReference,
    PairShard,
    PairStats,
    PartSlice,
    RoundCache,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    WordBatchStats,
    WordBatchTask,
    Written,
    open_blocks,
    read_blocks,
    round_file,
    seen_file,
    size_of,
    words_file,
    write_file,
)
from bpe_beam.workers.split_task import require_visible, task_name

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right and count of each pair."""

_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))

_rewriter: RoundCache[_native.Rewriter] = RoundCache()
_start: RoundCache[InitialVocabulary] = RoundCache()
_cached_pairs: RoundCache[_native.FrequentPairs | None] = RoundCache()


def see_part(task: RoundTask, recipe: BpeRecipe | WordPieceRecipe, part: int) -> None:
    """Write which symbols the words of a part of the counts have, for the initial vocabulary.

    Args:
        task: The first round.
        recipe: What is trained.
        part: The part's number.
    """
    require_visible(task.folder.storage, task.folder.url, task.counts)
    batches = _part_words(task, PartSlice(part, 0, 1))
    seen = find_symbols(gather_words(batches, in_order_of_place=False), recipe)
    parts = len(task.manifest.parts)
    data = seen.to_bytes()
    file = write_file(task, seen_file(part, parts), data)
    task.folder.write_receipt(task_name("seen", part, parts), [file], {})
    progress.report(STAGE, pieces=1)


def apply_merges(task: RoundTask, element: str) -> tuple[WordBatch, Written]:
    """Write a word batch with the last round's merges applied, and count its pairs.

    Args:
        task: The round.
        element: The word batch, see `WordBatchTask`.

    Returns:
        The word batch as it is now, named by its URL; and the blocks of its pairs.

    Raises:
        DataError: A file is damaged.
        UsageError: A word spells a special token.
    """
    word_batch = WordBatchTask.from_json(element)
    round_ = round_file(task)
    pairs = PairCounts()
    name = words_file(word_batch.number, task.word_batches)
    total = width = 0
    read = _Read()
    with ExitStack() as stack:
        blocks = open_blocks(task, stack, "pairs", word_batch.number)
        writer = stack.enter_context(write_words(task.folder.storage, task.folder.path(name)))
        for columns in _next_words(task, word_batch, read):
            writer.write(columns)
            total += _weight_of(columns)
            width += _width_of_columns(columns, round_.widths)
            pairs.add_words(columns, round_.widths, round_.max_length)
            if pairs.memory_bytes > TABLE_BYTES:
                blocks.write(pairs.blocks(task.shards))
                pairs.clear()
        blocks.write(pairs.blocks(task.shards))
    stats = WordBatchStats(
        words=writer.words,
        symbols=writer.symbols,
        width=width,
        weight=total,
        **asdict(read),
        blocks=len(blocks.references),
    )
    file = writer.info(name)
    task.folder.write_receipt(
        task_name("words", word_batch.number, task.word_batches), [file, blocks.info()], stats
    )
    progress.report(STAGE, pieces=1)
    counts = {
        metric_names.WORDS_REWRITTEN: writer.words,
        metric_names.PAIR_BLOCK_BYTES: blocks.info().bytes,
    }
    travelling = WordBatch.of(replace(file, name=task.folder.path(name)), stats)
    return travelling, Written(blocks.references, counts)


def _weight_of(columns: Columns) -> int:
    """Return the number of symbols of all words, each word weighted by its count."""
    data, offsets, counts = columns
    ends = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])] < 0x80
    before = np.concatenate([[0], np.cumsum(ends)])
    lengths = np.diff(before[offsets - offsets[0]])
    return weighted_total(lengths, counts)


@dataclass
class _Read:
    """Numbers that the written words no longer show; each word weighted by its count.

    Attributes:
        singles: Words dropped because they are one symbol now.
        all_words: Words of the counts, in the first round.
        all_bytes: Their bytes.
    """

    singles: int = 0
    all_words: int = 0
    all_bytes: int = 0


def _next_words(task: RoundTask, word_batch: WordBatchTask, read: _Read) -> Iterator[Columns]:
    if word_batch.file is None:
        for part in word_batch.slices:
            yield from _spelled(task, read, part)
        return
    url, sha256 = word_batch.file
    rewriter = _rewriter.get(
        (task.folder.url, task.given), lambda: _native.Rewriter(round_file(task).batches)
    )
    for columns in read_words(task.folder.storage, url, sha256):
        with checked(url):
            rewritten = rewriter.rewrite(*columns)
        read.singles += _total(columns[2]) - _total(rewritten[2])
        yield rewritten


def _total(counts: npt.NDArray[np.int64]) -> int:
    return weighted_total(np.ones_like(counts), counts)


def _spelled(task: RoundTask, read: _Read, part: PartSlice) -> Iterator[Columns]:
    """Yield the words of a slice of a part of the counts, as packed symbols."""
    url, _ = task.start
    storage = task.folder.storage
    start = _start.get(
        task.start,
        lambda: InitialVocabulary.from_bytes(read_hashed(storage, *task.start), source=url),
    )
    least = 1 if task.singles else 2
    for batch in _part_words(task, part):
        counted = gather_words([batch], in_order_of_place=False)
        refuse_spelled(counted, task.ambiguous)
        words = start.symbols(counted)
        lengths = np.diff(words.offsets)
        kept = lengths >= least
        read.singles += _total(words.counts[(lengths == 1) & ~kept])
        read.all_words += _total(words.counts)
        read.all_bytes += counted.total_bytes
        yield _packed(words.ids, words.offsets, words.counts, kept)


def _part_words(task: RoundTask, wanted: PartSlice) -> Iterator[pa.RecordBatch]:
    part = task.manifest.parts[wanted.part]
    whole = read_part(task.folder.storage, task.counts, task.manifest, part)
    table = added_up(whole, part, task.factors)
    begin, end = (table.num_rows * i // wanted.slices for i in (wanted.number, wanted.number + 1))
    yield from table.slice(begin, end - begin).to_batches(max_chunksize=BATCH_WORDS)


def _packed(
    symbols: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    kept: npt.NDArray[np.bool_],
) -> Columns:
    if not kept.all():
        lengths = np.diff(offsets)
        symbols = symbols[offsets[0] : offsets[-1]][np.repeat(kept, lengths)]
        offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
        counts = counts[kept]
    data, bounds = _native.pack_symbols(symbols, offsets)
    return data, bounds, counts


def sum_pairs(task: RoundTask, shard: int, references: Iterable[BlockReference]) -> PairShard:
    """Add up the pairs of a shard, and write its frequent pairs and its best ones.

    Args:
        task: The round.
        shard: The shard's number.
        references: Its blocks.

    Returns:
        The shard as it travels to the workers that segment words.

    Raises:
        DataError: A block is there twice, or is damaged.
    """
    pairs = PairCounts()
    references = _once("pairs", references)
    for data in read_blocks(task.folder.storage, references):
        pairs.add_block(from_stream(data, PAIR_SCHEMA, "a block of pairs"))
    settings = round_file(task)
    frequent, floor = pairs.frequent(task.floor, FREQUENT_PAIRS // task.shards)
    best = pairs.best(CANDIDATES, settings.ranks)
    files = [
        write_file(task, f"pairs/{task_name(kind, shard, task.shards)}.arrow", to_stream(batch))
        for kind, batch in (("hot", frequent), ("best", best))
    ]
    most = int(best.column("count")[0].as_py()) if best.num_rows else 0
    stats = PairStats(floor, most, len(pairs), len(references))
    task.folder.write_receipt(task_name("pairs", shard, task.shards), files, stats)
    return PairShard(files[0], stats)


def segment_words(
    task: RoundTask,
    number: int,
    word_batch: WordBatch,
    word_batches: Iterable[WordBatch],
    shards: Iterable[PairShard],
) -> Written:
    """Divide the words of a word batch into segments, and count them.

    Args:
        task: The round.
        number: The word batch's number.
        word_batch: The word batch, as `apply_merges` returned it.
        word_batches: All word batches; read once a process and round.
        shards: All shards of pairs, as `sum_pairs` returned them; read once, too.

    Returns:
        The blocks of its segments, and metrics.

    Raises:
        DataError: The runner lost a block of pairs, or a file is damaged.
    """
    storage = task.folder.storage
    pairs = _cached_pairs.get(
        (task.folder.url, task.given), lambda: _frequent_pairs(task, word_batches, shards)
    )
    table = PackedCounts()
    words = word_batch.file
    with ExitStack() as stack:
        blocks = open_blocks(task, stack, "segments", number)
        for columns in read_words(storage, words.name, words.sha256):
            with checked(words.name):
                segments = (
                    columns if pairs is None else pairs.segments(*columns, singles=task.singles)
                )
            table.add(segments)
            if table.memory_bytes > TABLE_BYTES:
                blocks.write(table.blocks(task.shards))
                table.clear()
        blocks.write(table.blocks(task.shards))
    stats = SegmentedStats(len(blocks.references))
    name = task_name("cut", number, task.word_batches)
    task.folder.write_receipt(name, [blocks.info()], stats)
    progress.report(STAGE, pieces=1)
    size = blocks.info().bytes
    return Written(blocks.references, {metric_names.SEGMENT_BLOCK_BYTES: size})


def _once(kind: str, references: Iterable[BlockReference]) -> list[BlockReference]:
    """Return the blocks of a shard, after a check that none is there twice."""
    found = list(references)
    if len(set(found)) < len(found):
        raise DataError(
            f"the runner returned a block of {kind} twice: run the same command again, which "
            "continues from the last round"
        )
    return found


def require_all(kind: str, made: Iterable[int], added: Iterable[int]) -> None:
    """Check that the runner lost no block: shards must have added up all that were written.

    Args:
        kind: `pairs` or `segments`.
        made: The number of blocks of each word batch.
        added: The number of blocks that each shard added up.

    Raises:
        DataError: The sums differ.
    """
    blocks, sums = sum(made), sum(added)
    if blocks != sums:
        raise DataError(
            f"the workers wrote {blocks:,} blocks of {kind}, and the runner returned {sums:,}: run "
            "the same command again, which continues from the last round"
        )


def _width_of_columns(columns: Columns, widths: npt.NDArray[np.uint32] | None) -> int:
    """Return the number of characters that packed symbols cover; see `Size.width`."""
    if widths is None:
        return symbols_of(columns)
    symbols, _ = _native.unpack_symbols(columns[0], columns[1])
    return int(widths[symbols].sum(dtype=np.int64))


def floor_of(task: RoundTask, words: Size, shards: Iterable[ShardPairs]) -> int | None:
    """Return the least count of a frequent pair; None if all words fit the driver undivided.

    Every worker and the driver get the same value.

    Args:
        task: The round.
        words: The size of all word batches.
        shards: The counts of each shard's pairs.
    """
    if task.room.fits(words):
        return None
    return threshold(list(shards), task.divisor)


def read_frequent(task: RoundTask, files: Iterable[FileInfo], floor: int) -> Pairs:
    """Return all pairs that count at least `floor`: left, right, count.

    Args:
        task: The round.
        files: The files of frequent pairs of all shards.
        floor: The least count.
    """
    left, right, counts = _joined(_read_pairs(task, file) for file in files)
    kept = counts >= floor
    return left[kept], right[kept], counts[kept]


def read_best(
    task: RoundTask, files: Iterable[FileInfo], ranks: npt.NDArray[np.uint32] | None
) -> tuple[Pairs, bool]:
    """Return the best pairs in the tie rule's order, as far as it is certain; and whether these are
    all pairs.

    Args:
        task: The round.
        files: The files of best pairs of all shards.
        ranks: See `Vocabulary.ranks`.
    """
    found = [_read_pairs(task, file) for file in files]
    left, right, counts = _joined(found)
    shards = np.repeat(np.arange(len(found)), [len(pairs[0]) for pairs in found])
    by = (left, right) if ranks is None else (ranks[left], ranks[right])
    order = np.lexsort((by[1], by[0], -counts))
    # A shard that lists CANDIDATES pairs may have more, which sort after its last listed one. So
    # the order is certain up to the first of these last pairs.
    partial = [i for i, pairs in enumerate(found) if len(pairs[0]) == CANDIDATES]
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


def _frequent_pairs(
    task: RoundTask, word_batches: Iterable[WordBatch], shards: Iterable[PairShard]
) -> _native.FrequentPairs | None:
    rows, batches = list(shards), list(word_batches)
    require_all("pairs", (row.blocks for row in batches), (row.stats.blocks for row in rows))
    known = [ShardPairs(row.stats.floor, row.stats.most) for row in rows]
    floor = floor_of(task, size_of(batches), known)
    if floor is None:
        return None
    left, right, _ = read_frequent(task, [row.frequent for row in rows], floor)
    return _native.FrequentPairs(left, right)


def add_segments(task: RoundTask, shard: int, references: Iterable[BlockReference]) -> str:
    """Add up the segments of a shard, and write them.

    Args:
        task: The round.
        shard: The shard's number.
        references: Its blocks.

    Returns:
        The name of the task.
    """
    table = PackedCounts()
    references = _once("segments", references)
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
            width += _width_of_columns(columns, widths)
    stats = SegmentStats(writer.words, writer.symbols, width, len(references))
    task.folder.write_receipt(name, [writer.info(file)], stats)
    return name
