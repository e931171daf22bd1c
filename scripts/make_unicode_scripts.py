"""Write bpe_beam/native/text/unicode_scripts.hpp: the script of every code point.

Run it after a new Unicode version has reached the `regex` package, as make_unicode_classes.py:

    python scripts/make_unicode_scripts.py
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import regex
from make_unicode_classes import BLOCK, CODE_POINTS, rows, unicode_version

OUTPUT = Path(__file__).parent.parent / "bpe_beam/native/text/unicode_scripts.hpp"
ANY = "UNKNOWN"
# As Hugging Face's UnicodeScripts: kana, and the mark of a long vowel, are one script with Han.
SAME = {"HIRAGANA": "HAN", "KATAKANA": "HAN"}
EXCEPTIONS = {" ": ANY, "\u30fc": "HAN"}

HEADER = """\
// The script of every code point: equal numbers are equal scripts, with kana as Han; 0 for a blank
// and for code points without a script.
// Written by scripts/make_unicode_scripts.py from Unicode {version}; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {{

// Code points in blocks of {block}; equal blocks stand once.
inline constexpr std::uint16_t kScriptBlock[{stage1_size}] = {{
{stage1}
}};
inline constexpr std::uint8_t kScriptOf[{stage2_size}] = {{
{stage2}
}};

/// The number of the script of a code point below 0x110000.
constexpr std::uint8_t script_of(std::uint32_t code_point) {{
  return kScriptOf[kScriptBlock[code_point / {block}] * {block} + code_point % {block}];
}}

}}  // namespace bpe_beam
"""


def script_names() -> list[str]:
    """Return a name of each script that `regex` knows."""
    names: dict[str, int] = import_module("regex._regex_core").PROPERTIES["SCRIPT"][1]
    one_name = {number: name for name, number in sorted(names.items(), key=lambda row: row[0])}
    known = {SAME.get(name, name) for name in ("HAN", ANY, *SAME)}
    of_known = {names[name]: name for name in (*known, *SAME)}
    return sorted({**one_name, **of_known}.values())


def scripts() -> list[int]:
    """Return the number of the script of every code point."""
    names = script_names()
    numbers = {name: number for number, name in enumerate(sorted({*names} - {ANY}), start=1)}
    numbers[ANY] = 0
    text = "".join(chr(c) for c in range(CODE_POINTS))
    found = [0] * CODE_POINTS
    for name in names:
        number = numbers[SAME.get(name, name)]
        for match in regex.finditer(rf"\p{{Script={name}}}+", text):
            found[match.start() : match.end()] = [number] * (match.end() - match.start())
    for character, name in EXCEPTIONS.items():
        found[ord(character)] = numbers[name]
    return found


def main() -> None:
    """Write the header."""
    found = scripts()
    blocks: dict[tuple[int, ...], int] = {}
    stage1 = [
        blocks.setdefault(tuple(found[start : start + BLOCK]), len(blocks))
        for start in range(0, CODE_POINTS, BLOCK)
    ]
    stage2 = [number for block in blocks for number in block]
    OUTPUT.write_text(
        HEADER.format(
            version=unicode_version(),
            block=BLOCK,
            stage1_size=len(stage1),
            stage1=rows(stage1, 24),
            stage2_size=len(stage2),
            stage2=rows(stage2, 32),
        )
    )


if __name__ == "__main__":
    main()
