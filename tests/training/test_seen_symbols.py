"""Symbols that workers saw in their words: added up, and read back strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from counted_words import words_of

from bpe_beam.errors import DataError
from bpe_beam.training.initial_vocabulary import (
    find_symbols_for,
)
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.seen_symbols import SeenSymbols

pytestmark = pytest.mark.quick


SIZE = 10_000


def test_merging_adds_up() -> None:
    recipe = BpeRecipe(SIZE, symbols="characters", limit_alphabet=1)
    one, other = (find_symbols_for(words_of([(word, 2**62)]), recipe) for word in ("aab", "bbb語"))
    both = one.merged(other)
    assert both.counts == {ord("a"): 2**63, ord("b"): 2**64, ord("語"): 2**62}
    assert both.to_bytes() == other.merged(one).to_bytes()
    assert SeenSymbols.from_bytes(both.to_bytes()).counts == both.counts
    assert both.alphabet((), 1) == ["b"]
    for strange in (BpeRecipe(SIZE, symbols="characters"), BpeRecipe(SIZE, limit_alphabet=1)):
        with pytest.raises(ValueError, match="not found in the same way"):
            one.merged(find_symbols_for(words_of([("a", 1)]), strange))


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def seen_bytes() -> bytes:
    recipe = BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="_", limit_alphabet=9)
    return find_symbols_for(words_of([("abc", 1), ("é", 2)]), recipe).to_bytes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seen": [[97, 99]]}, r"Expected `array` of length >= 4 - at `\$.seen`"),
        ({"seen": [[97], [], [], []]}, r"no runs of codes .* - at `\$.seen\[0\]`"),
        ({"seen": [[99, 97], [], [], []]}, r"no runs of codes .* - at `\$.seen\[0\]`"),
        ({"seen": [[0, 0x110001], [], [], []]}, r"no runs of codes .* - at `\$.seen\[0\]`"),
        ({"seen": [[], [97, 98], [], []]}, r"no runs of codes .* - at `\$.seen\[1\]`"),
        ({"seen": [[0xD800, 0xD801], [], [], []]}, "surrogates are not characters"),
        ({"seen": [["a", "b"], [], [], []]}, r"Expected `int`, got `str` - at `\$.seen\["),
        ({"counts": [1]}, "1 counts of 4 characters"),
        ({"counts": [1, 1, 1, -1]}, r"Expected `int` >= 0 - at `\$.counts\[3\]`"),
        ({"in_bytes": 1}, r"Expected `bool`, got `int` - at `\$.in_bytes`"),
        ({"end_symbol": "ab"}, "more than one character"),
        ({"more": 1}, "Object contains unknown field `more`"),
    ],
)
def test_seen_symbols_that_are_something_else(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        SeenSymbols.from_bytes(changed(seen_bytes(), **fields), "here")
