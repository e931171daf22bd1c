"""The native trainer, which finds merges in the symbols of words; BPE and WordPiece use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import is_byte_token
from bpe_beam.training.merges.initial_vocabulary import InitialVocabulary, require_room
from bpe_beam.training.merges.symbols import WordSymbols
from bpe_beam.training.recipe import BpeRecipe, MergingRecipe

MAX_TEXT = 1 << 26
"""The maximum bytes that the left and right tokens of all merges may have in total. Training ends
before the merge that exceeds it: a text of one letter makes tokens as long as itself, and no
program could read their file."""

_MAXIMUM_STEP = 500
"""The maximum number of merges between two reports of progress."""
_STEP_SHARE = 8
"""A step has this fraction of the merges learned so far: the first merges take longest."""

Row = tuple[int, int, int]
"""A merge: left, right and joined id."""


class WordTotals(msgspec.Struct, frozen=True):
    """Sums over all words that were learned from, each weighted by its count.

    Symbols are counted before the first merge, tokens after the last; None: not known.
    """

    words: int
    bytes: int
    symbols: int
    tokens: int | None

    @property
    def bytes_per_token(self) -> float | None:
        """The bytes of the words over their tokens; None without any."""
        return self.bytes / self.tokens if self.tokens else None


class TrainingResult(msgspec.Struct, frozen=True):
    """The result of a training.

    Attributes:
        vocab: Id by token, in the order of ids.
        merges: Pairs of tokens, in the order learned, after the merges of a base tokenizer.
        counts: int64: how often each newly learned pair occurred when it was merged.
        text_full: Whether training ended at `MAX_TEXT`.
        scores: The score of each entry, in the order of ids; empty if the model has none.
        sizes: The number of pieces before the first pass over the words, and after each pass; empty
            if the model has no pieces.
    """

    vocab: Mapping[str, int]
    merges: tuple[tuple[str, str], ...]
    counts: npt.NDArray[np.int64]
    text_full: bool = False
    totals: WordTotals | None = None
    scores: Sequence[float] = ()
    sizes: Sequence[int] = ()


class NewMerges(msgspec.Struct, frozen=True):
    """Merges that follow the merges of a vocabulary.

    Attributes:
        at_end: Whether no other pair occurs often enough, or the vocabulary or its text is full.
        text_full: Whether the best remaining pair would make the text of all merges too long.
        joined: How many fewer tokens the words have after the merges, each word weighted by its
            count; None: not known.
    """

    rows: list[Row]
    counts: list[int]
    at_end: bool
    text_full: bool = False
    joined: int | None = None


class Vocabulary:
    """A vocabulary that grows by merges.

    Attributes:
        tokens: The bytes of each id; empty for an unused id and, in a byte-level vocabulary, for a
            token with characters outside that alphabet.
        widths: The number of characters that each id covers; empty without `max_token_length`, and
            where the number depends on the position in a word.
        counts: How often each pair of `rows` occurred when it was merged.
        text_left: Bytes that further merges may use; see `MAX_TEXT`.
        text_full: Whether training ended because the best pair needs more than `text_left`.
    """

    def __init__(self, start: InitialVocabulary, recipe: MergingRecipe) -> None:
        """Check `vocab_size`, and take over the tokens of `start`."""
        require_room(recipe.vocab_size, len(start.ids))
        self.start = start
        self.recipe = recipe
        self.rows: list[Row] = []
        self.counts: list[int] = []
        self.text_left = MAX_TEXT
        self.text_full = False
        self.totals: WordTotals | None = None
        self.tokens = [b""] * len(self.start.tokens)
        for token, token_id in self.start.ids.items():
            if not self.start.in_bytes:
                self.tokens[token_id] = token.encode()
            elif byte_level.is_byte_level(token):  # else no merge can make it
                self.tokens[token_id] = byte_level.to_bytes(token)
        limited = self.recipe.max_token_length is not None
        widths = self.start.widths if limited else None
        self.widths = [] if widths is None else widths.tolist()
        self._ids = {token: number for number, token in enumerate(self.tokens) if token}
        self._gaps = len(self.tokens) - len(self.start.ids)

    @property
    def room(self) -> int:
        """The number of tokens that may still be added."""
        return self.recipe.vocab_size - (len(self.tokens) - self._gaps)

    def add(self, rows: Iterable[Row], counts: Iterable[int]) -> None:
        """Add merges."""
        prefix = self.recipe.continuing_subword_prefix.encode()
        tokens, widths = self.tokens, self.widths
        for row in rows:
            left, right, joined = row
            first, second = tokens[left], tokens[right]
            self.text_left -= len(first) + len(second)
            if joined == len(tokens):
                token = first + second.removeprefix(prefix)
                self._ids[token] = joined
                tokens.append(token)
                if widths:
                    widths.append(widths[left] + widths[right])
            self.rows.append(row)
        self.counts += counts

    def text_of(self, left: int, right: int) -> int:
        """Return the number of bytes of the two tokens of a pair."""
        return len(self.tokens[left]) + len(self.tokens[right])

    def find(self, left: int, right: int) -> int | None:
        """Return the id that the joined token of a pair has already; None without one."""
        return self._ids.get(self.joined(left, right))

    def __contains__(self, token: object) -> bool:
        """Return whether a token has an id."""
        return token in self._ids

    def joined(self, left: int, right: int) -> bytes:
        """Return the bytes of the token of a pair."""
        prefix = self.recipe.continuing_subword_prefix.encode()
        return self.tokens[left] + self.tokens[right].removeprefix(prefix)

    def ranks(self) -> npt.NDArray[np.uint32] | None:
        """Return the rank of each id in the tie rule's order; None: the order of the ids."""
        if self.recipe.tie_break == "lowest_id":
            return None
        ranks = np.empty(len(self.tokens), np.uint32)
        order = sorted(range(len(self.tokens)), key=self.tokens.__getitem__, reverse=True)
        ranks[order] = np.arange(len(order), dtype=np.uint32)
        return ranks

    def result(self) -> TrainingResult:
        """Return the vocabulary as the result of a training."""
        strings = {token_id: token for token, token_id in self.start.ids.items()}
        known = len(self.start.tokens)
        prefix = self.recipe.continuing_subword_prefix
        if self.start.in_bytes:
            prefix = byte_level.to_chars(prefix.encode())
        for left, right, joined in self.rows:
            if joined >= known:
                strings[joined] = strings[left] + strings[right].removeprefix(prefix)
        vocab = {strings[token_id]: token_id for token_id in sorted(strings)}
        base = self.start.base_tokenizer
        merges = () if base is None else tuple(base.merges)
        rows, counts = self.rows, np.array(self.counts, np.int64)
        if isinstance(self.recipe, BpeRecipe) and self.recipe.byte_fallback:
            # Text that is written like the token of a byte would be decoded as the byte.
            is_merge = [not is_byte_token(strings[joined]) for _, _, joined in rows]
            rows = [row for row, keep in zip(rows, is_merge, strict=True) if keep]
            counts = counts[np.array(is_merge, bool)]
        merges += tuple((strings[left], strings[right]) for left, right, _ in rows)
        return TrainingResult(vocab, merges, counts, self.text_full, self.totals)


