"""Sentences of a few English words."""

from __future__ import annotations

import random

TEXT = "the quick brown fox jumps over a lazy dog and the cat sat on the mat"


def sentences(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(TEXT.split(), k=rng.randint(0, 30))) for _ in range(count)]
