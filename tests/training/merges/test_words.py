"""What one learner can hold is known before it begins."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from counted_words import words_of

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.training.learn import learn
from bpe_beam.training.merges import words as room
from bpe_beam.training.merges.rounds import next_divisor
from bpe_beam.training.merges.words import Room, Size, too_many
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe, WordPieceRecipe

pytestmark = pytest.mark.quick

CHARACTERS: dict[str, Any] = {"symbols": "characters"}


def learner(most: int, widths: list[int] | None = None) -> _native.BpeLearner:
    symbols = np.array([0, 1, 1, 0, 1], np.uint32)
    return _native.BpeLearner(
        symbols, np.array([0, 3, 5]), np.array([2, 3]), [b"a", b"b"], 9, 0, "lowest_id",
        spans=None if widths is None else np.array(widths, np.uint32)[symbols],
        max_positions=most,
    )  # fmt: skip


@pytest.mark.parametrize("widths", [None, [3, 4]])
def test_the_size_is_what_the_learner_counts(widths: list[int] | None) -> None:
    size = Size(2, 5, 5 if widths is None else 2 * 3 + 3 * 4)
    learner(size.positions, widths)
    with pytest.raises(ValueError, match="too many for one learner"):
        learner(size.positions - 1, widths)
    assert Room(size.memory, size.positions).fits(size)
    assert not Room(size.memory - 1, size.positions).fits(size)
    assert not Room(size.memory, size.positions - 1).fits(size)


def test_counts_tell_whether_words_may_be_too_many() -> None:
    most = 2**32 - 1
    assert most == room.MAX_POSITIONS
    words = 1_000
    size = most - words - 1
    for recipe, sure in (
        (BpeRecipe(300), True),
        (BpeRecipe(300, **CHARACTERS), False),
        (WordPieceRecipe(300), False),
    ):
        assert too_many(recipe, size, words, continued=False) is None
        assert too_many(recipe, size + 1, words, continued=False) == (most, sure)
    assert too_many(BpeRecipe(300), size + 1, words, continued=True) == (most, False)
    ends = BpeRecipe(300, **CHARACTERS, end_of_word_symbol="_")
    assert too_many(ends, most - 2 * words, words, continued=False) == (most, False)
    assert too_many(WordLevelRecipe(300), 2**40, words, continued=False) is None


def test_the_divisor_goes_by_positions_too() -> None:
    size = Size(10, 100, 1_000)
    assert next_divisor(4, size, Room(10**9, 10**9)) == 8
    assert next_divisor(4, size, Room(10**9, 10_000)) == 4
    assert next_divisor(4, size, Room(10**9, 1_000)) == 2


def test_words_are_counted_before_they_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    made = random.Random(5)
    words = words_of([("".join(made.choices("ab語", k=9)), 2) for _ in range(20)])
    symbols = 20 * 9 + 20 + 1
    monkeypatch.setattr(room, "MAX_POSITIONS", symbols)
    assert learn(words, BpeRecipe(30, **CHARACTERS)).merges
    monkeypatch.setattr(room, "MAX_POSITIONS", symbols - 1)
    with pytest.raises(UsageError, match=f"the words have {symbols} symbols and ends, and one"):
        learn(words, BpeRecipe(30, **CHARACTERS))
