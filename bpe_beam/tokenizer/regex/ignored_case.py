"""The letters that match under `(?i:...)`, which ignores case, in each engine.

The engines differ in `i` (`regex` adds the Turkish ones) and in letters that are several in another
case (`ß` is `ss`), which each finds in texts of its own choice. Both know that `k`, `K` and the
Kelvin sign are one letter.
"""

from __future__ import annotations

from functools import cache

from bpe_beam.tokenizer.regex.fragment import Dialect

_TURKISH = {"i": "iI\u0130", "I": "iI\u0131", "\u0131": "I\u0131"}
_OTHERS_OF_ASCII = {"k": "\u212a", "s": "\u017f"}
# Scripts without case: from Hebrew to Myanmar, of East Asia, the rarer ideographs.
_WITHOUT_CASE = ((0x590, 0x109F), (0x2E80, 0xA63F), (0xAC00, 0xD7FF), (0x20000, 0x3FFFF))
_LONGEST_RANGE = 1024  # of those whose characters are looked at
# Where Unicode has characters that fold to several.
_MULTIPLE = (range(0xDF, 0x590), range(0x1E00, 0x2000), range(0xFB00, 0xFB18))


@cache
def _joined_pairs() -> frozenset[str]:
    """The first two letters of everything that one character folds to."""
    folded = (chr(code).casefold() for codes in _MULTIPLE for code in codes)
    return frozenset(text[:2] for text in folded if len(text) > 1)


def letters_of_range(low: str, high: str) -> str | None:
    """Return the characters of a range if some have case, else an empty text."""
    first, last = ord(low), ord(high)
    if any(begin <= first and last <= end for begin, end in _WITHOUT_CASE):
        return ""
    if last - first > _LONGEST_RANGE:
        return None
    text = "".join(map(chr, range(first, last + 1)))
    return "" if text.lower() == text == text.upper() == text.casefold() else text


def may_join(before: frozenset[str], after: frozenset[str]) -> str | None:
    """Return two letters that may meet and that are one character in another case, if any."""
    if not before or not after:
        return None
    met = (pair for pair in _joined_pairs() if pair[0] in before and pair[1] in after)
    return min(met, default=None)


def turkish_variants(letter: str, dialect: Dialect) -> str | None:
    """Return what a letter matches if the engines differ in it; None if they agree."""
    if dialect == "regex" or letter not in _TURKISH:
        return _TURKISH.get(letter)
    return letter if letter == "\u0131" else "iI"


def variants(letters: str, dialect: Dialect) -> str:
    """Return ASCII characters in all their cases, without repetition."""
    cases = (
        turkish_variants(letter, dialect)
        or letter.lower() + letter.upper() + _OTHERS_OF_ASCII.get(letter.lower(), "")
        for letter in letters
    )
    return "".join(dict.fromkeys("".join(cases)))