def make_learner(
    vocabulary: Vocabulary, words: WordSymbols, min_frequency: int, *, stop_at_known: bool = False
) -> _native.BpeLearner:
    """Return the learner of the merges that follow the merges of a vocabulary."""
    recipe = vocabulary.recipe
    return _native.BpeLearner(
        words.ids,
        words.offsets,
        words.counts,
        vocabulary.tokens,
        len(vocabulary.tokens) + vocabulary.room,
        min_frequency,
        recipe.tie_break,
        "count" if isinstance(recipe, BpeRecipe) else "likelihood",
        recipe.continuing_subword_prefix.encode(),
        recipe.max_token_length,
        words.spans,
        stop_at_known=stop_at_known,
        max_text=vocabulary.text_left,
    )


def find_merges(
    learner: _native.BpeLearner, on_progress: Callable[[int], None] | None = None
) -> NewMerges:
    """Return all merges that a learner finds; `on_progress` gets the number of each step's."""
    tokens_before = learner.token_count
    rows: list[Row] = []
    counts: list[int] = []
    while True:
        limit = min(_MAXIMUM_STEP, max(1, len(rows) // _STEP_SHARE))
        step, step_counts = learner.learn(limit)
        if not len(step):
            break
        rows += zip(*step.T.tolist(), strict=True)
        counts += step_counts.tolist()
        if on_progress:
            on_progress(len(step))
    joined = tokens_before - learner.token_count
    return NewMerges(rows, counts, not learner.stopped, learner.text_full, joined)
