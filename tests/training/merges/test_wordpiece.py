"""WordPiece by likelihood: when its vocabulary is nearly single characters."""

from __future__ import annotations

import random

import msgspec
import pytest
from counted_words import words_of

from bpe_beam.training.learn import is_nearly_characters, learn
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe

pytestmark = pytest.mark.quick


def many_languages() -> list[tuple[str, int]]:
    """Frequent words of few letters, and rare ones of many."""
    made = random.Random(17)
    frequent = {"".join(made.choices("etaoinshrdlu", k=made.randint(2, 8))) for _ in range(900)}
    letters = [chr(0x400 + code) for code in range(500)]
    rare = {"".join(made.choices(letters, k=made.randint(2, 8))) for _ in range(900)}
    counts = {word: 40_000 // (10 + place) for place, word in enumerate(sorted(frequent))}
    return [*counts.items(), *((word, made.randint(5, 9)) for word in sorted(rare))]


def test_frequent_words_are_entries_or_people_are_told() -> None:
    words = many_languages()
    best = sorted(words, key=lambda word: -word[1])[:50]
    few = WordPieceRecipe(3_000, min_frequency=5)
    by_likelihood = learn(words_of(words), few)
    enough = learn(
        words_of(words), msgspec.structs.replace(few, vocab_size=2_200, min_frequency=40)
    )
    by_count = learn(
        words_of(words),
        BpeRecipe(
            3_000,
            symbols="characters",
            unk_token="[UNK]",
            continuing_subword_prefix="##",
            for_wordpiece=True,
        ),
    )
    known = [sum(w in learned.vocab for w, _ in best) for learned in (by_likelihood, by_count)]
    assert known[0] < 25
    assert known[1] == 50
    assert is_nearly_characters(by_likelihood)
    assert not is_nearly_characters(enough)
    assert not is_nearly_characters(by_count)
    assert by_likelihood.totals is not None
    assert by_count.totals is not None
    less, more = by_likelihood.totals.bytes_per_token, by_count.totals.bytes_per_token
    assert less is not None
    assert more is not None
    assert 2 * less < more


def test_few_merges_are_not_told_of() -> None:
    assert not is_nearly_characters(learn(words_of(many_languages()), WordPieceRecipe(1_900)))
