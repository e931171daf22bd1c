"""The merges that a round may take, from a small extract of words that are on workers; no Beam.

A trainer over all words needs them in memory. In rounds it needs only where something can happen:

**Infrequent-pair boundaries.** Let N(l, r) be how often l and r are adjacent in all words when the
round begins, each word weighted by its count, and T a threshold. Words are cut at boundaries whose
pair counts less than T, and the parts, *segments*, added up. From these the ordinary trainer with
`min_frequency` T takes the very merges that it would take from the words, ties included, until a
merge makes a token that had an id already. `docs/algorithm.md` says why, and
`tests/helpers/reference_rounds.py` proves it and does it in plain Python. Cutting at fewer
boundaries, or learning with a higher T than that of the cuts, is right as well.

With T a quarter of the best count a round multiplies the merges about by three: some ten rounds for
32,000, whatever the size of the corpus; `docs/algorithm.md` has figures.

**Likelihood.** The score of WordPiece falls and rises with the symbols' frequencies; no count is
too low for the best score. Only what counts less than `min_frequency` is never merged: there all
words are cut once, single symbols kept for the frequencies' sake, and what is left must fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_beam.training.native_trainer import (
    NewMerges,
    Row,
    Vocabulary,
    find_merges,
    make_learner,
)
from bpe_beam.training.symbols import WordSymbols
from bpe_beam.training.trainer_limits import Room, Size

DIVISOR = 4
"""The threshold of a round is the best count over this, unless that turns out too low."""

_MOST_DIVISOR = 64


@dataclass(frozen=True)
class ShardPairs:
    """The figures of a shard of pairs.

    Attributes:
        floor: All pairs of at least this count are listed.
        most: The highest count; 0: there is no pair.
    """

    floor: int
    most: int


def threshold(shards: Sequence[ShardPairs], divisor: int) -> int:
    """Return the threshold of a round: the least count of a frequent pair.

    Args:
        shards: All shards of pairs.
        divisor: The threshold is the best count over this, at least 1.

    Returns:
        The least count from which on all pairs are listed, if that is higher.
    """
    most = max((shard.most for shard in shards), default=0)
    listed = max((shard.floor for shard in shards), default=1)
    return max(1, listed, -(-most // divisor))


def next_divisor(divisor: int, segments: Size, room: Room) -> int:
    """Return the divisor of the next round: greater while segments take little of the room.

    Args:
        divisor: The divisor of this round.
        segments: The size of this round's segments.
        room: The room of the trainer.
    """
    if not room.fits(segments):
        return max(2, divisor // 2)
    has_more = Room(room.memory // 16, room.positions // 16).fits(segments)
    return min(_MOST_DIVISOR, divisor * 2) if has_more else divisor


def learn_round(
    vocabulary: Vocabulary, segments: WordSymbols, floor: int, *, cut: bool
) -> NewMerges:
    """Return all merges that count at least `floor`, as far as segments determine them.

    Args:
        vocabulary: The vocabulary, which is not changed.
        segments: The segments.
        floor: At least the threshold of the segments.
        cut: Whether they are segments, not whole words: then a merge whose token was in the
            vocabulary ends the round.

    Raises:
        OverflowError: The sum of counts is beyond 64 bits.
    """
    if vocabulary.widths and segments.spans is None:
        spans = np.array(vocabulary.widths, np.uint32)[segments.ids]
        segments = segments._replace(spans=spans)
    return find_merges(make_learner(vocabulary, segments, floor, stop_at_known=cut))


def batches_of(rows: Sequence[Row], known: int) -> list[npt.NDArray[np.uint32]]:
    """Return the merges of a round as workers apply them, each batch after the one before.

    Within a batch the lowest rank goes first in each word. That is the same as merge by merge where
    every joined token is new: its pairs were all learned later. The last merge of a round may make
    a token of the vocabulary, which occurs in pairs of lower rank: it is a batch by itself.

    Args:
        rows: The merges.
        known: Number of ids when the round began.

    Returns:
        uint32[merges, 3] for each batch.
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
