r"""Escapes, `\...`: characters, and sets of characters such as `\d` and `\p{L}`."""

from __future__ import annotations

import re

from msgspec import Struct

from bpe_beam.tokenizer.regex.fragment import NOT_SUPPORTED, READ_OTHERWISE, Dialect, Reader
from bpe_beam.tokenizer.regex.properties import known_property, loose

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_CODES = {
    "regex": re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})"),
    "oniguruma": re.compile(r"x([0-7][0-9A-Fa-f])|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]{1,8})\}"),
}
_REMEDIES = {
    "N": r"write [^\n]",
    "X": "write the characters that it should match, such as .\\p{M}*",
    "K": "put what comes before into a lookbehind, (?<=...)",
    "Z": r"write \z",
    "x": "write the character itself, or \\uHHHH",
}
# Joiners are word characters to `regex` only; these numbers to a bare \w of Oniguruma only.
_JOINERS = r"\u200c\u200d"
_NUMBERS = r"\u00b2\u00b3\u00b9\u00bc-\u00be"
WORD_ITEMS = rf"\w{_JOINERS}"
r"""What `\w` of `regex` is to Oniguruma, in brackets."""
NOT_WORD = f"[^{WORD_ITEMS}]"
r"""What `\W` of `regex` is to Oniguruma, in brackets and by itself."""


class CharacterSet(Struct, frozen=True):
    r"""A set of characters that is an item of a class, or outside of a class.

    Attributes:
        regex: Its spelling for `regex` in brackets.
        oniguruma: Its spelling for Oniguruma in brackets.
        bare_regex: Its spelling for `regex` by itself.
        bare_oniguruma: Its spelling for Oniguruma by itself.
        name: The folded name of a property; else empty.
    """

    regex: str
    oniguruma: str
    bare_regex: str
    bare_oniguruma: str
    name: str = ""


def _alike(text: str, name: str = "") -> CharacterSet:
    return CharacterSet(text, text, text, text, name)


def _listed(items: str) -> CharacterSet:
    return CharacterSet(items, items, f"[{items}]", f"[{items}]")


_SETS: dict[Dialect, dict[str, CharacterSet]] = {
    "regex": {
        **{letter: _alike(f"\\{letter}") for letter in "dDsS"},
        "w": CharacterSet(r"\w", WORD_ITEMS, r"\w", f"[{WORD_ITEMS}]"),
        "W": CharacterSet(r"\W", NOT_WORD, r"\W", NOT_WORD),
        "h": _listed(r"\t\p{Zs}"),
    },
    "oniguruma": {
        **{letter: _alike(f"\\{letter}") for letter in "dDsS"},
        "w": CharacterSet(rf"[\w--[{_JOINERS}]]", r"\w", rf"[\w{_NUMBERS}--[{_JOINERS}]]", r"\w"),
        "W": CharacterSet(rf"\W{_JOINERS}", r"\W", rf"[\W{_JOINERS}--[{_NUMBERS}]]", r"\W"),
        "h": _listed("0-9a-fA-F"),
        "H": _alike("[^0-9a-fA-F]"),
        "N": _alike(r"[^\n]"),
    },
}


def word_set(dialect: Dialect) -> CharacterSet:
    r"""Return the word characters that `\b` looks for."""
    return _SETS[dialect]["w"]


def read_set(reader: Reader) -> CharacterSet | None:
    r"""Return the set of characters of the escape whose backslash was read.

    None, with nothing read, if the escape is of another kind.

    Raises:
        UsageError: A property that the two engines do not both know.
    """
    if reader.next in ("p", "P"):
        return _read_property(reader)
    characters = _SETS[reader.dialect].get(reader.next)
    if characters is not None:
        reader.take()
    return characters


def _read_property(reader: Reader) -> CharacterSet:
    start = reader.at - 1
    negated = reader.take() == "P"
    if reader.accept("{"):
        name = reader.until("}", start)
    else:
        name = reader.take()
        if reader.dialect == "oniguruma":  # which takes it for the letter p
            reader.refuse(start, READ_OTHERWISE, f"write \\p{{{name or 'L'}}}")
    if name.startswith("^"):
        negated, name = not negated, name[1:]
    known = known_property(name, reader.dialect)
    if known is None:
        reader.refuse(
            start,
            NOT_SUPPORTED,
            r"use a general category or a script, such as \p{Lu} and \p{Han}, or write a range",
        )
    return _alike(f"\\{'P' if negated else 'p'}{{{known}}}", loose(known))


def read_character(reader: Reader) -> str:
    r"""Return the character of the escape whose backslash was read.

    Raises:
        UsageError: The escape is not one character, or not the same one to both engines.
    """
    start = reader.at - 1
    code = _CODES[reader.dialect].match(reader.text, reader.at)
    if code:
        reader.at = code.end()
        number = int(code[code.lastindex or 0], 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            reader.refuse(start, "is no character")
        return chr(number)
    letter = reader.take()
    if not letter:
        reader.refuse(start, "is at the end", "write \\\\ for a backslash")
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter.isascii() and letter.isalnum():
        reader.refuse(start, NOT_SUPPORTED, _REMEDIES.get(letter, ""))
    return letter


def spelled(character: str, special: frozenset[str]) -> str:
    """Return a character's spelling, which both engines read alike."""
    if character in special:
        return "\\" + character
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character)
    if named:
        return named
    if character.isprintable() or ord(character) > 0xFFFF:
        return character
    return f"\\u{ord(character):04x}"
