"""Whether a WordPiece vocabulary, trained by likelihood, is of use.

What Hugging Face calls WordPiece training is BPE with a prefix.
"""

from __future__ import annotations

from bpe_beam.training.native_trainer import TrainingResult

MANY_MERGES = 1_000
"""Fewer merges leave most words split, whatever the score."""

MOST_UNJOINED = 1 / 3
"""The greatest share of the boundaries within words that may be left, as measured in
docs/algorithm.md."""


def is_nearly_characters(learned: TrainingResult) -> bool:
    """Whether many merges joined little of the words, as the likelihood does by default.

    Then the frequent words are split, and rare sequences of rare characters are entries.
    """
    totals = learned.totals
    if totals is None or totals.tokens is None or len(learned.merges) < MANY_MERGES:
        return False
    return totals.tokens - totals.words > MOST_UNJOINED * (totals.symbols - totals.words)
