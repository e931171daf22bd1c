"""A piece of the state, words as packed symbols, to the next: the last round's merges applied.

A worker holds a batch of words, a table of pairs of `TABLE_BYTES`, and what the round applies; in
the first round, one part of the counts as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
from bpe_beam.training.initial_vocabulary import Start, see_for
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.special_token_conflicts import refuse_spelled
from bpe_beam.training.words import gather_words, weighted_total
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.rounds.segment_words import width_of_columns
from bpe_beam.workers.rounds.task import (
    TABLE_BYTES,
    Held,
    PieceWork,
    RoundTask,
    Written,
    open_blocks,
    piece_file,
    read_file,
    round_file,
    seen_file,
    write_file,
)
from bpe_beam.workers.split_task import piece_name, require_seen

_rewriter: Held[_native.Rewriter] = Held()
_start: Held[Start] = Held()


def see_part(task: RoundTask, recipe: BpeRecipe | WordPieceRecipe, part: int) -> None:
    """Leaves what the words of a part of the counts are made of, for `training.start.start_of`."""
    require_seen(task.receipts.storage, task.receipts.url, task.counts)
    batches = _part_words(task, part, 0, 1)
    seen = see_for(gather_words(batches, in_order_of_place=False), recipe)
    parts = len(task.manifest.parts)
    data = seen.to_bytes()
    file = write_file(task, seen_file(part, parts), data)
    task.receipts.write_receipt(piece_name("seen", part, parts), [file], {})
    progress.report(task.stage, pieces=1)


def rewrite_piece(task: RoundTask, element: str) -> Written:
    """Writes the next state of a piece, and counts its pairs."""
    work = PieceWork.from_json(element)
    given = round_file(task)
    pairs = PairCounts()
    name = piece_file(work.number, task.pieces)
    total = width = 0
    read = _Read()
    with ExitStack() as stack:
        blocks = open_blocks(task, stack, "pairs", work.number)
        writer = stack.enter_context(write_words(task.receipts.storage, task.url(name)))
        for columns in _next_words(task, work, read):
            writer.write(columns)
            total += weight_of(columns)
            width += width_of_columns(columns, given.widths)
            pairs.add_words(columns, given.widths, given.max_length)
            if pairs.memory_bytes > TABLE_BYTES:
                blocks.write(pairs.blocks(task.shards))
                pairs.clear()
        blocks.write(pairs.blocks(task.shards))
    facts = {
        "words": writer.words,
        "symbols": writer.symbols,
        "width": width,
        "weight": total,
        **asdict(read),
        "blocks": len(blocks.places),
    }
    file = writer.facts(name)
    piece = piece_name("words", work.number, task.pieces)
    task.receipts.write_receipt(piece, [file, blocks.facts()], facts)
    progress.report(task.stage, pieces=1)
    source = {"url": task.url(name), "sha256": file["sha256"], **facts}
    return Written(
        PieceWork(work.number, source).to_json(),
        blocks.places,
        {measures.WORDS_REWRITTEN: writer.words, measures.PAIR_BLOCK_BYTES: blocks.bytes},
    )


def weight_of(columns: Columns) -> int:
    """Symbols of all words, each word weighted by its count."""
    data, offsets, counts = columns
    ends = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])] < 0x80
    before = np.concatenate([[0], np.cumsum(ends)])
    lengths = np.diff(before[offsets - offsets[0]])
    return weighted_total(lengths, counts)


@dataclass
class _Read:
    """What is no longer to be seen in the words written; each word weighted by its count.

    Attributes:
        singles: Words dropped, since they are one symbol now.
        all_words: Words of the counts, in the first round.
        all_bytes: Their bytes.
    """

    singles: int = 0
    all_words: int = 0
    all_bytes: int = 0


def _next_words(task: RoundTask, work: PieceWork, read: _Read) -> Iterator[Columns]:
    source, storage = work.source, task.receipts.storage
    if "parts" in source:
        for part in source["parts"]:
            yield from _spelled(task, read, *part)
        return
    rewriter = _rewriter.get(
        (task.receipts.url, task.given), lambda: _native.Rewriter(round_file(task).batches)
    )
    for columns in read_words(storage, source["url"], source["sha256"]):
        with checked(source["url"]):
            rewritten = rewriter.rewrite(*columns)
        read.singles += _total(columns[2]) - _total(rewritten[2])
        yield rewritten


def _total(counts: npt.NDArray[np.int64]) -> int:
    return weighted_total(np.ones_like(counts), counts)


def _spelled(
    task: RoundTask, read: _Read, part: int, number: int, slices: int
) -> Iterator[Columns]:
    """The words of a slice of a part of the counts, as packed symbols."""
    url, _ = task.start
    storage = task.receipts.storage
    start = _start.get(
        task.start, lambda: Start.from_bytes(read_file(storage, *task.start), source=url)
    )
    least = 1 if task.singles else 2
    for batch in _part_words(task, part, number, slices):
        counted = gather_words([batch], in_order_of_place=False)
        refuse_spelled(counted, task.ambiguous)
        words = start.symbols(counted)
        lengths = np.diff(words.offsets)
        kept = lengths >= least
        read.singles += _total(words.counts[(lengths == 1) & ~kept])
        read.all_words += _total(words.counts)
        read.all_bytes += words.word_bytes
        yield _packed(words.ids, words.offsets, words.counts, kept)


def _part_words(task: RoundTask, number: int, piece: int, pieces: int) -> Iterator[pa.RecordBatch]:
    part = task.manifest.parts[number]
    table = read_part(task.receipts.storage, task.counts, task.manifest, part)
    if part.sources is not None:
        table = added_up(table, part, task.manifest.with_places, task.factors)
    begin, end = (table.num_rows * i // pieces for i in (piece, piece + 1))
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
