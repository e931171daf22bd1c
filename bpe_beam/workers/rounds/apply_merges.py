"""Apply the last round's merges to a word batch, and count its pairs.

A worker has in memory a batch of words, a table of pairs of `TABLE_BYTES`, and the round's merges;
in the first round, one part of the counts as well.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    Columns,
    checked,
    read_words,
    write_words,
)
from bpe_beam.counts.pair_counts import PairCounts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.initial_vocabulary import InitialVocabulary, find_symbols_for
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.special_token_conflicts import refuse_spelled
from bpe_beam.training.words import gather_words, weighted_total
from bpe_beam.workers import metric_names
from bpe_beam.workers.rounds.segment_words import width_of_columns
from bpe_beam.workers.rounds.task import (
    TABLE_BYTES,
    CountsSource,
    PartSlice,
    RoundCache,
    RoundTask,
    WordBatch,
    WordBatchStats,
    WordBatchTask,
    Written,
    open_blocks,
    round_file,
    seen_file,
    words_file,
    write_file,
)
from bpe_beam.workers.split_task import require_visible, task_name

_rewriter: RoundCache[_native.Rewriter] = RoundCache()
_start: RoundCache[InitialVocabulary] = RoundCache()


def see_part(task: RoundTask, recipe: BpeRecipe | WordPieceRecipe, part: int) -> None:
    """Write which symbols the words of a part of the counts have, for the initial vocabulary.

    Args:
        task: The first round.
        recipe: What is trained.
        part: The part's number.
    """
    require_visible(task.folder.storage, task.folder.url, task.counts)
    batches = _part_words(task, PartSlice(part, 0, 1))
    seen = find_symbols_for(gather_words(batches, in_order_of_place=False), recipe)
    parts = len(task.manifest.parts)
    data = seen.to_bytes()
    file = write_file(task, seen_file(part, parts), data)
    task.folder.write_receipt(task_name("seen", part, parts), [file], {})
    progress.report(task.stage, pieces=1)


def apply_merges(task: RoundTask, element: str) -> tuple[WordBatch, Written]:
    """Write a word batch with the last round's merges applied, and count its pairs.

    Args:
        task: The round.
        element: The word batch, see `WordBatchTask`.

    Returns:
        The word batch as it is now, named by its URL; and the blocks of its pairs.

    Raises:
        DataError: Storage fails, or a file is damaged.
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
            width += width_of_columns(columns, round_.widths)
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
    progress.report(task.stage, pieces=1)
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
    source = word_batch.source
    if isinstance(source, CountsSource):
        for part in source.slices:
            yield from _spelled(task, read, part)
        return
    rewriter = _rewriter.get(
        (task.folder.url, task.given), lambda: _native.Rewriter(round_file(task).batches)
    )
    for columns in read_words(task.folder.storage, source.url, source.sha256):
        with checked(source.url):
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
    table = read_part(task.folder.storage, task.counts, task.manifest, part)
    if part.sources is not None:
        table = added_up(table, part, task.manifest.with_places, task.factors)
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
