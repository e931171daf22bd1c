"""Writes bpe_beam/native/unicode_classes.hpp: the class of every code point, as `regex` sees it.

Run it after a new Unicode version has reached the `regex` package, then run the tests marked
slow, which compare the scanner with `regex` on every code point:

    python scripts/make_unicode_classes.py
"""

from __future__ import annotations

from pathlib import Path

import regex

OUTPUT = Path(__file__).parent.parent / "bpe_beam/native/unicode_classes.hpp"
BLOCK = 128
CODE_POINTS = 0x110000
# Properties in the order of the numbers that stand for them; 0 is everything else.
CLASSES = {1: regex.compile(r"\p{L}"), 2: regex.compile(r"\p{N}"), 3: regex.compile(r"\s")}

HEADER = """\
// The class of every code point: letter (\\p{{L}}), number (\\p{{N}}), space (\\s) or other.
// Written by scripts/make_unicode_classes.py from Unicode {version}; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {{

enum class CharClass : std::uint8_t {{ kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 }};

// Code points in blocks of {block}; equal blocks stand once.
inline constexpr std::uint16_t kClassBlock[{stage1_size}] = {{
{stage1}
}};
inline constexpr std::uint8_t kClassOf[{stage2_size}] = {{
{stage2}
}};

/// The class of a code point below 0x110000.
inline CharClass char_class(std::uint32_t code_point) {{
  return static_cast<CharClass>(
      kClassOf[kClassBlock[code_point / {block}] * {block} + code_point % {block}]);
}}

}}  // namespace bpe_beam
"""


def class_of(code_point: int) -> int:
    """The number of the code point's class; surrogates are no characters: 0."""
    character = chr(code_point)
    return next((number for number, p in CLASSES.items() if p.match(character)), 0)


def unicode_version() -> str:
    """The newest version of which `regex` knows a character that the version before lacks."""
    # A letter first assigned in each version.
    newest = {"18.0": 0xA7E2, "17.0": 0x323B0, "16.0": 0x1C89, "15.1": 0x2EBF0, "15.0": 0x11F02}
    for version, letter in newest.items():
        if regex.match(r"\p{L}", chr(letter)):
            return version
    raise SystemExit("this regex package is older than Unicode 15: upgrade it")


def rows(numbers: list[int], per_row: int) -> str:
    """The numbers as C++ initializer text."""
    return "\n".join(
        "    " + ", ".join(map(str, numbers[start : start + per_row])) + ","
        for start in range(0, len(numbers), per_row)
    )


def main() -> None:
    """Writes the header."""
    classes = [class_of(code_point) for code_point in range(CODE_POINTS)]
    blocks: dict[tuple[int, ...], int] = {}
    stage1 = [
        blocks.setdefault(tuple(classes[start : start + BLOCK]), len(blocks))
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
