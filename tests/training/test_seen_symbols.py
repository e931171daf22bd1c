"""Symbols that workers saw in their words: added up, and read back strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from counted_words import words_of

from bpe_beam.errors import DataError
from bpe_beam.training.initial_vocabulary import (
    see_for,
)
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.seen_symbols import SeenSymbols

pytestmark = pytest.mark.quick


SIZE = 10_000


def test_merging_adds_up() -> None:
    recipe = BpeRecipe(SIZE, symbols="characters", limit_alphabet=1)
    one, other = (see_for(words_of([(word, 2**62)]), recipe) for word in ("aab", "bbb語"))
    both = one.merged(other)
    assert both.counts == {ord("a"): 2**63, ord("b"): 2**64, ord("語"): 2**62}
    assert both.to_bytes() == other.merged(one).to_bytes()
    assert SeenSymbols.from_bytes(both.to_bytes()).counts == both.counts
    assert both.alphabet((), 1) == ["b"]
    for strange in (BpeRecipe(SIZE, symbols="characters"), BpeRecipe(SIZE, limit_alphabet=1)):
        with pytest.raises(ValueError, match="not seen in the same way"):
            one.merged(see_for(words_of([("a", 1)]), strange))


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def seen_bytes() -> bytes:
    recipe = BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="_", limit_alphabet=9)
    return see_for(words_of([("abc", 1), ("é", 2)]), recipe).to_bytes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seen": [[97, 99]]}, "seen: 1 rows"),
        ({"seen": [[97], [], [], []]}, r"seen\[0\]: these are not runs"),
        ({"seen": [[99, 97], [], [], []]}, r"seen\[0\]: these are not runs"),
        ({"seen": [[0, 0x110001], [], [], []]}, r"seen\[0\]: these are not runs"),
        ({"seen": [[], [97, 98], [], []]}, r"seen\[1\]: these are not runs"),
        ({"seen": [[0xD800, 0xD801], [], [], []]}, "seen: surrogates"),
        ({"seen": [["a", "b"], [], [], []]}, r"seen\[0\]\[0\]: .* is not an integer"),
        ({"counts": [1]}, "counts: 1 counts of 4 characters"),
        ({"counts": [1, 1, 1, -1]}, r"counts\[3\]"),
        ({"in_bytes": 1}, "in_bytes"),
        ({"end_symbol": "ab"}, "end_symbol: 'ab' is more than one"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_seen_symbols_that_are_something_else(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        SeenSymbols.from_bytes(changed(seen_bytes(), **fields), "here")
