"""Scanners of runs against the pre-tokenizers of `tokenizers`.

It follows older versions of Unicode, several of them. A character is compared if its category is
the one that it had in Unicode 3.2, which Python still knows: such characters every version since
has seen alike. What its names promise to us is by `regex`: see tests/native/scan/test_scanners.py.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from some_of import SomeOf

from bpe_beam import _native

tokenizers = pytest.importorskip("tokenizers")
pre_tokenizers = tokenizers.pre_tokenizers

OTHERS = {
    "bert": pre_tokenizers.BertPreTokenizer(),
    "whitespace": pre_tokenizers.Whitespace(),
    "whitespace_split": pre_tokenizers.WhitespaceSplit(),
    "digits": pre_tokenizers.Digits(individual_digits=False),
    "digits_individual": pre_tokenizers.Digits(individual_digits=True),
    "punctuation": pre_tokenizers.Punctuation(),
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
}
CHARACTERS = [
    chr(c)
    for c in (*range(0xD800), *range(0xE000, 0x110000))
    if unicodedata.category(chr(c)) == unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"
]


def differing(name: str, text: str) -> list[str]:
    """The words that only one of the two finds."""
    data = text.encode()
    offsets = np.cumsum([0, *(len(character.encode()) for character in text)])
    theirs = {
        (int(offsets[a]), int(offsets[b]))
        for _, (a, b) in OTHERS[name].pre_tokenize_str(text)
        if a < b
    }
    ours = {*map(tuple, _native.scan_words(data, name).tolist())}
    return [data[a:b].decode() for a, b in sorted(ours ^ theirs)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OTHERS)
def test_every_character_of_old(name: str, some_of: SomeOf) -> None:
    assert len(CHARACTERS) > 90_000
    for start in some_of(range(0, len(CHARACTERS), 1000)):
        text = "".join(f"a{c}1{c}," for c in CHARACTERS[start : start + 1000])
        assert differing(name, text) == []


@pytest.mark.parametrize("name", OTHERS)
def test_random_texts(name: str) -> None:
    random = np.random.default_rng(5)
    characters = np.array([*"aaaab1 \n.,'é語½\u0301", *CHARACTERS[:: len(CHARACTERS) // 40]])
    for _ in range(500):
        assert differing(name, "".join(random.choice(characters, 20))) == []
