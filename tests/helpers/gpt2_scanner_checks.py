"""The GPT-2 scanner compared with its pattern, and the characters that both know."""

from __future__ import annotations

import re
import runpy
import unicodedata
import warnings
from functools import cache
from pathlib import Path

import regex

from bpe_beam import _native
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN

PATTERN = regex.compile(GPT2_PATTERN)


TABLE = Path(_native.__file__).parent / "native/text/unicode_classes.hpp"


MAKE_TABLE = Path(__file__).parents[2] / "scripts/make_unicode_classes.py"


# Of each class the plain and the odd: letters of one to four bytes and those of contractions,
# numbers, the blank and other spaces, apostrophe, marks, controls, symbols.
REPRESENTATIVES = (
    *"aZsdmtlverSé語\U00020000ªʰ",
    *"09½Ⅷ٣\U0001d7ce",
    *" \t\n\r\x0b\x85\xa0\u1680\u2003\u2028\u3000",
    *"'\u2019!_<\0\x1c\x7f\xad\u0301\u200b\u200d\ufeff€😀\ue000\uffff\U0010ffff",
)


def differs(text: str) -> bool:
    """Return whether the scanner's words differ from the pattern's; fast for short texts."""
    data = text.encode()
    ends = [len(text[: match.end()].encode()) for match in PATTERN.finditer(text)]
    return bool(_native.scan_words(data, "gpt2")[:, 1].tolist() != ends)


@cache
def left_out() -> frozenset[int]:
    """Return code points whose class may differ between the table's and `regex`'s Unicode versions.

    None if the two are the same version. Else those that are not assigned in the older: by `regex`
    if that is the older; by Python, whose own version is older than most, if the table is.
    """
    named = re.search(r"from Unicode (\S+);", TABLE.read_text())
    assert named, f"{TABLE} does not name its Unicode version"
    table, of_regex = named[1], runpy.run_path(str(MAKE_TABLE))["unicode_version"]()
    if table == of_regex:
        return frozenset()
    if number(of_regex) < number(table):
        assigned = regex.compile(r"\P{Cn}")
        unassigned = [c for c in range(0x110000) if not assigned.match(chr(c))]
    else:
        unassigned = [c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cn"]
    # Between these a character of any class shows.
    seen_otherwise = [f"U+{c:04X}" for c in unassigned if differs(f"a{chr(c)}1{chr(c)} ")]
    warnings.warn(
        f"the table is of Unicode {table}, regex of {of_regex}: {len(unassigned)} code points not "
        f"assigned in both are left out, {len(seen_otherwise)} of which the two see differently: "
        f"{' '.join(seen_otherwise)}",
        stacklevel=2,
    )
    return frozenset(unassigned)


def number(version: str) -> tuple[int, ...]:
    """Return a version that can be compared."""
    return tuple(map(int, version.split(".")))
