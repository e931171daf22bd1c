"""`prefix_bpe` against Hugging Face's WordPieceTrainer, which is BPE with a prefix.

This checks the prefix-BPE variant; WordPiece by likelihood is another algorithm, which
Hugging Face does not have.
"""

from __future__ import annotations

import json
import random

import pytest
import tokenizers
from counted_words import words_of

from bpe_beam.training.learn import learn
from bpe_beam.training.recipe import TIE_BREAKS, BpeRecipe
from bpe_beam.training.tokenizer_parts import tokenizer_of


@pytest.mark.parametrize("trials", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_equal_where_nothing_ties(trials: int) -> None:
    """Its ids come from a hash map, so ties are its own affair: sets are compared, and encodings
    by strings."""
    made = random.Random("prefix")
    compared = 0
    for _ in range(trials):
        counts = {
            "".join(made.choices("abcdé", k=made.randint(1, 8))): made.randint(1, 40)
            for _ in range(made.randint(1, 8))
        }
        recipes = [
            BpeRecipe(
                40,
                symbols="characters",
                tie_break=rule,
                unk_token="[UNK]",
                continuing_subword_prefix="##",
                for_wordpiece=True,
            )
            for rule in TIE_BREAKS
        ]
        learned = [learn(words_of(list(counts.items())), recipe) for recipe in recipes]
        if len({one.merges for one in learned}) > 1:
            continue
        theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=40, special_tokens=["[UNK]"], show_progress=False
        )
        texts = [" ".join([word] * count) for word, count in counts.items()]
        theirs.train_from_iterator(texts, trainer)
        assert set(json.loads(theirs.to_str())["model"]["vocab"]) == set(learned[0].vocab)
        ours = tokenizer_of(learned[0], recipes[0], "none", "whitespace_split")
        for text in (" ".join(counts), "abcd zab éa"):
            assert ours.encode_with_offsets(text)[0] == theirs.encode(text).tokens
        same = tokenizers.Tokenizer.from_str(ours.to_json())
        assert same.encode("abcd zab éa").ids == ours.encode("abcd zab éa")
        compared += 1
    assert compared > trials // 30
