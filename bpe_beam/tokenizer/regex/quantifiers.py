r"""Quantifiers: how often a fragment is repeated, and how each engine spells it.

`{n,m}+` is possessive to `regex` and the repetition of a repetition to Oniguruma; `{n}?` is lazy to
`regex`, which changes nothing, and makes the whole optional to Oniguruma.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.tokenizer.regex.fragment import Dialect, Fragment, Reader

_MOST_REPEATS = 100_000  # Oniguruma's own limit
_INTERVAL: dict[Dialect, re.Pattern[str]] = {
    "regex": re.compile(r"\{(?!\})(\d*)(,?)(\d*)\}", re.ASCII),
    "oniguruma": re.compile(r"\{(?!,?\})(\d*)(,?)(\d*)\}", re.ASCII),
}
_SIMPLE: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Quantifier(Struct, frozen=True):
    """A quantifier as it is written.

    Attributes:
        low: The fewest repeats.
        high: The most; None for any number.
        is_interval: Whether it is written with braces.
        is_single: Whether it is an interval of one number.
        suffix: `?`, `+` or nothing.
    """

    low: int
    high: int | None
    is_interval: bool = False
    is_single: bool = False
    suffix: str = ""

    @property
    def base(self) -> str:
        """Its spelling without the suffix."""
        for sign, bounds in _SIMPLE.items():
            if bounds == (self.low, self.high):
                return sign
        if self.high is None:
            return f"{{{self.low},}}"
        return f"{{{self.low}}}" if self.low == self.high else f"{{{self.low},{self.high}}}"


def read_quantifier(reader: Reader, dialect: Dialect) -> Quantifier | None:
    """Read a quantifier with its suffix.

    Args:
        reader: Its position is before the quantifier; on return, after it.
        dialect: The engine whose rules apply.

    Returns:
        The quantifier; None, with nothing read, if something else comes next.

    Raises:
        UsageError: Numbers that one of the engines refuses.
    """
    start = reader.at
    if reader.next in _SIMPLE:
        found = Quantifier(*_SIMPLE[reader.take()])
    else:
        match = _INTERVAL[dialect].match(reader.text, start)
        if match is None:
            return None
        reader.at = match.end()
        low = int(match[1][:9] or 0)
        high = low if not match[2] else int(match[3][:9]) if match[3] else None
        if max(low, high or 0) > _MOST_REPEATS:
            reader.refuse(start, f"repeats more than {_MOST_REPEATS:,} times")
        if high is not None and high < low:
            reader.refuse(start, "asks for more than it allows", "swap its numbers")
        found = Quantifier(low, high, is_interval=True, is_single=not match[2])
    suffix = next((sign for sign in "?+" if reader.accept(sign)), "")
    return replace(found, suffix=suffix)


def repeated(atom: Fragment, quantifier: Quantifier, dialect: Dialect) -> Fragment:
    """Return the fragment that a quantifier makes of an atom.

    Args:
        atom: The fragment before the quantifier.
        quantifier: How it is repeated.
        dialect: The engine whose rules apply.
    """
    base, suffix = quantifier.base, quantifier.suffix
    regex, oniguruma = atom.regex + base, atom.oniguruma + base
    least = quantifier.low * atom.least
    if suffix == "?" and quantifier.low == quantifier.high:
        if dialect == "oniguruma" and quantifier.is_single:
            regex, oniguruma, least = f"(?:{regex})?", f"(?:{oniguruma})?", 0
    elif quantifier.is_interval and suffix == "+":
        if dialect == "oniguruma":
            regex, oniguruma = f"(?:{regex})+", f"(?:{oniguruma})+"
        else:
            regex, oniguruma = f"{regex}+", f"(?>{oniguruma})"
    else:
        regex, oniguruma = regex + suffix, oniguruma + suffix
    return replace(atom, regex=regex, oniguruma=oniguruma, least=least)
