"""Write bpe_beam/native/text/unicode_scripts.{hpp,cpp}: the script of every code point.

Run it after a new Unicode version has reached the `regex` package, as make_unicode_classes.py:

    python scripts/make_unicode_scripts.py
"""

from __future__ import annotations

from importlib import import_module

import regex
from make_unicode_classes import CODE_POINTS, rows, two_stages, unicode_version, write

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

#pragma GCC visibility push(hidden)
// Code points in blocks of {block}; equal blocks are stored once.
extern const std::uint16_t kScriptBlock[{stage1_size}];
extern const std::uint8_t kScriptOf[{stage2_size}];
#pragma GCC visibility pop

/// The number of the script of a code point below 0x110000.
inline std::uint8_t script_of(std::uint32_t code_point) {{
  return kScriptOf[kScriptBlock[code_point / {block}] * {block} + code_point % {block}];
}}

}}  // namespace bpe_beam
"""

SOURCE = """\
// The tables of unicode_scripts.hpp.
// Written by scripts/make_unicode_scripts.py from Unicode {version}; do not edit.
#include "text/unicode_scripts.hpp"

namespace bpe_beam {{

const std::uint16_t kScriptBlock[{stage1_size}] = {{
{stage1}
}};
const std::uint8_t kScriptOf[{stage2_size}] = {{
{stage2}
}};

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
    numbers_of = [0] * CODE_POINTS
    for name in names:
        number = numbers[SAME.get(name, name)]
        for match in regex.finditer(rf"\p{{Script={name}}}+", text):
            numbers_of[match.start() : match.end()] = [number] * (match.end() - match.start())
    for character, name in EXCEPTIONS.items():
        numbers_of[ord(character)] = numbers[name]
    return numbers_of


def main() -> None:
    """Write the header and the tables."""
    stage1, stage2 = two_stages(scripts())
    write(
        "text/unicode_scripts",
        HEADER,
        SOURCE,
        version=unicode_version(),
        stage1_size=len(stage1),
        stage1=rows(stage1, 24),
        stage2_size=len(stage2),
        stage2=rows(stage2, 32),
    )


if __name__ == "__main__":
    main()
