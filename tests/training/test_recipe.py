"""Settings of training are checked when they are made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.training.recipe import MAX_VOCAB_SIZE, BpeRecipe

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 0}, "vocab_size is 0: from 1 to 2147483647"),
        ({"vocab_size": -5}, "vocab_size is -5"),
        ({"vocab_size": MAX_VOCAB_SIZE + 1}, "vocab_size is 2147483648"),
        ({"min_frequency": -1}, "min_frequency is -1: 0 or more"),
        ({"tie_break": "best"}, "tie_break is 'best': one of lowest_id, first_seen"),
        ({"alphabet": "some"}, "alphabet is 'some': one of bytes, seen"),
        ({"special_tokens": ("a", "b", "a")}, "special_tokens holds one twice: a, b, a"),
        ({"special_tokens": ("a", "")}, "special_tokens holds an empty token"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BpeRecipe(**{"vocab_size": 300, **settings})


def test_what_is_taken() -> None:
    recipe = BpeRecipe(vocab_size=1, min_frequency=0, special_tokens=("<s>", " ", "語"))
    assert (recipe.tie_break, recipe.all_bytes) == ("lowest_id", True)
    assert BpeRecipe(vocab_size=MAX_VOCAB_SIZE).special_tokens == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.vocab_size = 2  # type: ignore[misc]
