"""How BPE makes its tokens: by which merge each, and so what a smaller vocabulary would do.

Encoding applies merges in the order of their ranks. If the parts of each merge exist before the
merge, the tokenizer of the first merges does the first steps of the same encoding: its tokens are
those of the whole tokenizer with the later merges undone. So the counts of its tokens follow from
those of the whole tokenizer without encoding anything again.

A token that occurs in a word was made from its own symbols alone, since no merge crossed its
boundaries. So the last merge in the encoding of its own symbols is the one that made it, and a
token whose symbols do not become this token occurs nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpe_beam.errors import UsageError
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary
from bpe_beam.tokenizer.models import BPE


class Made(NamedTuple):
    """How a token is made; all tokens by their positions.

    Attributes:
        token: The token.
        left: The left token of its merge.
        right: The right token.
        rank: The rank of the merge.
    """

    token: int
    left: int
    right: int
    rank: int


class Derivations:
    """The merges that make the tokens of a BPE tokenizer.

    Args:
        vocabulary: The tokens of a tokenizer whose model is BPE.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        model = vocabulary.tokenizer.spec.model
        assert isinstance(model, BPE)
        self._size = len(vocabulary)
        position_of = vocabulary.position_of
        self._ranks: dict[tuple[int, int], int] = {}
        """Rank by pair; a pair listed twice has its last rank."""
        self._merged: list[int] = []
        """The token that each merge makes, by rank."""
        self._symbols: dict[int, list[int]] = {}
        makers: defaultdict[int, list[Made]] = defaultdict(list)
        for rank, (left, right) in enumerate(model.merges):
            self._merged.append(position_of[model.joined(left, right)])
            self._ranks[position_of[left], position_of[right]] = rank
        self._no_rank = len(self._merged)
        for pair, rank in self._ranks.items():
            token = self._merged[rank]
            if token not in pair:  # the right token may be no more than the mark that is dropped
                makers[token].append(Made(token, *pair, rank))
        self._first = {token: min(made, key=lambda one: one.rank) for token, made in makers.items()}
        self._several = [token for token, made in makers.items() if len(made) > 1]

    @cached_property
    def order(self) -> list[Made]:
        """The tokens that merges make, in the order of ranks."""
        made = dict(self._first)
        for token in self._several:
            last = self._encoded(token)[1]
            if last is not None and last.token == token:
                made[token] = last
        return sorted(made.values(), key=lambda one: one.rank)

    def is_made(self, token: int) -> bool:
        """Return whether the symbols of a token, encoded on their own, become this token."""
        return self._encoded(token)[0] == [token]

    def symbols(self, token: int) -> list[int]:
        """Return the tokens that no merge makes of which a token consists."""
        found: list[int] = []
        waiting = [token]
        while waiting:
            one = waiting.pop()
            made = self._first.get(one)
            if made is None:
                found.append(one)
            elif one in self._symbols:
                found += self._symbols[one]
            else:
                waiting += [made.right, made.left]
        self._symbols[token] = found
        return found

    def _encoded(self, token: int) -> tuple[list[int], Made | None]:
        """Return the encoding of a token's symbols, and its last merge."""
        tokens = [*self.symbols(token)]
        rank_of, none = self._ranks.get, self._no_rank
        ranks = [rank_of(pair, none) for pair in pairwise(tokens)]
        last = None
        while ranks and (rank := min(ranks)) != none:
            at = ranks.index(rank)
            merged = self._merged[rank]
            last = tokens[at], tokens[at + 1], rank
            tokens[at : at + 2] = [merged]
            del ranks[at]
            if at > 0:
                ranks[at - 1] = rank_of((tokens[at - 1], merged), none)
            if at < len(ranks):
                ranks[at] = rank_of((merged, tokens[at + 1]), none)
        return tokens, None if last is None else Made(self._merged[last[2]], *last)

    # ---- how often a token was made ----

    def times_made(self, tokens: Integers) -> list[int]:
        """Return how often encoding made each token, also where a later merge used it.

        Args:
            tokens: How often each token occurs in the end, by position.
        """
        made = tokens.tolist()
        for one in reversed(self.order):
            if times := made[one.token]:
                made[one.left] += times
                made[one.right] += times
        return [int(times) for times in made]

    # ---- smaller vocabularies ----

    @property
    def least_size(self) -> int:
        """The size of the vocabulary without any merge."""
        return self._size - len(self.order)

    def check_order(self) -> None:
        """Refuse merges whose first ones are no tokenizer of their own.

        Raises:
            UsageError: A merge uses a token that a later merge makes.
        """
        ranks = {one.token: one.rank for one in self.order}
        for one in self.order:
            if max(ranks.get(one.left, -1), ranks.get(one.right, -1)) > one.rank:
                raise UsageError(
                    "must not be set for a tokenizer whose merge "
                    f"{one.rank} uses a token that a later merge makes",
                    ("vocab_sizes",),
                )

    def shrunk(self, tally: Tally, sizes: list[int]) -> dict[int, Tally]:
        """Return the tallies of smaller vocabularies, as if the text had been encoded by each.

        Tokens that a vocabulary lacks have no occurrences.

        Args:
            tally: The tally of the whole vocabulary.
            sizes: The sizes of the vocabularies, from `least_size` to the whole size.
        """
        counts = tally.tokens.tolist()
        kept = len(self.order)
        found = {}
        for size in sorted(set(sizes), reverse=True):
            while kept > size - self.least_size:
                kept -= 1
                one = self.order[kept]
                if times := counts[one.token]:
                    counts[one.left] += times
                    counts[one.right] += times
                    counts[one.token] = 0
            whole = tally.whole.copy()
            whole[[one.token for one in self.order[kept:]]] = 0
            split = int(tally.whole.sum()) - int(whole.sum())
            found[size] = Tally(
                np.array(counts, np.int64),
                whole,
                tally.words,
                tally.continued + split,
                tally.bytes,
                tally.characters,
            )
        return found

    def within(self, size: int) -> Flags:
        """Return which tokens a smaller vocabulary has."""
        flags = np.ones(self._size, np.bool_)
        flags[[one.token for one in self.order[size - self.least_size :]]] = False
        return flags
