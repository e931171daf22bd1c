"""The training of `mingram` against the reference."""

from __future__ import annotations

import pytest
from piece_checks import check, words_of

from bpe_beam.training.learn import learn
from bpe_beam.training.recipe import MinGramRecipe


@pytest.mark.sampled(10, 2)
@pytest.mark.parametrize("chunk", range(40))
def test_equals_the_reference(chunk: int) -> None:
    for seed in range(50 * chunk, 50 * chunk + 50):
        check("mingram", seed)


@pytest.mark.quick
def test_the_worked_example() -> None:
    words = words_of({"▁hug": 10, "▁pug": 5, "▁pun": 12, "▁bun": 4, "▁hugs": 5})
    merges: list[int] = []
    recipe = MinGramRecipe(13, character_coverage="1", overshoot_factor="1.5")
    learned = learn(words, recipe, merges.append)
    assert list(learned.vocab) == ["<unk>", "▁hug", "▁pun", "s", "ug", "▁p", *"bnu▁ghp"]
    assert learned.scores == [
        8 * -68.0625 - 8, -65.3515625, -65.578125, *[-66.453125] * 3, *[-66.671875] * 4,
        *[-68.0625] * 3,
    ]  # fmt: skip
    assert sum(merges) == 6
