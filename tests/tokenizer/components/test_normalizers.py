"""The native normalizers against Python's Unicode data and `regex`, on every code point.

Python's data is older than ours; Unicode never changes how an assigned character is normalized or
what its lower case is, so all that Python knows must be equal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
import regex
from code_points import of_used_planes

from bpe_beam import _native

pytestmark = pytest.mark.quick

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# What comes before and after the character: nothing, a letter, marks it may be sorted among.
CONTEXTS = (("", ""), ("a", ""), ("a\u0345", ""), ("\u1100", "\u0301"), ("é\u0323", "\u11a8"))


def normalized(step: tuple[object, ...], text: str) -> str:
    return _native.normalize(step, text.encode(), False)[0].decode()


@pytest.fixture(
    scope="module", params=["used planes", pytest.param("all planes", marks=pytest.mark.slow)]
)
def characters(request: pytest.FixtureRequest) -> list[str]:
    """Every code point of the planes that have characters, or of all."""
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return of_used_planes(every) if request.param == "used planes" else every


@pytest.fixture(scope="module")
def known(characters: list[str]) -> list[str]:
    """Those that Python knows."""
    return [c for c in characters if unicodedata.category(c) != "Cn"]


def matching(pattern: str, characters: list[str]) -> set[str]:
    return set(regex.findall(pattern, "".join(characters)))


def results(step: tuple[object, ...], characters: Iterable[str]) -> dict[str, str]:
    """What becomes of each character between two letters."""
    return {c: normalized(step, f"x{c}x")[1:-1] for c in characters}


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_those_of_unicodedata(form: str, known: list[str]) -> None:
    for before, after in CONTEXTS:
        # A newline joins nothing: one call does for all.
        text = "\n".join(before + c + after for c in known)
        assert normalized((form,), text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_all_characters_are_stable(form: str, characters: list[str]) -> None:
    """Also of those that Python does not know: a form twice is that form, from every other."""
    text = "\n".join("a" + c + "\u0323" for c in characters)
    once = normalized((form,), text)
    assert normalized((form,), once) == once
    assert normalized((form,), normalized(("NFD",), text)) == once
    assert normalized((form,), normalized(("NFC",), text)) == once


def test_lower_case(characters: list[str], known: list[str]) -> None:
    lower = results(("Lowercase",), characters)
    newer = set(characters) - set(known)
    for character in known:
        assert lower[character] == character.lower()
    changed = {c for c in newer if lower[c] != c}
    assert changed <= matching(r"[\p{Lu}\p{Lt}]", characters)
    # Letters of Unicode 16 and 17.
    assert (lower["\ua7dc"], lower["\ua7ce"]) == ("\u019b", "\ua7cf")
    for character in changed:
        assert regex.fullmatch(r"\p{Ll}", lower[character])
        assert regex.fullmatch(regex.escape(character), lower[character], regex.IGNORECASE)


def test_lower_case_knows_no_words() -> None:
    assert normalized(("Lowercase",), "ΛΣ ΛΣ") == "\u03bb\u03c3 \u03bb\u03c3"


def test_strip_accents_drops_marks_and_nothing_else(characters: list[str]) -> None:
    dropped = {c for c, left in results(("StripAccents",), characters).items() if left == ""}
    assert dropped == matching(r"\p{M}", characters)
    assert normalized(("StripAccents",), "e\u0301é") == "eé"


def test_strip_takes_white_space(characters: list[str]) -> None:
    spaces = {c for c in characters if normalized(("Strip", True, True), f"{c}x{c}") == "x"}
    assert spaces == matching(r"\s", characters)
    assert normalized(("Strip", True, False), " x ") == "x "
    assert normalized(("Strip", False, True), " x ") == " x"


def test_bert_cleaning(characters: list[str]) -> None:
    left = results(("BertNormalizer", True, False, False, False), characters)
    blank = {"\t", "\n", "\r"}
    dropped = matching(r"[\p{Cc}\p{Cf}\p{Co}\ufffd]", characters) - blank
    assert {c for c, text in left.items() if text == ""} == dropped
    spaces = (matching(r"\s", characters) | blank) - dropped
    assert {c for c, text in left.items() if text == " "} == spaces
    assert {c for c, text in left.items() if text != c} == dropped | spaces - {" "}


def test_bert_accents(known: list[str]) -> None:
    left = results(("BertNormalizer", False, False, True, False), known)
    marks = matching(r"\p{Mn}", known)
    for character, text in left.items():
        parts = unicodedata.normalize("NFD", character)
        assert text == "".join(part for part in parts if part not in marks)


def test_bert_ideographs(characters: list[str]) -> None:
    blocks = (
        (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF),
        (0x2A700, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
    )  # fmt: skip
    ideographs = {chr(c) for first, last in blocks for c in range(first, last + 1)}
    for character, text in results(
        ("BertNormalizer", False, True, False, False), characters
    ).items():
        assert text == (f" {character} " if character in ideographs else character)


def test_byte_level() -> None:
    every_byte = bytes(range(256))
    text = _native.normalize(("ByteLevel",), every_byte, False)[0].decode()
    itself = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(0x100, 0x200))
    assert text == "".join(chr(b if b in itself else next(others)) for b in every_byte)


def test_word_end_is_its_pattern(characters: list[str]) -> None:
    pattern = regex.compile(r"(?<=\S)(?=\s|$)")
    text = "".join(f"a{c}b {c} " for c in characters)
    assert normalized(("Replace", ("word_end",), "_"), text) == pattern.sub("_", text)


def test_word_end_marks_the_worked_example() -> None:
    assert normalized(("Replace", ("word_end",), "_"), "cam nham  tam") == "cam_ nham_  tam_"


def test_places() -> None:
    text, places = _native.normalize(("NFD",), "xé".encode(), True)
    assert text == "xe\u0301".encode()
    assert places is not None
    assert places.dtype == np.int64
    assert places.tolist() == [[0, 1], [1, 3], [1, 3], [1, 3]]
    assert _native.normalize(("NFD",), b"", True)[1].shape == (0, 2)
    assert _native.normalize(("NFD",), b"x", False)[1] is None


@pytest.mark.parametrize(
    "text", [b"\xff", b"e\xcc", b"\xe4\xb8", b"a\x80\xcc\x81", b"\xed\xa0\x80"]
)
def test_malformed_bytes_stay(text: bytes) -> None:
    steps: list[tuple[object, ...]] = [(form,) for form in FORMS]
    steps += [("Lowercase",), ("Strip", True, True), ("Replace", ("literal", b" "), "_")]
    for step in steps:
        assert _native.normalize(step, text, True)[0] == text


def spans(pattern: str) -> Callable[[bytes], Sequence[tuple[int, int]]]:
    compiled = regex.compile(pattern.encode())
    return lambda text: [match.span() for match in compiled.finditer(text)]


def test_callback_matcher() -> None:
    step = ("Replace", ("regex", spans("[0-9]+")), "#")
    assert normalized(step, "a1b22c") == "a#b#c"
    assert normalized(step, "") == ""


class Broken(Exception):
    pass


def test_callback_error_passes_through() -> None:
    def fail(_: bytes) -> list[tuple[int, int]]:
        raise Broken("of its own")

    with pytest.raises(Broken, match="of its own"):
        normalized(("Sequence", [("NFC",), ("Replace", ("regex", fail), "")]), "text")


@pytest.mark.parametrize("found", [[(0, 9)], [(2, 1)], [(1, 3), (2, 4)], [(2, 3), (0, 1)]])
def test_callback_spans_are_checked(found: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="span"):
        normalized(("Replace", ("regex", lambda _: found), "x"), "text")


def nested(depth: int) -> tuple[object, ...]:
    step: tuple[object, ...] = ("NFC",)
    for _ in range(depth):
        step = ("Sequence", [step])
    return step


@pytest.mark.parametrize(
    "step",
    [
        (), "nfc", ("nfx",), ("NFC", True), ("Strip", True), ("BertNormalizer", True), ("Prepend",),
        ("Replace", ("literal", b"a")), ("Replace", ("word_end", b"a"), ""),
        ("Replace", ("regex", b"a"), ""), ("Replace", "a", b""), nested(100),
    ],
)  # fmt: skip
def test_what_is_no_step_is_refused(step: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"step|normalizer|matcher"):
        normalized(step, "text")


def test_sequences() -> None:
    step = ("Sequence", [("NFKD",), ("StripAccents",), ("Lowercase",), ("Prepend", "_")])
    assert normalized(step, "Ünïﬁed") == "_unified"
    assert normalized(nested(30), "e\u0301") == "é"
    assert normalized(("Sequence", []), "e\u0301") == "e\u0301"
