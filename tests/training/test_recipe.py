"""Settings of training are checked when they are made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.training.recipe import (
    BpeRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 0}, "vocab_size is 0: from 1 to 2147483647"),
        ({"vocab_size": -5}, "vocab_size is -5"),
        ({"vocab_size": MAX_VOCAB_SIZE + 1}, "vocab_size is 2147483649"),
        ({"min_frequency": -1}, "min_frequency is -1: 0 or more"),
        ({"tie_break": "best"}, "tie_break is 'best': one of lowest_id, first_seen"),
        ({"alphabet": "some"}, "alphabet is 'some': one of bytes, seen"),
        ({"special_tokens": ("a", "b", "a")}, "special_tokens holds one twice: a, b, a"),
        ({"special_tokens": ("a", "")}, "special_tokens holds an empty token"),
        ({"special_tokens": ("a\ud800",)}, "special_tokens holds .* a lone surrogate"),
        ({"special_tokens": ("é",)}, "special_tokens holds 'é', which is also how byte 0xE9"),
        ({"special_tokens": ("x" * 4097,)}, r"at most 4,096 characters, got .* of 4,097"),
        ({"unk_token": "Ġ"}, "special_tokens holds 'Ġ', which is also how byte 0x20"),
        ({"unk_token": ""}, "unk_token holds an empty token"),
        ({"initial_alphabet": ("ab",)}, "initial_alphabet holds 'ab': single characters"),
        ({"initial_alphabet": ("語",)}, "initial_alphabet holds '語', which is not in the byte"),
        ({"limit_alphabet": -1}, "limit_alphabet is -1: 0 or more"),
        ({"max_token_length": 0}, "max_token_length is 0: 1 or more"),
        ({"symbols": "words"}, "symbols is 'words': one of bytes, characters"),
        ({"symbols": "characters", "alphabet": "bytes"}, "alphabet is 'bytes', but symbols is"),
        ({"end_of_word_suffix": "_"}, "end_of_word_suffix is '_': needs symbols 'characters'"),
        ({"continuing_subword_prefix": "#"}, "continuing_subword_prefix is '#': needs symbols"),
        ({"byte_fallback": True}, "byte_fallback is True: needs symbols 'characters'"),
        (
            {"symbols": "characters", "end_of_word_symbol": "</w>"},
            "end_of_word_symbol is '</w>': a single character",
        ),
        (
            {"symbols": "characters", "end_of_word_symbol": "_", "end_of_word_suffix": "x"},
            "only one of them",
        ),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BpeRecipe(**{"vocab_size": 300, **settings})


def test_what_is_taken() -> None:
    recipe = BpeRecipe(vocab_size=1, min_frequency=0, special_tokens=("<s>", " ", "語"))
    assert (recipe.tie_break, recipe.all_bytes) == ("lowest_id", True)
    assert BpeRecipe(9, special_tokens=("Ġthe", "x" * 4096)).specials
    assert BpeRecipe(vocab_size=MAX_VOCAB_SIZE).special_tokens == ()
    assert not BpeRecipe(9, symbols="characters").all_bytes
    assert not BpeRecipe(9, alphabet="seen").all_bytes
    assert BpeRecipe(9, special_tokens=("a",), unk_token="b").specials == ("b", "a")
    assert WordPieceRecipe(9, special_tokens=("a", "[UNK]")).specials == ("a", "[UNK]")
    assert WordLevelRecipe(9).specials == ("<unk>",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.vocab_size = 2  # type: ignore[misc]
