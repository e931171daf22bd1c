"""Symbols that workers saw in their words: added up, and read back strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from counted_words import words_of

from bpe_beam.errors import DataError
from bpe_beam.training.merges.symbols import SeenSymbols, find_symbols
from bpe_beam.training.recipe import BpeRecipe

pytestmark = pytest.mark.quick


SIZE = 10_000


def test_merging_adds_up() -> None:
    recipe = BpeRecipe(SIZE, symbols="characters", limit_alphabet=1)
    one, other = (find_symbols(words_of([(word, 2**62)]), recipe) for word in ("aab", "bbb語"))
    both = one.merged(other)
    assert both.counts == {"a": 2**63, "b": 2**64, "語": 2**62}
    assert both.to_bytes() == other.merged(one).to_bytes()
    assert SeenSymbols.from_bytes(both.to_bytes()).counts == both.counts
    assert both.alphabet((), 1) == ["b"]
    for strange in (BpeRecipe(SIZE, symbols="characters"), BpeRecipe(SIZE, limit_alphabet=1)):
        with pytest.raises(ValueError, match="collected differently"):
            one.merged(find_symbols(words_of([("a", 1)]), strange))


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def seen_bytes() -> bytes:
    recipe = BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="_", limit_alphabet=9)
    return find_symbols(words_of([("abc", 1), ("é", 2)]), recipe).to_bytes()


IN_BYTES = {"in_bytes": True, "prefix": "", "suffix": "", "end_symbol": ""}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kinds": {"ab": 1}}, "'ab' is not a character of these words"),
        ({"kinds": {"a": "b"}}, r"Expected `int`, got `str` - at `\$.kinds\[...\]`"),
        ({"kinds": {"\ud800": 1}}, "JSON is malformed: .* surrogate"),
        ({"spelling": IN_BYTES, "kinds": {"語": 1}}, "'語' is not a character"),
        ({"counts": {"a": 1}}, "the counted characters are not those that were seen"),
        ({"counts": {"a": -1}}, r"Expected `int` >= 0 - at `\$.counts\[...\]`"),
        ({"spelling": IN_BYTES | {"in_bytes": 1}}, r"Expected `bool`, got `int` - at"),
        ({"spelling": IN_BYTES | {"end_symbol": "ab"}}, "Expected `str` of length <= 1"),
        ({"more": 1}, "Object contains unknown field `more`"),
    ],
)
def test_seen_symbols_that_are_something_else(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        SeenSymbols.from_bytes(changed(seen_bytes(), **fields), "here")


def test_counts_of_zero_are_merged() -> None:
    seen = SeenSymbols.from_bytes(changed(seen_bytes(), kinds={"a": 1}, counts={"a": 0}))
    assert seen.merged(seen).counts == {"a": 0}
