r"""Letters under `(?i:...)`: where `regex` and Hugging Face's engine agree on other cases.

Both know that `k`, `K` and the Kelvin sign are one letter. They differ in `i` (`regex` adds the
Turkish ones) and in letters that are several in another case (`ß` is `ss`), which each finds in
texts of its own choice.
"""

from __future__ import annotations

from functools import cache

from bpe_beam.tokenizer.regex_part import Dialect, Part

_TURKISH = {"i": "iI\u0130", "I": "iI\u0131", "\u0131": "I\u0131"}
_OTHERS_OF_ASCII = {"k": "\u212a", "s": "\u017f"}
# Where Unicode has characters that fold to several.
_MULTIPLE = (range(0xDF, 0x590), range(0x1E00, 0x2000), range(0xFB00, 0xFB18))


@cache
def _joined_pairs() -> frozenset[str]:
    """The first two letters of everything that one character folds to."""
    folded = (chr(code).casefold() for codes in _MULTIPLE for code in codes)
    return frozenset(text[:2] for text in folded if len(text) > 1)


def has_case(text: str) -> bool:
    """Tell whether a text has letters that are others in another case."""
    return not text.lower() == text == text.upper() == text.casefold()


def is_several(character: str) -> bool:
    """Tell whether a character may be several in another case."""
    return len(character.casefold()) > 1


def may_join(before: Part, after: Part) -> str | None:
    """Return two letters that may meet and that are one character in another case, if any."""
    if not before.last or not after.first:
        return None
    met = {a + b for a in before.last for b in after.first}
    return min(met & _joined_pairs(), default=None)


def turkish_variants(letter: str, dialect: Dialect) -> str | None:
    """Return what a letter matches if the engines differ in it; None if they agree.

    Args:
        letter: One character.
        dialect: The engine whose meaning counts.
    """
    if letter not in _TURKISH:
        return None
    if dialect == "regex":
        return _TURKISH[letter]
    return letter if letter == "\u0131" else "iI"


def variants(letters: str, dialect: Dialect) -> str:
    """Return ASCII characters in all their cases, without repetition.

    Args:
        letters: The characters.
        dialect: The engine whose meaning counts.
    """
    found = ""
    for letter in letters:
        turkish = turkish_variants(letter, dialect)
        others = _OTHERS_OF_ASCII.get(letter.lower(), "")
        found += turkish or letter.lower() + letter.upper() + others
    return "".join(dict.fromkeys(found))
