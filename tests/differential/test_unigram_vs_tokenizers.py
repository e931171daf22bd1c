"""Unigram models of any pieces and scores: the same file, ids and offsets as Hugging Face's."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer as HuggingFace
from tokenizers import models, pre_tokenizers

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError

LETTERS = "abcé語 ▁x"
SCORES = (0.0, -1.0, -2.0, -3.5, -0.1)


def any_pieces(rng: random.Random, fallback: bool) -> list[tuple[str, float]]:
    """Return pieces, some of which are equal or empty, and most of the bytes."""
    pieces = []
    for _ in range(rng.randint(1, 25)):
        size = rng.randint(rng.random() > 0.05, 4)
        score = rng.choice([*SCORES, rng.uniform(-12, 0), rng.uniform(-2, 30)])
        pieces.append(("".join(rng.choices(LETTERS, k=size)), score))
    if fallback:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256) if rng.random() < 0.999]
        rng.shuffle(pieces)
    return pieces


def encoded(theirs: HuggingFace, text: str) -> tuple[list[int], list[tuple[int, int]]] | None:
    try:
        made = theirs.encode(text, add_special_tokens=False)
    except Exception:  # the class of all errors of tokenizers
        return None
    return made.ids, made.offsets


def encoded_here(tokenizer: Tokenizer, text: str) -> tuple[list[int], list[tuple[int, int]]] | None:
    try:
        _, ids, offsets = tokenizer.encode_with_offsets(text)
    except DataError:
        return None
    assert tokenizer.encode(text) == ids
    return ids, offsets


@pytest.mark.parametrize("fallback", [False, True])
def test_any_unigram(fallback: bool) -> None:
    rng = random.Random(fallback)
    refused = 0
    for _ in range(150):
        pieces = any_pieces(rng, fallback)
        unk = rng.randrange(len(pieces)) if rng.random() < 0.9 else None
        theirs = HuggingFace(models.Unigram(pieces, unk, fallback))
        if rng.random() < 0.5:
            theirs.pre_tokenizer = pre_tokenizers.Metaspace()
        ours = Tokenizer.from_json(theirs.to_str(pretty=True))
        assert ours.to_json() == theirs.to_str(pretty=True)
        for _ in range(10):
            text = "".join(rng.choices(LETTERS + "zyü", k=rng.randint(0, 30)))
            expected = encoded(theirs, text)
            refused += expected is None
            assert encoded_here(ours, text) == expected, (text, pieces, unk)
    assert refused > 20
