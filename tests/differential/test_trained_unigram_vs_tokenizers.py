"""Unigram models that Hugging Face trains, with every option: its ids, offsets and texts."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

pytest.importorskip("tokenizers")

import matrix
from made_text import documents
from matrix import DECODERS, NORMALIZERS, PRE_TOKENIZERS
from tokenizers import Tokenizer as HuggingFace
from tokenizers import models, trainers

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError

# `tokenizers` panics if a suffix is taken off and nothing is left.
DECODING = [name for name in DECODERS if name != "bpe"]


def trained(rng: random.Random) -> str:
    """Return a tokenizer with options drawn at random."""
    theirs = HuggingFace(models.Unigram())
    theirs.normalizer = rng.choice([None, *NORMALIZERS.values()])
    theirs.pre_tokenizer = rng.choice([*PRE_TOKENIZERS.values()])
    theirs.decoder = DECODERS[rng.choice(DECODING)]
    special = rng.choice([["<unk>"], ["<s>", "<unk>", "</s>"]])
    trainer = trainers.UnigramTrainer(
        vocab_size=rng.choice([300, 500]),
        special_tokens=special,
        unk_token=rng.choice(["<unk>", "<unk>", None]),
        shrinking_factor=rng.choice([0.5, 0.75, 0.9]),
        max_piece_length=rng.choice([1, 3, 16]),
        n_sub_iterations=rng.choice([1, 2]),
        initial_alphabet=rng.choice([[], ["é", "語", "▁"]]),
        show_progress=False,
    )
    theirs.train_from_iterator(documents(rng.choice([20, 60]), seed=rng.randrange(1000)), trainer)
    made = json.loads(theirs.to_str())
    # Some training leaves scores that are no numbers; `tokenizers` cannot read its own file then.
    made["model"]["vocab"] = [
        [piece, -30.0 if score is None else score] for piece, score in made["model"]["vocab"]
    ]
    if rng.random() < 0.4:
        made["model"]["byte_fallback"] = True
        known = {piece for piece, _ in made["model"]["vocab"]}
        names = [f"<0x{byte:02X}>" for byte in range(256)]
        made["model"]["vocab"] += [[name, -15.0] for name in names if name not in known]
    return json.dumps(made)


def theirs_of(tokenizer: HuggingFace, text: str) -> Any:
    try:
        found = tokenizer.encode(text, add_special_tokens=False)
    except Exception:  # the class of all errors of tokenizers
        return None
    return found.ids, found.offsets, tokenizer.decode(found.ids, skip_special_tokens=False)


def ours_of(tokenizer: Tokenizer, text: str) -> Any:
    try:
        _, ids, offsets = tokenizer.encode_with_offsets(text, allowed_special="all")
    except DataError:
        return None
    assert tokenizer.encode(text, allowed_special="all") == ids
    return ids, offsets, tokenizer.decode(ids)


def check(seeds: range) -> None:
    encoded = 0
    for seed in seeds:
        rng = random.Random(seed)
        file = trained(rng)
        theirs, ours = HuggingFace.from_str(file), Tokenizer.from_json(file)
        for text in [*rng.sample(matrix.texts(), 25), *documents(3, seed)]:
            expected = theirs_of(theirs, text)
            encoded += expected is not None
            parts = {key: value for key, value in json.loads(file).items() if key != "model"}
            assert ours_of(ours, text) == expected, (seed, text, parts)
    assert encoded > len(seeds) * 10


@pytest.mark.slow
def test_some_trained_unigrams() -> None:
    check(range(60))


@pytest.mark.scheduled
def test_500_trained_unigrams() -> None:
    check(range(60, 560))
