"""Training in this process: merges of BPE and WordPiece, and the words of word level."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bpe_beam import _native
from bpe_beam.errors import require
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training import trainer_memory
from bpe_beam.training.initial_vocabulary import (
    assign_ids,
    begin_vocabulary,
    needs_seen,
    require_room,
)
from bpe_beam.training.learning_work import LearnerState, LearningWork
from bpe_beam.training.native_trainer import (
    TrainingResult,
    Vocabulary,
    WordTotals,
    find_merges,
    make_learner,
)
from bpe_beam.training.recipe import BpeRecipe, MergingRecipe, Recipe, WordLevelRecipe
from bpe_beam.training.seen_symbols import find_symbols
from bpe_beam.training.trainer_memory import size_of
from bpe_beam.training.words import Words

# Fewer merges leave most words split, whatever the score.
_MANY_MERGES = 1_000
# The greatest share of the boundaries within words that may be left, as measured in
# docs/algorithm.md.
_MOST_UNJOINED = 1 / 3

Progress = Callable[[int, LearningWork], None]
"""Called at the beginning and after some merges, with the number of merges since the last call, and
the work."""


def learn(
    words: Words,
    recipe: Recipe,
    on_progress: Progress | None = None,
    *,
    base_tokenizer: Tokenizer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrainingResult:
    """Learn a vocabulary from words; docs/algorithm.md defines the merges.

    A base tokenizer encodes the words first. New special tokens follow its ids, then the characters
    that it lacks, then what is learned.

    Returns:
        All entries and all merges, those of the base tokenizer first. WordPiece encodes without
        the merges.
    """
    if isinstance(recipe, WordLevelRecipe):
        return _learn_word_level(words, recipe)
    reporter = None
    if on_progress is not None:
        reporter = _Reporter(words, recipe, base_tokenizer, on_progress, clock)
    seen = find_symbols(words, recipe) if needs_seen(recipe, base_tokenizer) else None
    start = begin_vocabulary(recipe, seen, base_tokenizer)
    vocabulary = Vocabulary(start, recipe)
    symbols = start.symbols(words)
    size = size_of(symbols)
    positions, most = size.positions, trainer_memory.MAX_POSITIONS
    require(
        positions <= most,
        f"the words have {positions:,} symbols and ends, and one trainer can process {most:,}",
        remedy="set {merge_rounds} to distributed, or use fewer words",
    )
    if reporter is not None:
        reporter.spelled(vocabulary, size.symbols)
    learner = make_learner(vocabulary, symbols, recipe.min_frequency)
    del symbols  # which take as much memory as the learner's copy
    before = learner.token_count
    on_step = None
    if reporter is not None:
        reporter.laid_out(learner)
        on_step = partial(reporter.learned, learner)
    found = find_merges(learner, on_step)
    vocabulary.add(found.rows, found.counts)
    vocabulary.text_full = found.text_full
    vocabulary.totals = WordTotals(words.total, words.total_bytes, before, learner.token_count)
    return vocabulary.result()


class _Reporter:
    """Notes what a training does, when, and reports it."""

    def __init__(
        self,
        words: Words,
        recipe: MergingRecipe,
        base_tokenizer: Tokenizer | None,
        report: Progress,
        clock: Callable[[], float],
    ) -> None:
        self._report = report
        self._clock = clock
        self._started = clock()
        self._merges = 0
        in_characters = needs_seen(recipe, base_tokenizer)
        symbols = len(words.data)
        if in_characters:
            symbols = int(np.count_nonzero((words.data & 0xC0) != 0x80))
        self._work = LearningWork(
            symbols,
            recipe.vocab_size,
            recipe.min_frequency,
            merged=0 if base_tokenizer is None else len(base_tokenizer.merges),
            in_characters=in_characters,
            by_likelihood=not isinstance(recipe, BpeRecipe),
        )
        report(0, self._work)

    def spelled(self, vocabulary: Vocabulary, symbols: int) -> None:
        """Report that the symbols of the words are found."""
        ids = len(vocabulary.tokens)
        self._work.spelled(symbols, vocabulary.room, ids, self._seconds())
        self._report(0, self._work)

    def laid_out(self, learner: _native.BpeLearner) -> None:
        """Report that the learner has the words."""
        self._work.laid_out(LearnerState(*learner.state), self._seconds())
        self._report(0, self._work)

    def learned(self, learner: _native.BpeLearner, merges: int, count: int) -> None:
        """Report some merges; see `find_merges`."""
        self._work.add(merges, count, LearnerState(*learner.state), self._seconds())
        self._report(merges - self._merges, self._work)
        self._merges = merges

    def _seconds(self) -> float:
        return self._clock() - self._started


def _learn_word_level(words: Words, recipe: WordLevelRecipe) -> TrainingResult:
    """Return the special tokens and the most frequent words, ties by text.

    Words' bytes sort as their characters do. Only words as frequent as the last that can be taken
    become strings.
    """
    ids = assign_ids({}, recipe.specials)
    require_room(recipe.vocab_size, len(ids))
    # Some words may be special tokens, which have ids already.
    room = recipe.vocab_size
    least = recipe.min_frequency
    if len(words.counts) > room:
        rank = len(words.counts) - room
        least = max(least, int(np.partition(words.counts, rank)[rank]))
    entries = []
    for word in np.flatnonzero(words.counts >= least).tolist():
        text = words.data[words.offsets[word] : words.offsets[word + 1]].tobytes()
        entries.append((-int(words.counts[word]), text))
    entries.sort()
    taken = [text.decode() for _, text in entries if text.decode() not in ids]
    vocab = assign_ids(ids, taken[: recipe.vocab_size - len(ids)])
    totals = WordTotals(words.total, words.total_bytes, words.total, words.total)
    return TrainingResult(vocab, (), np.zeros(0, np.int64), totals=totals)


def is_nearly_characters(learned: TrainingResult) -> bool:
    """Whether many merges joined little of the words, as WordPiece's likelihood does by default.

    Then the frequent words are split, and rare sequences of rare characters are entries.
    """
    totals = learned.totals
    if totals is None or totals.tokens is None or len(learned.merges) < _MANY_MERGES:
        return False
    return totals.tokens - totals.words > _MOST_UNJOINED * (totals.symbols - totals.words)
