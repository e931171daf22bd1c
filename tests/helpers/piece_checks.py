"""Random corpora for the trainings of pieces, which must equal the reference."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from reference_unigram import (
    Settings,
    kept_characters,
    reserved_score,
    train_mingram,
    train_unigram,
)

from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import MinGramRecipe, UnigramRecipe

_ALPHABETS = ("ab", "abc", "abcdefgh", "ab1'", "aé1漢かー\u0301", "abcdЖ語")


def words_of(counts: Mapping[str, int]) -> Words:
    """Return counted words as a trainer reads them."""
    encoded = [word.encode() for word in counts]
    return Words(
        np.frombuffer(b"".join(encoded), np.uint8),
        np.cumsum([0, *map(len, encoded)], dtype=np.int64),
        np.array(list(counts.values()), np.int64),
    )


def random_words(rng: random.Random) -> dict[str, int]:
    """Return up to 30 words of few different characters, often with common parts."""
    letters = rng.choice(_ALPHABETS)
    stems = ["".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(6)]
    words = {}
    for _ in range(rng.randint(1, 30)):
        parts = rng.choices([*stems, *letters], k=rng.randint(1, 3))
        count = rng.choice([1, 2, rng.randint(1, 100), rng.choice([1, 10**6, 2**40])])
        words[rng.choice(["▁", "▁", ""]) + "".join(parts)] = count
    return words


def random_settings(rng: random.Random, words: Mapping[str, int]) -> Settings:
    """Return settings whose vocabulary has room for the characters."""
    settings = Settings(
        0,
        specials=rng.choice([("<unk>",), ("<pad>", "<unk>", "ab", "▁a")]),
        byte_fallback=rng.random() < 0.1,
        initial_alphabet=rng.choice(["", "", "az", "語"]),
        coverage=rng.choice([Fraction(1), Fraction(9995, 10000), Fraction(9, 10)]),
        max_piece_length=rng.choice([1, 2, 3, 16, 16]),
        by_script=rng.random() < 0.7,
        seed_size=rng.choice([1, 5, 1_000_000]),
        shrinking=rng.choice([Fraction(1, 2), Fraction(3, 4), Fraction(95, 100)]),
        sub_iterations=rng.choice([1, 2, 3]),
        overshoot=rng.choice([Fraction(1), Fraction(115, 100), Fraction(3, 2)]),
    )
    entries = len(settings.reserved) + len(kept_characters(words, settings))
    return replace(settings, vocab_size=entries + rng.randint(0, 30))


def recipe_of(model: str, settings: Settings) -> UnigramRecipe | MinGramRecipe:
    """Return the recipe that means the same as settings of the reference."""
    common: dict[str, Any] = {
        "vocab_size": settings.vocab_size,
        "special_tokens": settings.specials,
        "unk_token": "<unk>",
        "initial_alphabet": tuple(settings.initial_alphabet),
        "character_coverage": str(float(settings.coverage)),
        "max_piece_length": settings.max_piece_length,
        "split_by_unicode_script": settings.by_script,
        "byte_fallback": settings.byte_fallback,
    }
    if model == "mingram":
        return MinGramRecipe(**common, overshoot_factor=str(float(settings.overshoot)))
    return UnigramRecipe(
        **common,
        seed_size=settings.seed_size,
        shrinking_factor=str(float(settings.shrinking)),
        sub_iterations=settings.sub_iterations,
    )


def check(model: str, seed: int, words: Mapping[str, int] | None = None) -> None:
    """Compare a training with random settings with the reference's."""
    rng = random.Random(seed)
    words = random_words(rng) if words is None else words
    check_settings(model, words, random_settings(rng, words))


def check_settings(model: str, words: Mapping[str, int], settings: Settings) -> None:
    """Compare all pieces and scores with the reference's, for one and for several threads."""
    pieces = (train_mingram if model == "mingram" else train_unigram)(words, settings)
    low = reserved_score(pieces, settings.reserved)
    expected = [*((entry, low) for entry in settings.reserved), *pieces]
    recipe = recipe_of(model, settings)
    shuffled = dict(random.Random(1).sample(list(words.items()), len(words)))
    for counts, threads in ((words, 1), (shuffled, 3)):
        learned = learn(words_of(counts), recipe, threads=threads)
        assert list(zip(learned.vocab, learned.scores, strict=True)) == expected
        assert list(learned.vocab.values()) == list(range(len(expected)))
