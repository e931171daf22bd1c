"""The definition of BPE learning against Hugging Face's trainer."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import tokenizers
from reference_bpe import learn_bpe


def hugging_face(
    words: list[tuple[str, int]],
    vocab_size: int,
    special_tokens: list[str],
    min_frequency: int,
    **options: Any,
) -> tuple[list[str], list[tuple[str, str]]]:
    """The same from Hugging Face's trainer: words parted by spaces, repeated as they count."""
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special_tokens,
        min_frequency=min_frequency,
        show_progress=False,
        **{name: value for name, value in options.items() if value},
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


def random_counts(rng: random.Random, alphabet: str) -> dict[str, int]:
    return {
        "".join(rng.choices(alphabet, k=rng.randint(1, 9))): rng.randint(1, 30)
        for _ in range(rng.randint(1, 8))
    }


@pytest.mark.parametrize("alphabet", ["ab", "abcd", "aé語😀"])
def test_alphabets_and_longest_tokens(alphabet: str) -> None:
    """initial_alphabet, limit_alphabet where no tie is at its border, max_token_length."""
    rng = random.Random(f"options {alphabet}")
    for _ in range(150):
        counts = random_counts(rng, alphabet)
        frequency = {c: sum(w.count(c) * n for w, n in counts.items()) for c in alphabet}
        options: dict[str, Any] = {"initial_alphabet": rng.sample("xyz", rng.choice([0, 2]))}
        if len(set(frequency.values())) == len(frequency):
            options["limit_alphabet"] = rng.choice([2, 3, 4])
        if rng.random() < 0.5:
            options["max_token_length"] = rng.randint(1, 6)
        ours = learn_bpe(
            counts.items(), vocab_size=40, alphabet="seen", symbol_bytes=str.encode, **options
        )
        assert ours == hugging_face(list(counts.items()), 40, [], 0, **options), (counts, options)


@pytest.mark.parametrize("alphabet", ["ab", "abcd"])
def test_decorations(alphabet: str) -> None:
    """Its ids of decorated symbols differ from run to run: only merges, where nothing ties."""
    rng = random.Random(f"decorations {alphabet}")
    compared = 0
    for _ in range(300):
        words = list(random_counts(rng, alphabet).items())
        options = {
            "continuing_subword_prefix": rng.choice(["", "##"]),
            "end_of_word_suffix": rng.choice(["", "</w>"]),
        }
        learned = [
            learn_bpe(
                words,
                vocab_size=30,
                alphabet="seen",
                tie_break=rule,
                symbol_bytes=str.encode,
                **options,
            )
            for rule in ("lowest_id", "first_seen", "greatest_bytes")
        ]
        if learned[0] == learned[1] == learned[2]:
            vocab, merges = hugging_face(words, 30, [], 0, **options)
            assert merges == learned[0][1]
            assert set(vocab) == set(learned[0][0])
            compared += 1
    assert compared > 10
