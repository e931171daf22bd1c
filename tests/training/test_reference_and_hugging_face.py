"""The definition of BPE learning against Hugging Face's trainer."""

from __future__ import annotations

import json
import random

import pytest
import tokenizers

from bpe_beam.training.reference import learn_bpe


def hugging_face(
    words: list[tuple[str, int]], vocab_size: int, special_tokens: list[str], min_frequency: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """The same from Hugging Face's trainer: words parted by spaces, repeated as they count."""
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        show_progress=False,
    )
    learner.train_from_iterator([" ".join([word] * count) for word, count in words], trainer)
    model = json.loads(learner.to_str())["model"]
    return list(model["vocab"]), [tuple(pair) for pair in model["merges"]]


@pytest.mark.parametrize("alphabet", ["a", "ab", "abcd", "aé語😀"])
def test_equal_to_hugging_face(alphabet: str) -> None:
    """`lowest_id` is its rule, also where a joined token is a special token's text.

    Its trainer keeps heap entries that may be stale, and never lowers the count of the pair that
    it merges; neither shows while each string of symbols is made by one pair only. That holds
    whenever the symbols are single characters: inside the bounds of a future token, the merges
    do the same at every place, so all its occurrences are finished by the same merge.
    """
    rng = random.Random(alphabet)
    for _ in range(150):
        counts = {
            "".join(rng.choices(alphabet, k=rng.randint(1, 12))): rng.randint(1, 9)
            for _ in range(rng.randint(1, 8))
        }
        words = list(counts.items())
        special_tokens = [
            "".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(rng.randint(0, 3))
        ]
        size = len({*"".join(counts), *special_tokens}) + rng.randint(0, 25)
        min_frequency = rng.choice([0, 0, 2, 5])
        ours = learn_bpe(
            words,
            vocab_size=size,
            alphabet="seen",
            special_tokens=special_tokens,
            min_frequency=min_frequency,
        )
        assert ours == hugging_face(words, size, special_tokens, min_frequency)
