"""A pass over the words of the counts, for the training of pieces, as workers do it.

The first pass reads slices of the counts, and writes the segments of their words, which the later
ones read. Every pass writes the sum of each piece, and the driver adds the sums up
(`training/unigram/passes.py` says why they may be added).
A worker has in memory one partition of the counts, a million words, and the pieces.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from bpe_beam import progress
from bpe_beam.counts.round_files import read_words, write_words
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.learn import model_of, piece_training, totals_of
from bpe_beam.training.merges.native_trainer import WordTotals
from bpe_beam.training.merges.words import Words, gather_words
from bpe_beam.training.recipe import MinGramRecipe, UnigramRecipe
from bpe_beam.training.unigram.passes import PiecePass, PieceState, added, sums_to_bytes
from bpe_beam.training.unigram.segments import SegmentRules
from bpe_beam.workers.rounds.merge_steps import part_slice
from bpe_beam.workers.rounds.task import STAGE, WordBatchTask, WordsTask, once_a_round
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult

BATCH_WORDS = 1 << 19
"""The words that are cut into segments at once, up to twice as many; then sums are added."""


class PassTask(WordsTask, frozen=True):
    """The settings of a pass for its workers.

    Attributes:
        pieces: URL and SHA-256 of the file of the pieces, see `PieceState`.
        sizes: As in `PieceState`.
    """

    recipe: UnigramRecipe | MinGramRecipe
    segments: SegmentRules
    pieces: tuple[str, str]
    sizes: tuple[int, ...]


def sum_pieces(task: PassTask, element: str) -> TaskResult:
    """Write the sum of each piece over a word batch, and its segments if they are not in a file."""
    batch = WordBatchTask.from_json(element)
    one = once_a_round(task, "pass", lambda: _pass(task))
    sums = np.zeros((len(one.pieces), 2), np.uint64)
    storage, files = task.folder.storage, []
    if batch.file is None:
        name = f"state/{task_name('segments', batch.number, task.word_batches)}.arrow"
        with write_words(storage, task.folder.path(name)) as writer:
            for words in _words(task, batch):
                segments = task.segments.segments(words)
                writer.write(segments.columns()[:3])
                sums = added(sums, one.sums(segments))
        files.append(writer.info(name))
    else:
        for columns in read_words(storage, *batch.file):
            sums = added(sums, one.sums(task.segments.same_segments(Words(*columns))))
    receipt = task_name("sums", batch.number, task.word_batches)
    name, data = f"state/{receipt}.arrow", sums_to_bytes(sums)
    storage.write_bytes(task.folder.path(name), data)
    task.folder.write_receipt(receipt, [FileInfo.of(name, data), *files], {})
    progress.report(STAGE, tasks=1)
    return TaskResult([receipt])


def count_tokens(task: PassTask, element: str) -> TaskResult:
    """Record the number of tokens of a word batch, with the vocabulary of the last pass."""
    batch = WordBatchTask.from_json(element)
    training = piece_training(task.recipe)
    model = once_a_round(
        task, "model", lambda: model_of(training.result(_state(task)), task.recipe)
    )
    totals = WordTotals(0, 0, 0, 0)
    for words in _words(task, batch):
        more = totals_of(model, words)
        totals = WordTotals(*map(sum, zip(astuple(totals), astuple(more), strict=True)))
    receipt = task_name("tokens", batch.number, task.word_batches)
    task.folder.write_receipt(receipt, [], totals)
    progress.report(STAGE, tasks=1)
    return TaskResult([receipt])


def _state(task: PassTask) -> PieceState:
    storage, (url, sha256) = task.folder.storage, task.pieces
    require_visible(storage, task.folder.url, task.counts)
    return PieceState.from_bytes(read_hashed(storage, url, sha256), task.sizes, url)


def _pass(task: PassTask) -> PiecePass:
    one = piece_training(task.recipe).next_pass(_state(task))
    assert one is not None  # or the driver would not have begun a pass
    return one


def _words(task: PassTask, batch: WordBatchTask) -> Iterator[Words]:
    """Yield the words of a word batch, at least `BATCH_WORDS` at once except for the last."""
    tables: list[pa.Table] = []
    for part in batch.slices:
        table = part_slice(task, part)
        for begin in range(0, table.num_rows, BATCH_WORDS):
            tables.append(table.slice(begin, BATCH_WORDS))
            if sum(map(len, tables)) >= BATCH_WORDS:
                yield gather_words(tables, in_order_of_place=False)
                tables.clear()
    if tables:
        yield gather_words(tables, in_order_of_place=False)
