"""How BPE makes its tokens: by which merge each, and so what a smaller vocabulary would do.

Encoding applies merges in the order of their ranks. If the parts of each merge exist before the
merge, the tokenizer of the first merges does the first steps of the same encoding: its tokens are
the ids of the whole tokenizer with the later merges undone. So the counts of its tokens follow from
the counts of the whole tokenizer without encoding anything again.

A token that occurs in a word was made from its own symbols alone, since no merge crossed its
boundaries. So the last merge in the encoding of its own symbols is the one that made it, and a
token whose symbols do not become this token occurs nowhere.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.tokenizer.components.models import BPE


class Made(NamedTuple):
    """A token, the left and right token of its merge, all by their positions, and its rank."""

    token: int
    left: int
    right: int
    rank: int


class Derivations:
    """The merges that make the tokens of a BPE tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        model = vocabulary.tokenizer.spec.model
        assert isinstance(model, BPE)
        self._size = len(vocabulary)
        merges: Integers = vocabulary.positions(model.merge_ids.ids()).astype(np.int64)
        self._merges = merges.reshape(-1, 3)
        """int64[merges, 3]: the left token, the right token and their merge, by rank."""
        self._no_rank = len(self._merges)
        self._symbols: dict[int, list[int]] = {}
        left, right, merged = self._merges.T
        # The last of equal pairs counts.
        _, from_end = np.unique((left * self._size + right)[::-1], return_index=True)
        ranks = np.sort(self._no_rank - 1 - from_end)
        # The right token may be no more than the mark that is dropped.
        ranks = ranks[(merged[ranks] != left[ranks]) & (merged[ranks] != right[ranks])]
        tokens, first, makers = np.unique(merged[ranks], return_index=True, return_counts=True)
        rank_of = np.full(self._size, -1, np.int64)
        rank_of[tokens] = ranks[first]
        self._first: list[int] = rank_of.tolist()
        """The rank of the first merge that makes a token, by token; -1 if none does."""
        self._several: list[int] = tokens[makers > 1].tolist()

    @cached_property
    def _ranks(self) -> dict[tuple[int, int], int]:
        """Rank by pair; a pair listed twice has its last rank."""
        return {pair: rank for rank, pair in enumerate(zip(*self._columns[:2], strict=True))}

    @cached_property
    def _columns(self) -> tuple[list[int], list[int], list[int]]:
        """The left tokens, the right tokens and their merges, by rank."""
        left, right, merged = self._merges.T.tolist()
        return left, right, merged

    @cached_property
    def _ranks_in_use(self) -> Integers:
        """The ranks of the merges that make tokens, one for each token, ascending."""
        rank_of = np.array(self._first, np.int64)
        for token in self._several:
            last = self._encoded(token)[1]
            if last is not None and self._columns[2][last] == token:
                rank_of[token] = last
        return np.sort(rank_of[rank_of >= 0])

    @cached_property
    def order(self) -> list[Made]:
        """The tokens that merges make, in the order of ranks."""
        left, right, merged = self._merges[self._ranks_in_use].T.tolist()
        return [*map(Made, merged, left, right, self._ranks_in_use.tolist())]

    def is_made(self, token: int) -> bool:
        """Return whether the symbols of a token, encoded on their own, become this token."""
        return self._encoded(token)[0] == [token]

    def symbols(self, token: int) -> list[int]:
        """Return the tokens that no merge makes of which a token consists."""
        symbols: list[int] = []
        waiting = [token]
        while waiting:
            one = waiting.pop()
            rank = self._first[one]
            if rank < 0:
                symbols.append(one)
            elif one in self._symbols:
                symbols += self._symbols[one]
            else:
                left, right, _ = self._columns
                waiting += [right[rank], left[rank]]
        self._symbols[token] = symbols
        return symbols

    def _encoded(self, token: int) -> tuple[list[int], int | None]:
        """Return the encoding of a token's symbols, and the rank of its last merge."""
        tokens = [*self.symbols(token)]
        rank_of, none = self._ranks.get, self._no_rank
        ranks = [rank_of(pair, none) for pair in pairwise(tokens)]
        last = None
        while ranks and (rank := min(ranks)) != none:
            at = ranks.index(rank)
            merged = self._columns[2][rank]
            last = rank
            tokens[at : at + 2] = [merged]
            del ranks[at]
            if at > 0:
                ranks[at - 1] = rank_of((tokens[at - 1], merged), none)
            if at < len(ranks):
                ranks[at] = rank_of((merged, tokens[at + 1]), none)
        return tokens, last

    # ---- how often a token was made ----

    def times_made(self, tokens: Integers) -> list[int]:
        """Return how often encoding made each token, also where a later merge used it."""
        merges = self._merges[self._ranks_in_use]
        within = tokens.copy()
        made: list[int]
        if _native.add_times_made(merges, within):
            made = within.tolist()
            return made
        made = tokens.tolist()  # sums are beyond 64 bits
        for left, right, token in merges[::-1].tolist():
            if times := made[token]:
                made[left] += times
                made[right] += times
        return made

    # ---- smaller vocabularies ----

    @property
    def minimum_size(self) -> int:
        """The size of the vocabulary without any merge."""
        return self._size - len(self._ranks_in_use)

    def check_order(self) -> None:
        """Refuse merges whose first ones are no tokenizer of their own."""
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
        """
        counts = tally.tokens.tolist()
        kept = len(self.order)
        by_size = {}
        for size in sorted(set(sizes), reverse=True):
            while kept > size - self.minimum_size:
                kept -= 1
                one = self.order[kept]
                if times := counts[one.token]:
                    counts[one.left] += times
                    counts[one.right] += times
                    counts[one.token] = 0
            whole = tally.whole.copy()
            whole[[one.token for one in self.order[kept:]]] = 0
            split = int(tally.whole.sum()) - int(whole.sum())
            by_size[size] = Tally(
                np.array(counts, np.int64),
                whole,
                tally.words,
                tally.continued + split,
                tally.bytes,
                tally.characters,
            )
        return by_size
