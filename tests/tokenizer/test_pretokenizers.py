"""Names of pre-tokenizers and normalizers, and places where a text may be cut."""

from __future__ import annotations

import random

import pytest

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.normalizers import normalizer_from_name
from bpe_beam.tokenizer.pretokenizers import ByteLevelPreTokenizer, pretokenizer_from_name
from bpe_beam.tokenizer.reference import pretokenize

pytestmark = pytest.mark.quick


def test_names() -> None:
    assert pretokenizer_from_name("gpt2") == ByteLevelPreTokenizer()
    assert pretokenizer_from_name("gpt2").name == "gpt2"
    assert normalizer_from_name("none") is None
    with pytest.raises(UsageError, match="pretokenizer 'gpt3': this version of bpe-beam has gpt2"):
        pretokenizer_from_name("gpt3")
    with pytest.raises(UsageError, match="normalizer 'nfc': this version of bpe-beam has none"):
        normalizer_from_name("nfc")


def safe_cuts(text: str) -> list[int]:
    """The safe cuts, in characters, the last first."""
    data = text.encode()
    return [len(data[:cut].decode()) for cut in ByteLevelPreTokenizer().safe_cuts(data)]


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("", []),
        ("a", []),
        ("a b", [1]),  # the space and `b` follow
        ("a ", []),  # one character is not enough
        ("ab cd e", [5, 2]),
        ("a  b", [1]),  # not after the first space, where the text so far ends in a space
        ("a\n\nb", [1]),
        ("it's a", [4, 2]),
        ("'r", []),  # could become 're
        ("'rx", [1]),
        ("éé 语语", [2]),
        ("aaaaaaaaaa", []),
        ("          ", []),
        ("a1.b2", [3, 2, 1]),
    ],
)
def test_safe_cuts(text: str, cuts: list[int]) -> None:
    assert safe_cuts(text) == cuts


def test_safe_cuts_give_the_same_words_whatever_follows() -> None:
    """Every text of few characters that exercise the pattern, and every way to go on."""
    rng = random.Random(0)
    letters = "''' \n\tsdmtlrvea é1½.!语\u3000\x1c"
    cut_texts = 0
    for _ in range(6000):
        text = "".join(rng.choices(letters, k=rng.randint(1, 14)))
        known = text[: rng.randint(0, len(text))]
        for cut in safe_cuts(known):
            assert pretokenize(text[:cut]) + pretokenize(text[cut:]) == pretokenize(text)
            cut_texts += 1
    assert cut_texts > 5000


def test_isspace_holds_for_all_that_the_scanner_takes_for_a_space() -> None:
    """`safe_cuts` relies on it. Of two spaces before a letter, only the first is a word."""
    spaces = []
    for code_point in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(code_point)
        data = character.encode()
        if _native.scan_words(data + data + b"x", "gpt2")[:, 1][0] == len(data):
            spaces.append(character)
    assert len(spaces) >= 25
    assert all(character.isspace() for character in spaces)
