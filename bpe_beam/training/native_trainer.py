"""The native learner, from symbols to a learned vocabulary; BPE and WordPiece share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.trainer_limits import Size, has_spans, most_positions
from bpe_beam.training.words import weighted_total

MAX_TEXT = 1 << 26
"""Bytes of the parts of all merges together. Learning ends before the merge that goes beyond: a
text of one letter makes tokens as long as itself, and no program could read their file."""

_MERGES_A_STEP = 500

Progress = Callable[[int], None]

Row = tuple[int, int, int]
"""A merge: left, right and joined id."""


@dataclass(frozen=True)
class WordTotals:
    """Sums over all words that were learned from, each weighted by its count.

    Attributes:
        words: Words.
        bytes: Their bytes.
        symbols: What they were made of before the first merge.
        tokens: What the merges leave of these; None: not known.
    """

    words: int
    bytes: int
    symbols: int
    tokens: int | None

    @property
    def bytes_per_token(self) -> float | None:
        """The bytes of the words over their tokens; None without any."""
        return self.bytes / self.tokens if self.tokens else None


@dataclass(frozen=True)
class Learned:
    """What training gives.

    Attributes:
        vocab: Id by token, in the order of ids.
        merges: Pairs of tokens, in the order learned; of a tokenizer that was continued, its own
            come first. Empty for a word-level vocabulary.
        counts: int64: how often each newly learned pair occurred when it was merged.
        text_full: Whether learning ended at `MAX_TEXT`.
        totals: Of the words; None: not known.
    """

    vocab: Mapping[str, int]
    merges: tuple[tuple[str, str], ...]
    counts: npt.NDArray[np.int64]
    text_full: bool = False
    totals: WordTotals | None = None


@dataclass(frozen=True)
class Symbols:
    """Words as a learner takes them.

    Attributes:
        ids: uint32, the symbols of all words, one after another.
        offsets: int64[words + 1], where each word begins.
        counts: int64[words], how often each word occurs.
        word_bytes: Bytes of all words, each weighted by its count.
        spans: uint32, how many characters each symbol covers; None: one each.
        decorated: The same token may be made of other symbols elsewhere.
    """

    ids: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    word_bytes: int
    spans: npt.NDArray[np.uint32] | None = None
    decorated: bool = False


def number(ids: Mapping[str, int], tokens: Iterable[str]) -> dict[str, int]:
    """Appends those tokens that have no id yet."""
    numbered = dict(ids)
    next_id = max(numbered.values(), default=-1) + 1
    for token in tokens:
        if numbered.setdefault(token, next_id) == next_id:
            next_id += 1
    return numbered


def learn(
    symbols: Symbols,
    ids: Mapping[str, int],
    recipe: BpeRecipe | WordPieceRecipe,
    on_progress: Progress | None = None,
) -> Learned:
    """Learns merges.

    Args:
        symbols: The words.
        ids: The vocabulary so far; holes between ids stay holes.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Raises:
        UsageError: The recipe's vocabulary is smaller than there are entries already, or the words
            have more symbols than one learner can hold.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    check_size(recipe.vocab_size, len(ids))
    _check_positions(symbols, recipe)
    in_bytes = isinstance(recipe, BpeRecipe) and recipe.symbols == "bytes"
    size = max(ids.values(), default=-1) + 1
    tokens = [b""] * size
    for token, token_id in ids.items():
        tokens[token_id] = mergeable_bytes(token) if in_bytes else token.encode()
    learner = _native.BpeLearner(
        symbols.ids,
        symbols.offsets,
        symbols.counts,
        tokens,
        recipe.vocab_size + size - len(ids),
        recipe.min_frequency,
        recipe.tie_break,
        "count" if isinstance(recipe, BpeRecipe) else "likelihood",
        symbols.decorated,
        recipe.continuing_subword_prefix.encode(),
        recipe.max_token_length,
        symbols.spans,
        max_text=MAX_TEXT,
    )
    words = weighted_total(np.ones_like(symbols.counts), symbols.counts)
    begun = learner.token_count
    rows, counts = learn_rows(learner, on_progress)
    strings = {token_id: token for token, token_id in ids.items()}
    for token_id, made in enumerate(learner.tokens()[size:], size):
        strings[token_id] = byte_level.to_chars(made) if in_bytes else made.decode()
    vocab = {strings[token_id]: token_id for token_id in sorted(strings)}
    merges = tuple((strings[left], strings[right]) for left, right, _ in rows)
    totals = WordTotals(words, symbols.word_bytes, begun, learner.token_count)
    return Learned(vocab, merges, counts, learner.text_full, totals)


def learn_rows(
    learner: _native.BpeLearner, on_progress: Progress | None = None
) -> tuple[list[Row], npt.NDArray[np.int64]]:
    """Learn until the native learner finds no more merges.

    Args:
        learner: The native learner, over words or segments.
        on_progress: Called with the number of merges learned since the last call.

    Returns:
        The merges, and how often the pair of each occurred: int64[merges].
    """
    rows: list[Row] = []
    counts = [np.zeros(0, np.int64)]
    while True:
        step, step_counts = learner.learn(_MERGES_A_STEP)
        if not len(step):
            return rows, np.concatenate(counts)
        rows += map(tuple, step.tolist())
        counts.append(step_counts)
        if on_progress:
            on_progress(len(step))


def _check_positions(symbols: Symbols, recipe: BpeRecipe | WordPieceRecipe) -> None:
    told = symbols.spans is not None
    width = len(symbols.ids) if symbols.spans is None else int(symbols.spans.sum(dtype=np.int64))
    size = Size(len(symbols.counts), len(symbols.ids), width)
    most = most_positions(has_spans(recipe, continued=symbols.decorated, widths=told))
    if size.positions > most:
        raise UsageError(
            f"the words have {size.positions:,} symbols and ends, and one learner holds {most:,}: "
            "give --merge-rounds distributed, or fewer words"
        )


def check_size(vocab_size: int, entries: int) -> None:
    """Refuses a vocabulary that the entries there must be do not fit into."""
    if vocab_size < entries:
        raise UsageError(
            f"vocab_size is {vocab_size}, below the special tokens and the alphabet: give at least "
            f"{entries}, or keep fewer characters with limit_alphabet"
        )


def mergeable_bytes(token: str) -> bytes:
    """The bytes whose token reads like `token`; empty if no merge can make it."""
    return byte_level.to_bytes(token) if byte_level.is_byte_level(token) else b""
