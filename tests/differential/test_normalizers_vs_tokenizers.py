"""The native normalizers give the text and the places that Hugging Face's tokenizers give.

Their normalization forms and StripAccents follow Unicode 9.0, BERT's categories an older one, ours
18.0. The characters that Unicode added since, or whose category it changed, are the only ones that
differ, and each test that meets them says how many they are.
"""

from __future__ import annotations

import functools

import pytest
import regex
from code_points import of_used_planes
from hypothesis import given, settings
from hypothesis import strategies as st
from some_of import SomeOf
from tokenizers import PreTokenizedString, Regex, normalizers

from bpe_beam import _native

SEPARATOR = "|"
# The separator itself, and what becomes it in NFKC.
CHARACTERS = [
    chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and c not in (0x7C, 0xFF5C)
]
OF_USED_PLANES = of_used_planes(CHARACTERS)


def spans(text: bytes) -> list[tuple[int, int]]:
    return [match.span() for match in regex.finditer("[ab]+|\u0301".encode(), text)]


FORMS = {
    "nfc": (("NFC",), normalizers.NFC()),
    "nfd": (("NFD",), normalizers.NFD()),
    "nfkc": (("NFKC",), normalizers.NFKC()),
    "nfkd": (("NFKD",), normalizers.NFKD()),
}
OTHERS = {
    "lowercase": (("Lowercase",), normalizers.Lowercase()),
    "strip_accents": (("StripAccents",), normalizers.StripAccents()),
    "byte_level": (("ByteLevel",), normalizers.ByteLevel()),
    "strip": (("Strip", True, True), normalizers.Strip()),
    "strip_left": (("Strip", True, False), normalizers.Strip(left=True, right=False)),
    "strip_right": (("Strip", False, True), normalizers.Strip(left=False, right=True)),
    "prepend": (("Prepend", "xy"), normalizers.Prepend("xy")),
    "replace": (("Replace", ("literal", b" "), "__"), normalizers.Replace(" ", "__")),
    "remove": (("Replace", ("literal", b"aa"), ""), normalizers.Replace("aa", "")),
    "between": (("Replace", ("literal", b""), "x"), normalizers.Replace("", "x")),
    "word_end": (
        ("Replace", ("word_end",), "_"),
        normalizers.Replace(Regex(r"(?<=\S)(?=\s|$)"), "_"),
    ),
    "regex": (
        ("Replace", ("regex", spans), "QR"),
        normalizers.Replace(Regex("[ab]+|\u0301"), "QR"),
    ),
    "sequence": (
        (
            "Sequence",
            [
                ("NFKD",), ("StripAccents",), ("Lowercase",), ("Prepend", "_"),
                ("Replace", ("literal", b" "), "__"), ("NFC",),
            ],
        ),
        normalizers.Sequence(
            [
                normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                normalizers.Prepend("_"), normalizers.Replace(" ", "__"), normalizers.NFC(),
            ]
        ),
    ),
    "sequence_of_forms": (
        ("Sequence", [("Strip", True, False), ("NFD",), ("NFKC",), ("ByteLevel",)]),
        normalizers.Sequence(
            [
                normalizers.Strip(left=True, right=False), normalizers.NFD(),
                normalizers.NFKC(), normalizers.ByteLevel(),
            ]
        ),
    ),
}  # fmt: skip
FLAGS = [tuple(bool(bits >> i & 1) for i in range(4)) for bits in range(16)]
BERT = {
    f"bert{flags}": (("BertNormalizer", *flags), normalizers.BertNormalizer(*flags))
    for flags in FLAGS
}
PAIRS = FORMS | OTHERS | BERT


def differing(name: str, characters: list[str] = OF_USED_PLANES) -> set[str]:
    """Return which characters become something else here than there, alone or among marks."""
    step, theirs = PAIRS[name]
    found = set()
    # A mark of the last class: every other one is sorted before it.
    for before in ("a", "a\u0345"):
        text = SEPARATOR.join(before + character for character in characters)
        ours_left = _native.normalize(step, text.encode(), False)[0].decode().split(SEPARATOR)
        theirs_left = theirs.normalize_str(text).split(SEPARATOR)
        rows = zip(characters, ours_left, theirs_left, strict=True)
        found |= {character for character, a, b in rows if a != b}
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "characters", [OF_USED_PLANES, pytest.param(CHARACTERS, marks=pytest.mark.slow)], ids=len
)
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("nfc", 188), ("nfd", 209), ("nfkc", 427), ("nfkd", 448), ("strip_accents", 487),
        ("byte_level", 0), ("strip", 0),
        (f"bert{(True, False, False, False)}", 20),
        (f"bert{(False, True, False, False)}", 0),
        (f"bert{(False, False, True, False)}", 540),
    ],
)  # fmt: skip
def test_every_code_point(name: str, number: int, characters: list[str]) -> None:
    assert len(differing(name, characters)) == number


def test_every_lower_case() -> None:
    """Theirs is that of the Rust they were built with: all that it does not know is newer."""
    different = differing("lowercase")
    assert len(different) <= 74
    assert all(normalizers.Lowercase().normalize_str(c) == c for c in different)


@functools.cache
def newer() -> frozenset[str]:
    """All the characters that some normalizer does not know there."""
    names = ["nfd", "nfkd", "lowercase", "strip_accents"]
    return frozenset().union(*map(differing, [*names, f"bert{(True, False, True, False)}"]))


Placed = list[tuple[str, tuple[int, int]]]


def placed_here(step: tuple[object, ...], text: str) -> Placed:
    """Each character of the result with its place in bytes of the text."""
    result, places = _native.normalize(step, text.encode(), True)
    assert places is not None
    found: Placed = []
    at = 0
    for character in result.decode():
        end = at + len(character.encode())
        assert (places[at:end] == places[at]).all()
        found.append((character, (int(places[at][0]), int(places[at][1]))))
        at = end
    return found


def placed_there(normalizer: normalizers.Normalizer, text: str) -> Placed:
    pieces = PreTokenizedString(text)
    pieces.normalize(normalizer.normalize)
    # Cut into characters, each piece's offsets are its character's alignment.
    pieces.split(lambda _, piece: piece.split(Regex("(?m:.)"), "isolated"))
    return [(piece, tuple(place)) for piece, place, _ in pieces.get_splits("original", "byte")]  # type: ignore[misc]


# Marks of many classes, also two that stay when nonspacing ones go; what decomposes into marks,
# starters, several characters; what composes with what follows; spaces, controls, ideographs.
FRAGMENTS = (
    *"aab  AÉéẞİﬁ½①ǅ中国\uf900가각각Σς…ﷺẹ́ṩ\u212b\ufb2c\u05d0",
    *"\u0301\u0323\u0307\u0344\u0345\u0327\u0f71\u0f72\u0f73\u0f74\u302e\u302f\u0340\u1b05\u1b35",
    *"\t\n\r\x00\x01\x7f\x85\u00a0\u200b\u2028\u3000\ufffd\U0001d15e\U0001d165",
)  # fmt: skip
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(FRAGMENTS),
        st.characters(codec="utf-8").filter(lambda character: character not in newer()),
    ),
    max_size=14,
).map("".join)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PAIRS)
def test_places(name: str, some_of: SomeOf) -> None:
    newer()  # takes seconds, once: not within an example

    @settings(max_examples=len(some_of(range(150), every=8)), deadline=None)
    @given(TEXTS)
    def check(text: str) -> None:
        step, theirs = PAIRS[name]
        assert placed_here(step, text) == placed_there(theirs, text)

    check()
