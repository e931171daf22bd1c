"""Every combination of settings that `train` accepts: it decodes what it encodes, here and there.

"There" is Hugging Face's `tokenizers` with the same `tokenizer.json`.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tokenizers import Tokenizer as Peer

import bpe_beam
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.tokenizer import Tokenizer

CORPUS = [
    "low lower lowest newer wider low, low. lower! it's",
    "low lower x<y # ## a##b </w> a</w>b low_er",
    "<0x41> <0x41> x <0xe4> <0xe4> y<0x41> y<0x41>",
    "the lower the newer  the low",
] * 3
WORDS = ["low lower", "lower newer", "low", "the x"]
"""Texts that every tokenizer gives back."""
UNSEEN = ["中", "low 中 er", "中 中", "中文 中文 low中 中low x中y", "é É", "😀😀 😀"]
"""Texts with characters outside the vocabulary."""
OTHERS = ["low, lower! low.", "<0x41> x <0xe4> y<0x41>", "low  lower ", "</w> a</w>b", "a##b ##"]
MODELS = ("bpe", "wordpiece", "prefix_bpe", "word_level")
PRETOKENIZERS = (
    "gpt2", "llama3", "bert", "whitespace", "whitespace_split", "metaspace", "digits",
    "punctuation", "none",
)  # fmt: skip
NORMALIZERS = ("none", "nfkc+lowercase", "bert", "dummy_prefix", "nfd+strip_accents")
DROP_BLANKS = ("bert", "whitespace", "whitespace_split")


def combinations(
    pretokenizers: tuple[str, ...], normalizers: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield options of `train`."""
    decorations = itertools.product(
        (None, "##", "@"), (None, "</w>"), (None, "$"), (False, True), ("bytes", "characters")
    )
    for model, pretokenizer, normalizer, decoration in itertools.product(
        MODELS, pretokenizers, normalizers, list(decorations)
    ):
        names = (
            "continuing_subword_prefix", "end_of_word_suffix", "end_of_word_symbol",
            "byte_fallback", "symbols",
        )  # fmt: skip
        options = {name: value for name, value in zip(names, decoration, strict=True) if value}
        if model != "bpe" and options.pop("symbols") == "bytes":
            continue
        yield {"model": model, "pretokenizer": pretokenizer, "normalizer": normalizer, **options}


def exact(options: dict[str, Any], text: str) -> bool:
    """Whether the settings alone say that a text is given back."""
    if options["normalizer"] not in ("none", "dummy_prefix"):
        return False
    dropped = options["pretokenizer"] in DROP_BLANKS
    marked = options.keys() & {
        "continuing_subword_prefix", "end_of_word_suffix", "end_of_word_symbol"
    }  # fmt: skip
    if options["model"] == "bpe" and dropped and not marked:
        return False  # nothing says where words end
    if text in WORDS:
        return options["model"] != "word_level" or dropped
    return text in UNSEEN and "byte_fallback" in options and options["pretokenizer"] != "bert"


def check(options: dict[str, Any]) -> str:
    """Check one combination, and return what became of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tokenizer = bpe_beam.train(
                CORPUS, vocab_size=600, min_frequency=2, workers=1, **options
            )
        except UsageError as error:
            assert error.parameters, options
            return "refused"
    assert isinstance(tokenizer, Tokenizer)
    peer = Peer.from_str(tokenizer.to_json())
    for text in (*WORDS, *UNSEEN, *OTHERS):
        try:
            ids = tokenizer.encode(text)
        except DataError:
            continue  # a character without a token, which the peer drops
        assert ids == peer.encode(text).ids, (options, text)
        decoded = tokenizer.decode(ids)
        assert decoded == peer.decode(ids, skip_special_tokens=False), (options, text)
        if exact(options, text):
            assert decoded == text, (options, text)
    return "trained"


def test_decoders_of_one_pretokenizer_of_each_kind() -> None:
    pretokenizers = ("gpt2", "whitespace_split", "metaspace")
    counts = Counter(map(check, combinations(pretokenizers, ("none",))))
    assert counts["trained"] > 30
    assert counts["refused"] > 30


@pytest.mark.slow
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_decoders_of_every_combination(normalizer: str) -> None:
    counts = Counter(map(check, combinations(PRETOKENIZERS, (normalizer,))))
    assert counts["trained"] > 50 or normalizer == "dummy_prefix"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"special_tokens": ["<0x4a>"]}, "special_tokens must not be the token of a byte"),
        ({"continuing_subword_prefix": "<0"}, "must not be part of a byte's token"),
        ({"continuing_subword_prefix": "#", "end_of_word_suffix": "#>>"}, "must not contain each"),
        ({"normalizer": "dummy_prefix"}, "dummy_prefix needs the pre-tokenizer metaspace"),
    ],
)
def test_what_cannot_be_decoded_is_refused(options: dict[str, Any], message: str) -> None:
    settings = {"pretokenizer": "whitespace_split", "byte_fallback": True, **options}
    with pytest.raises(UsageError, match=message):
        bpe_beam.train(CORPUS, vocab_size=600, workers=1, **settings)
