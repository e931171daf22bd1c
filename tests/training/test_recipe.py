"""Settings of training are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.training.recipe import (
    BpeRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"vocab_size": -5}, "vocab_size must be .*, got -5"),
        ({"vocab_size": MAX_VOCAB_SIZE + 1}, "vocab_size must be .*, got 2,147,483,649"),
        ({"min_frequency": -1}, "min_frequency must be at least 0, got -1"),
        ({"tie_break": "best"}, "tie_break must be one of lowest_id, first_seen, .*, got 'best'"),
        ({"alphabet": "some"}, "alphabet must be one of bytes, seen, got 'some'"),
        (
            {"special_tokens": ("a", "b", "a")},
            "special_tokens must not repeat a token",
        ),
        ({"special_tokens": ("a", "")}, "special_tokens must not be empty"),
        ({"special_tokens": ("a\ud800",)}, "special_tokens must be valid Unicode"),
        (
            {"special_tokens": ("é",)},
            "'é', which is also how byte 0xE9",
        ),
        ({"special_tokens": ("x" * 4097,)}, r"at most 4,096 characters long, got .* of 4,097"),
        ({"unk_token": "Ġ"}, "special_tokens must not contain 'Ġ', which is also how byte 0x20"),
        ({"unk_token": ""}, "unk_token must not be empty"),
        (
            {"initial_alphabet": ("ab",)},
            "must be single characters, got 'ab'",
        ),
        (
            {"initial_alphabet": ("語",)},
            "characters of the byte-level .* got '語'",
        ),
        ({"limit_alphabet": -1}, "limit_alphabet must be at least 0, got -1"),
        ({"max_token_length": 0}, "max_token_length must be at least 1, got 0"),
        ({"symbols": "words"}, "symbols must be one of bytes, characters, got 'words'"),
        ({"symbols": "characters", "alphabet": "bytes"}, "alphabet must be 'seen' where symbols"),
        ({"end_of_word_suffix": "_"}, "end_of_word_suffix needs symbols 'characters'"),
        ({"continuing_subword_prefix": "#"}, "continuing_subword_prefix needs symbols"),
        ({"byte_fallback": True}, "byte_fallback needs symbols 'characters'"),
        (
            {"symbols": "characters", "end_of_word_symbol": "</w>"},
            "end_of_word_symbol must be a single character other than whitespace, got '</w>'",
        ),
        (
            {"symbols": "characters", "end_of_word_symbol": "_", "end_of_word_suffix": "x"},
            "exclude each other",
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
    with pytest.raises(AttributeError):
        recipe.vocab_size = 2  # type: ignore[misc]
