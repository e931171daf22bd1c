"""The native trainer compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence

import reference_bpe
from counted_words import words_of

from bpe_beam.tokenizer.components import byte_level
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe

Counted = Sequence[tuple[bytes, int]]


def check(counted: Counted, recipe: BpeRecipe) -> TrainingResult:
    """Train, and compare vocabulary, merges and their counts; return the result."""
    learned = learn(words_of(counted), recipe)
    as_chars = [(byte_level.to_chars(word), count) for word, count in counted]
    vocab, merges = reference_bpe.learn_bpe(
        as_chars,
        vocab_size=recipe.vocab_size,
        alphabet="bytes" if recipe.all_bytes else "seen",
        special_tokens=recipe.special_tokens,
        unk_token=recipe.unk_token,
        min_frequency=recipe.min_frequency,
        tie_break=recipe.tie_break,
        initial_alphabet=recipe.initial_alphabet,
        limit_alphabet=recipe.limit_alphabet,
        max_token_length=recipe.max_token_length,
    )
    assert list(learned.vocab.items()) == [(token, i) for i, token in enumerate(vocab)]
    assert learned.merges == tuple(merges)
    if recipe.limit_alphabet is None and recipe.max_token_length is None:
        check_counts(as_chars, learned)
    return learned


def check_counts(words: Sequence[tuple[str, int]], learned: TrainingResult) -> None:
    rules = reference_bpe.Rules(0)
    split = reference_bpe.split_words(words, {*"".join(word for word, _ in words)})
    for pair, count in zip(learned.merges, learned.counts, strict=True):
        assert reference_bpe.count_pairs(split)[pair] == count
        split = [
            (reference_bpe.merge_pair(symbols, pair, rules), times) for symbols, times in split
        ]
