"""Which merges a round may take, from a small extract of words that stand elsewhere; no Beam.

A learner over all words needs them in memory. In rounds it needs only where something can happen:

**Infrequent-pair boundaries.** Let N(l, r) be how often l and r are adjacent in all words when the
round begins, each word weighted by its count, and T a threshold. Words are cut at boundaries whose
pair counts less than T, and the parts, *segments*, added up. From these the ordinary learner with
`min_frequency` T takes the very merges that it would take from the words, ties included, until a
merge makes a token that had an id already. `reference_rounds.py` proves it, and does it in plain
Python. Cutting at fewer boundaries, or learning with a higher T than was cut by, is right as well.

With T a quarter of the best count a round multiplies the merges about by three: some ten rounds for
32,000, whatever the size of the corpus; `docs/algorithm.md` has figures.

**Likelihood.** The score of WordPiece falls and rises with the symbols' frequencies; no count is
too low for the best score. Only what counts less than `min_frequency` is never merged: there all
words are cut once, single symbols kept for the frequencies' sake, and what is left must fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bpe_beam import _native
from bpe_beam.tokenizer import byte_level
from bpe_beam.training import native_trainer as learning
from bpe_beam.training.initial_vocabulary import InitialVocabulary, merges_of
from bpe_beam.training.native_trainer import (
    Learned,
    Row,
    WordTotals,
    check_size,
    learn_rows,
    mergeable_bytes,
)
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.trainer_limits import Room, Size

DIVISOR = 4
"""The threshold of a round is the best count over this, unless that turns out too low."""

_MOST_DIVISOR = 64


@dataclass(frozen=True)
class ShardPairs:
    """What is known of the pairs of a shard.

    Attributes:
        floor: All pairs of at least this count are listed.
        most: The highest count; 0: there is no pair.
    """

    floor: int
    most: int


def threshold(shards: Sequence[ShardPairs], divisor: int) -> int:
    """The threshold of a round: the best count over `divisor`, if all pairs from there on are
    listed, else the lowest count from which they are."""
    most = max((shard.most for shard in shards), default=0)
    listed = max((shard.floor for shard in shards), default=1)
    return max(1, listed, -(-most // divisor))


def next_divisor(divisor: int, segments: Size, room: Room) -> int:
    """The next round's divisor, from the size of the segments: further where there is room."""
    if not room.holds(segments):
        return max(2, divisor // 2)
    further = Room(room.memory // 16, room.positions // 16).holds(segments)
    return min(_MOST_DIVISOR, divisor * 2) if further else divisor


@dataclass
class Vocabulary:
    """What has been learned so far; grows by `add`.

    Attributes:
        start: What it began with.
        recipe: The settings.
        tokens: The bytes of each id; empty where no merge makes it.
        widths: How many characters each id covers; empty where no rule asks for it.
        rows: The merges.
        counts: How often each pair occurred when it was merged.
        text_left: Bytes that the parts of more merges may have; see `learning.MAX_TEXT`.
        text_full: Whether the best pair has more.
        totals: Of the words; None: not known.
    """

    start: InitialVocabulary
    recipe: BpeRecipe | WordPieceRecipe
    tokens: list[bytes] = field(init=False)
    widths: list[int] = field(init=False)
    rows: list[Row] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    text_left: int = field(init=False)
    text_full: bool = False
    totals: WordTotals | None = None

    def __post_init__(self) -> None:
        """Begins with the first ids.

        Raises:
            UsageError: The recipe's vocabulary is smaller.
        """
        ids = self.start.ids
        check_size(self.recipe.vocab_size, len(ids))
        self.tokens = [b""] * (max(ids.values(), default=-1) + 1)
        for token, token_id in ids.items():
            self.tokens[token_id] = mergeable_bytes(token) if self._in_bytes else token.encode()
        self.widths = []
        if self.recipe.max_token_length is not None:
            widths = self.start.widths
            assert widths is not None, "check_distributed refuses what has none"
            self.widths = widths.tolist()
        self.text_left = learning.MAX_TEXT
        self._ids = {made: number for number, made in enumerate(self.tokens) if made}
        self._holes = len(self.tokens) - len(ids)

    @property
    def room(self) -> int:
        """Entries that are missing."""
        return self.recipe.vocab_size - (len(self.tokens) - self._holes)

    def add(self, rows: Iterable[Row], counts: Iterable[int]) -> None:
        """Takes the merges of a round."""
        for left, right, joined in rows:
            self.text_left -= self.text_of(left, right)
            if joined == len(self.tokens):
                made = self.joined(left, right)
                self._ids[made] = joined
                self.tokens.append(made)
                if self.widths:
                    self.widths.append(self.widths[left] + self.widths[right])
            self.rows.append((left, right, joined))
        self.counts += counts

    def text_of(self, left: int, right: int) -> int:
        """The bytes of the parts of a merge."""
        return len(self.tokens[left]) + len(self.tokens[right])

    def find(self, left: int, right: int) -> int | None:
        """The id that the joined token of a pair has already."""
        return self._ids.get(self.joined(left, right))

    def __contains__(self, token: object) -> bool:
        """Whether a token has an id."""
        return token in self._ids

    def joined(self, left: int, right: int) -> bytes:
        """The bytes of the token of a pair."""
        prefix = self.recipe.continuing_subword_prefix.encode()
        return self.tokens[left] + self.tokens[right].removeprefix(prefix)

    def ranks(self) -> npt.NDArray[np.uint32] | None:
        """For each id, its place in the tie rule's order; None: by the ids themselves."""
        if self.recipe.tie_break == "lowest_id":
            return None
        ranks = np.empty(len(self.tokens), np.uint32)
        order = sorted(range(len(self.tokens)), key=self.tokens.__getitem__, reverse=True)
        ranks[order] = np.arange(len(order), dtype=np.uint32)
        return ranks

    def learned(self) -> Learned:
        """All of it, as a local learner gives it."""
        strings = {token_id: token for token, token_id in self.start.ids.items()}
        for token_id in range(max(strings, default=-1) + 1, len(self.tokens)):
            made = self.tokens[token_id]
            strings[token_id] = byte_level.to_chars(made) if self._in_bytes else made.decode()
        vocab = {strings[token_id]: token_id for token_id in sorted(strings)}
        merges = tuple((strings[left], strings[right]) for left, right, _ in self.rows)
        old = () if self.start.old is None else merges_of(self.start.old)
        counts = np.array(self.counts, np.int64)
        return Learned(vocab, (*old, *merges), counts, self.text_full, self.totals)

    @property
    def _in_bytes(self) -> bool:
        return isinstance(self.recipe, BpeRecipe) and self.recipe.symbols == "bytes"


@dataclass(frozen=True)
class Round:
    """The merges of a round.

    Attributes:
        rows: The merges.
        counts: How often each pair occurred.
        at_end: No pair is left that counts the round's threshold.
        text_full: Whether the best pair left would make the text of all merges too long.
        joined: How many places in the words the merges joined, each word weighted by its count;
            None: not known.
    """

    rows: list[Row]
    counts: list[int]
    at_end: bool
    text_full: bool = False
    joined: int | None = None


def learn_round(
    vocabulary: Vocabulary,
    segments: tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]],
    floor: int,
    *,
    cut: bool,
) -> Round:
    """Learns from segments all merges that count at least `floor`, as far as that is exact.

    Args:
        vocabulary: What has been learned so far; not changed.
        segments: Their symbols, int64[segments + 1] where each begins, and their counts.
        floor: At least the threshold that they were cut by.
        cut: They were cut: a token that there was before ends the round.

    Raises:
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    recipe = vocabulary.recipe
    symbols, offsets, counts = segments
    spans = None
    if recipe.max_token_length is not None:
        spans = np.array(vocabulary.widths, np.uint32)[symbols]
    learner = _native.BpeLearner(
        symbols,
        offsets,
        counts,
        vocabulary.tokens,
        len(vocabulary.tokens) + vocabulary.room,
        floor,
        recipe.tie_break,
        "count" if isinstance(recipe, BpeRecipe) else "likelihood",
        vocabulary.start.decorated or spans is not None,
        recipe.continuing_subword_prefix.encode(),
        recipe.max_token_length,
        spans,
        stop_at_known=cut,
        max_text=vocabulary.text_left,
    )
    begun = learner.token_count
    rows, found = learn_rows(learner)
    # A merge joins in the words what it joins in their segments.
    joined = begun - learner.token_count
    return Round(rows, found.tolist(), not learner.stopped, learner.text_full, joined)


def batches_of(rows: Sequence[Row], known: int) -> list[npt.NDArray[np.uint32]]:
    """The merges of a round as workers apply them, each batch after the one before.

    Within a batch the lowest rank goes first in each word. That is the same as merge by merge where
    every joined token is new: its pairs were all learned later. The last merge of a round may make
    a token that there was before, and which stands in pairs of lower rank: it comes by itself.

    Args:
        rows: The merges.
        known: Ids that there were when the round began.
    """
    made = known
    batches: list[list[Row]] = [[]]
    for row in rows:
        if row[2] < made:
            batches += [[row], []]
        else:
            batches[-1].append(row)
            made = row[2] + 1
    return [np.array(batch, np.uint32) for batch in batches if batch]
