"""Words with their counts: made at random, and as trainers read them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from bpe_beam.training.merges.words import Words


def random_words(
    made: random.Random,
    letters: Sequence[str],
    *,
    number: int = 9,
    lengths: tuple[int, int] = (1, 9),
    counts: Sequence[int] = (1, 2, 3, 4),
) -> list[tuple[str, int]]:
    """Return distinct words of random letters, in random order, with random counts.

    Args:
        made: The source of randomness.
        letters: What words are made of.
        number: How many words are drawn; equal ones are one.
        lengths: The fewest and the most letters of a word.
        counts: The counts that a word may have.
    """
    drawn = ["".join(made.choices(letters, k=made.randint(*lengths))) for _ in range(number)]
    return [(word, made.choice(counts)) for word in dict.fromkeys(drawn)]


def words_of(counted: Sequence[tuple[str, int]] | Sequence[tuple[bytes, int]]) -> Words:
    """Return counted words as `gather_words` makes them; text as UTF-8."""
    encoded = [word.encode() if isinstance(word, str) else word for word, _ in counted]
    return Words(
        np.frombuffer(b"".join(encoded), np.uint8),
        np.cumsum([0, *map(len, encoded)], dtype=np.int64),
        np.array([count for _, count in counted], np.int64),
    )
