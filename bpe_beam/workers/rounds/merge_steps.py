"""The steps of a merge round, as workers do them.

Apply the last round's merges to a word batch, and count its pairs; add up the pairs of a shard;
divide words into segments at infrequent pairs (`training/merges/rounds.py` says why); add up the
segments of a shard. A worker has in memory a batch of words, the round's merges or its frequent
pairs, and a table of about `TABLE_BYTES`; while a shard is added up, all of its pairs or segments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam import _native, progress
from bpe_beam.counts.part_files import added_up, read_part
from bpe_beam.counts.round_files import (
    BATCH_WORDS,
    PACKED_SCHEMA,
    PAIR_SCHEMA,
    Columns,
    PackedCounts,
    PairCounts,
    checked,
    columns_of,
    from_stream,
    read_words,
    symbols_of,
    to_stream,
    write_words,
)
from bpe_beam.counts.word_table import weighted_total
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.merges.initial_vocabulary import InitialVocabulary
from bpe_beam.training.merges.symbols import find_symbols, refuse_spelled
from bpe_beam.training.merges.words import Words, gather_words
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.rounds.task import (
    CANDIDATES,
    FREQUENT_PAIRS,
    STAGE,
    TABLE_BYTES,
    BlockReference,
    Blocks,
    BlocksFile,
    PairShard,
    PartSlice,
    RoundTask,
    SegmentedStats,
    SegmentStats,
    WordBatch,
    WordBatchTask,
    WordsTask,
    floor_of,
    once_a_round,
    read_blocks,
    read_frequent,
    require_all,
    round_file,
    seen_file,
    size_of,
    unique_blocks,
)
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult

Applied = tuple[int, str, Iterable[tuple[int, BlockReference]]]
"""A word batch's number, the word batch as JSON with its file's URL, and the blocks of its pairs by
shard."""


def _write_file(task: RoundTask, name: str, data: bytes) -> FileInfo:
    task.folder.storage.write_bytes(task.folder.path(name), data)
    return FileInfo.of(name, data)


def see_part(task: RoundTask, recipe: BpeRecipe | WordPieceRecipe, element: str) -> TaskResult:
    """Write the symbols of the words in a part of the counts, for the initial vocabulary."""
    require_visible(task.folder.storage, task.folder.url, task.counts)
    part, parts = int(element), len(task.manifest.parts)
    batches = _part_words(task, PartSlice(part, 0, 1))
    seen = find_symbols(gather_words(batches, in_order_of_place=False), recipe)
    file = _write_file(task, seen_file(part, parts), seen.to_bytes())
    task.folder.write_receipt(task_name("seen", part, parts), [file], {})
    progress.report(STAGE, tasks=1)
    return TaskResult([element])


def apply_merges(task: RoundTask, element: str) -> TaskResult:
    """Write a word batch with the last merges applied, and count its pairs; see `Applied`."""
    word_batch = WordBatchTask.from_json(element)
    number = word_batch.number
    round_ = round_file(task)
    pairs = PairCounts()
    words_task = task_name("words", number, task.word_batches)
    name = f"state/{words_task}.arrow"
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        blocks = BlocksFile(task, stack, "pairs", number)
        writer = stack.enter_context(write_words(task.folder.storage, task.folder.path(name)))
        for columns in _next_words(task, word_batch, totals):
            writer.write(columns)
            totals["weight"] += _weight_of(columns)
            totals["width"] += _width_of_columns(columns, round_.widths)
            pairs.add_words(columns, round_.widths, round_.max_length)
            blocks.take(pairs, above=TABLE_BYTES)
        blocks.take(pairs)
    file = writer.info(name)
    written = WordBatch(
        words=writer.words,
        symbols=writer.symbols,
        blocks=len(blocks.references),
        file=file,
        **totals,
    )
    task.folder.write_receipt(words_task, [file, blocks.info()], written)
    progress.report(STAGE, tasks=1)
    travelling = replace(written, file=replace(file, name=task.folder.path(name)))
    return TaskResult(
        [(number, travelling.to_json(), blocks.references)],
        {"words_rewritten": writer.words, "pair_block_bytes": blocks.info().bytes},
    )


def _weight_of(columns: Columns) -> int:
    """Return the number of symbols of all words, each word weighted by its count."""
    data, offsets, counts = columns
    ends = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])] < 0x80
    before = np.concatenate([[0], np.cumsum(ends)])
    lengths = np.diff(before[offsets - offsets[0]])
    return weighted_total(lengths, counts)


def _next_words(
    task: RoundTask, word_batch: WordBatchTask, totals: Counter[str]
) -> Iterator[Columns]:
    """Yield the words of a word batch for this round; add the dropped words to the totals."""
    if word_batch.file is None:
        for part in word_batch.slices:
            yield from _spelled(task, totals, part)
        return
    url, sha256 = word_batch.file
    rewriter = once_a_round(task, "rewriter", lambda: _native.Rewriter(round_file(task).batches))
    for columns in read_words(task.folder.storage, url, sha256):
        with checked(url):
            rewritten = rewriter.rewrite(*columns)
        totals["singles"] += _total(columns[2]) - _total(rewritten[2])
        yield rewritten


def _total(counts: npt.NDArray[np.int64]) -> int:
    return weighted_total(np.ones_like(counts), counts)


def _spelled(task: RoundTask, totals: Counter[str], part: PartSlice) -> Iterator[Columns]:
    """Yield the words of a slice of a part of the counts, as packed symbols."""
    storage = task.folder.storage
    start = once_a_round(
        task,
        "start",
        lambda: InitialVocabulary.from_bytes(
            read_hashed(storage, *task.start), source=task.start[0]
        ),
    )
    minimum = 1 if task.singles else 2
    for batch in _part_words(task, part):
        counted = gather_words([batch], in_order_of_place=False)
        refuse_spelled(counted, task.ambiguous)
        if task.segments is not None:
            counted = Words(*task.segments.segments(counted).columns()[:3])
        words = start.symbols(counted)
        lengths = np.diff(words.offsets)
        kept = lengths >= minimum
        totals["singles"] += _total(words.counts[(lengths == 1) & ~kept])
        totals["all_words"] += _total(words.counts)
        totals["all_bytes"] += counted.total_bytes
        symbols, offsets, counts = words.ids, words.offsets, words.counts
        if not kept.all():
            symbols = symbols[offsets[0] : offsets[-1]][np.repeat(kept, lengths)]
            offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
            counts = counts[kept]
        yield (*_native.pack_symbols(symbols, offsets), counts)


def _part_words(task: RoundTask, wanted: PartSlice) -> Iterator[pa.RecordBatch]:
    yield from part_slice(task, wanted).to_batches(max_chunksize=BATCH_WORDS)


def part_slice(task: WordsTask, wanted: PartSlice) -> pa.Table:
    """Return the words of a slice of a part of the counts."""
    part = task.manifest.parts[wanted.part]
    words = read_part(task.folder.storage, task.counts, task.manifest, part)
    table = added_up(words, task.manifest.with_places, task.factors)
    begin, end = (table.num_rows * i // wanted.slices for i in (wanted.number, wanted.number + 1))
    return table.slice(begin, end - begin)


def sum_pairs(task: RoundTask, element: Blocks) -> TaskResult:
    """Add up the pairs of a shard, write its frequent and its best ones, and return it as JSON."""
    pairs = PairCounts()
    shard, references = element[0], unique_blocks("pairs", element[1])
    for data in read_blocks(task.folder.storage, references):
        pairs.add_block(from_stream(data, PAIR_SCHEMA, "a block of pairs"))
    settings = round_file(task)
    frequent, floor = pairs.frequent(task.floor, FREQUENT_PAIRS // task.shards)
    best = pairs.best(CANDIDATES, settings.ranks)
    files = [
        _write_file(task, f"pairs/{task_name(kind, shard, task.shards)}.arrow", to_stream(batch))
        for kind, batch in (("hot", frequent), ("best", best))
    ]
    best_count = int(best.column("count")[0].as_py()) if best.num_rows else 0
    summed = PairShard(files[0], floor, best_count, len(pairs), len(references))
    task.folder.write_receipt(task_name("pairs", shard, task.shards), files, summed)
    return TaskResult([summed.to_json()])


def segment_words(
    task: RoundTask,
    word_batches: list[tuple[int, str]],
    shards: list[str],
    element: tuple[int, Iterable[str]],
) -> TaskResult:
    """Divide the words of a word batch into segments, count them, and return their blocks."""
    number, (text, *others) = element
    if others:
        raise DataError(f"the runner returned word batch {number} twice")
    words = WordBatch.from_json(text).file
    pairs = once_a_round(task, "pairs", lambda: _frequent_pairs(task, word_batches, shards))
    table = PackedCounts()
    with ExitStack() as stack:
        blocks = BlocksFile(task, stack, "segments", number)
        for columns in read_words(task.folder.storage, words.name, words.sha256):
            if pairs is not None:
                with checked(words.name):
                    columns = pairs.segments(*columns, singles=task.singles)
            table.add(columns)
            blocks.take(table, above=TABLE_BYTES)
        blocks.take(table)
    stats = SegmentedStats(len(blocks.references))
    name = task_name("cut", number, task.word_batches)
    task.folder.write_receipt(name, [blocks.info()], stats)
    progress.report(STAGE, tasks=1)
    return TaskResult(blocks.references, {"segment_block_bytes": blocks.info().bytes})


def _frequent_pairs(
    task: RoundTask, word_batches: list[tuple[int, str]], shards: list[str]
) -> _native.FrequentPairs | None:
    """Return the frequent pairs of all shards; None if the driver needs no segments."""
    rows = list(map(PairShard.from_json, shards))
    batches = [WordBatch.from_json(text) for _, text in word_batches]
    require_all("pairs", batches, rows)
    floor = floor_of(task, size_of(batches), rows)
    if floor is None:
        return None
    left, right, _ = read_frequent(task, rows, floor)
    return _native.FrequentPairs(left, right)


def _width_of_columns(columns: Columns, widths: npt.NDArray[np.uint32] | None) -> int:
    """Return the number of characters that packed symbols cover; see `Size.width`."""
    if widths is None:
        return symbols_of(columns)
    symbols, _ = _native.unpack_symbols(*columns[:2])
    return int(widths[symbols].sum(dtype=np.int64))


def add_segments(task: RoundTask, element: Blocks) -> TaskResult:
    """Add up the segments of a shard, write them, and return the name of the task."""
    table = PackedCounts()
    shard, references = element[0], unique_blocks("segments", element[1])
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
    return TaskResult([name])
