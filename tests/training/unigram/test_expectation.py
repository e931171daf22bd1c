"""The training of `unigram` against the reference, and its properties."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from piece_checks import check, check_settings, random_words, words_of
from reference_unigram import Settings

from bpe_beam.errors import DataError, UsageError
from bpe_beam.training import learn as learning
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import UnigramRecipe

HUGS = {"▁hug": 10, "▁pug": 5, "▁pun": 12, "▁bun": 4, "▁hugs": 5}


@pytest.mark.sampled(10, 2)
@pytest.mark.parametrize("chunk", range(40))
def test_equals_the_reference(chunk: int) -> None:
    for seed in range(50 * chunk, 50 * chunk + 50):
        check("unigram", seed)


@pytest.mark.quick
def test_a_long_piece_of_rare_characters() -> None:
    # The ways to spell it have probabilities beyond the exponents of doubles.
    letters = [chr(0x4E00 + number) for number in range(64)]
    long = "▁" + "".join(random.Random(1).choices(letters, k=400))
    settings = Settings(70, coverage=Fraction(1), max_piece_length=512)
    check_settings("unigram", {long: 50, **dict.fromkeys(letters, 1000)}, settings)


@pytest.mark.quick
def test_the_worked_example() -> None:
    learned = learn(words_of(HUGS), UnigramRecipe(11, character_coverage="1"))
    assert list(learned.vocab) == ["<unk>", "▁hug", "▁pun", "s", *"bghnpu▁"]
    assert learned.scores == [-54.0, -1.109375, -1.34375, -2.28125, *[-5.75] * 7]


@pytest.mark.quick
def test_each_pass_is_reported() -> None:
    passes: list[int] = []
    learn(words_of(HUGS), UnigramRecipe(11, character_coverage="1"), passes.append)
    assert passes == [1] * 5  # two, a pruning, two


@pytest.mark.parametrize("seed", range(10))
def test_equal_words_may_be_counted_in_parts(seed: int) -> None:
    counts = {word + "x": count for word, count in random_words(random.Random(seed)).items()}
    recipe = UnigramRecipe(60, character_coverage="1")
    halves = words_of(counts)
    both = Words(
        np.concatenate([halves.data, halves.data]),
        np.concatenate([halves.offsets, halves.offsets[1:] + halves.offsets[-1]]),
        np.concatenate([halves.counts, halves.counts]),
    )
    once = learn(words_of({word: 2 * count for word, count in counts.items()}), recipe)
    twice = learn(both, recipe)
    assert (twice.vocab, twice.scores) == (once.vocab, once.scores)


@pytest.mark.quick
def test_tokens_of_some_words_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = UnigramRecipe(11, character_coverage="1")
    expected = learn(words_of(HUGS), recipe).totals
    monkeypatch.setattr(learning, "_ENCODED_WORDS", 2)
    assert learn(words_of(HUGS), recipe).totals == expected


def test_words_of_unknown_characters_change_nothing() -> None:
    recipe = UnigramRecipe(11, character_coverage="0.9")
    learned = learn(words_of({**HUGS, "▁hug": 1000}), recipe)
    more = learn(words_of({**HUGS, "▁hug": 1000, "語": 1}), recipe)
    assert (more.vocab, more.scores) == (learned.vocab, learned.scores)


LARGE = 2**63 - 1


@pytest.mark.quick
def test_counts_up_to_63_bits() -> None:
    recipe = UnigramRecipe(5, character_coverage="1")
    learned = learn(words_of({"ab": LARGE // 2}), recipe)
    assert learned.vocab == {"<unk>": 0, "ab": 1, "a": 2, "b": 3}
    with pytest.raises(OverflowError, match="2\\^63"):
        learn(words_of({"ab": LARGE // 2 + 1}), recipe)


@pytest.mark.quick
def test_a_vocabulary_without_room() -> None:
    recipe = UnigramRecipe(8, character_coverage="1")
    with pytest.raises(UsageError, match="must be at least 9 "):
        learn(words_of(HUGS), recipe)
    exact = learn(words_of(HUGS), UnigramRecipe(9, character_coverage="1"))
    assert set(exact.vocab) == {"<unk>", *"bghnpsu▁"}


@pytest.mark.quick
@pytest.mark.parametrize("counts", [{}, {"": 3}])
def test_no_words(counts: dict[str, int]) -> None:
    with pytest.raises(DataError, match="no words"):
        learn(words_of(counts), UnigramRecipe(9))


def test_long_words_take_linear_time() -> None:
    learned = learn(words_of({"▁" + "a" * 10**6: 3, "ab" * 10**5: 1}), UnigramRecipe(30))
    assert "a" * 16 in learned.vocab
