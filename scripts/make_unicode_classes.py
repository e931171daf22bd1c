"""Write bpe_beam/native/text/unicode_classes.{hpp,cpp}: properties of code points, as in `regex`.

Run it after a new Unicode version has reached the `regex` package, then the scheduled tests, which
compare the scanners with `regex` on every code point:

    python scripts/make_unicode_classes.py
    .venv/bin/pytest -m scheduled tests/native/scan
"""

from __future__ import annotations

from pathlib import Path

import regex

NATIVE = Path(__file__).parent.parent / "bpe_beam/native"
BLOCK = 128
CODE_POINTS = 0x110000
# Classes in the order of the numbers that stand for them in the low two bits; 0 is all the rest.
CLASSES = {1: regex.compile(r"\p{L}"), 2: regex.compile(r"\p{N}"), 3: regex.compile(r"\s")}
# The bits above them, from bit 2 up: name, pattern.
PROPERTIES = {
    "kUpperLike": r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
    "kLowerLike": r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
    "kMark": r"\p{M}",
    "kNonspacingMark": r"\p{Mn}",
    "kWordChar": r"\w",
    "kPunctuation": r"[\p{P}$+<=>^`|~]",
    "kControl": r"\p{C}",
    "kSign": r"[\p{P}\p{S}]",
    "kHan": r"\p{Han}",
}

HEADER = """\
// The properties of every code point: letter (\\p{{L}}), number (\\p{{N}}), space (\\s) or other,
// and the bits below.
// Written by scripts/make_unicode_classes.py from Unicode {version}; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {{

enum class CharClass : std::uint8_t {{ kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 }};

// The low two bits of a code point's properties are its CharClass; the others stand alone.
inline constexpr std::uint16_t kClassBits = 3;
{constants}

// The properties of each ASCII character.
inline constexpr std::uint16_t kAsciiBits[128] = {{
{ascii}
}};

// The properties of each kind of code point. A kind's low two bits are its class too.
inline constexpr std::uint16_t kBitsOfKind[{kinds_size}] = {{
{kinds}
}};

#pragma GCC visibility push(hidden)
// The kinds of code points in blocks of {block}; equal blocks are stored once.
extern const std::uint16_t kKindBlock[{stage1_size}];
extern const std::uint8_t kKindOf[{stage2_size}];
#pragma GCC visibility pop

/// The kind of a code point below 0x110000: an index of kBitsOfKind.
inline std::uint8_t char_kind(std::uint32_t code_point) {{
  return kKindOf[kKindBlock[code_point / {block}] * {block} + code_point % {block}];
}}

/// The class of a code point below 0x110000.
inline CharClass char_class(std::uint32_t code_point) {{
  return static_cast<CharClass>(char_kind(code_point) & kClassBits);
}}

/// The properties of a code point below 0x110000.
inline std::uint16_t char_bits(std::uint32_t code_point) {{
  return kBitsOfKind[char_kind(code_point)];
}}

}}  // namespace bpe_beam
"""

SOURCE = """\
// The tables of unicode_classes.hpp.
// Written by scripts/make_unicode_classes.py from Unicode {version}; do not edit.
#include "text/unicode_classes.hpp"

namespace bpe_beam {{

const std::uint16_t kKindBlock[{stage1_size}] = {{
{stage1}
}};
const std::uint8_t kKindOf[{stage2_size}] = {{
{stage2}
}};

}}  // namespace bpe_beam
"""


def class_of(character: str) -> int:
    """Return the number of a character's class."""
    return next((number for number, p in CLASSES.items() if p.match(character)), 0)


def all_bits() -> list[int]:
    """Return the properties of every code point, as `char_bits` returns them."""
    patterns = [regex.compile(pattern) for pattern in PROPERTIES.values()]
    return [
        class_of(character) + sum(4 << i for i, p in enumerate(patterns) if p.match(character))
        for character in map(chr, range(CODE_POINTS))
    ]


def number_kinds(bits: list[int]) -> dict[int, int]:
    """Return a number for each set of properties that occurs; its low two bits are the class."""
    numbers: dict[int, int] = {}
    of_class = [0, 0, 0, 0]
    for properties in sorted(set(bits)):
        kind_class = properties & 3
        numbers[properties] = 4 * of_class[kind_class] + kind_class
        of_class[kind_class] += 1
    return numbers


def unicode_version() -> str:
    """Return the newest Unicode version with a new character that `regex` knows."""
    # A letter first assigned in each version.
    newest = {"18.0": 0xA7E2, "17.0": 0x323B0, "16.0": 0x1C89, "15.1": 0x2EBF0, "15.0": 0x11F02}
    for version, letter in newest.items():
        if regex.match(r"\p{L}", chr(letter)):
            return version
    raise SystemExit("this regex package is older than Unicode 15: upgrade it")


def write(name: str, header: str, source: str, **values: object) -> None:
    """Write NAME.hpp and NAME.cpp."""
    (NATIVE / f"{name}.hpp").write_text(header.format(block=BLOCK, **values))
    (NATIVE / f"{name}.cpp").write_text(source.format(block=BLOCK, **values))


def two_stages(numbers: list[int]) -> tuple[list[int], list[int]]:
    """Return the numbers of all code points as block numbers, and the blocks one after another."""
    blocks: dict[tuple[int, ...], int] = {}
    stage1 = [
        blocks.setdefault(tuple(numbers[start : start + BLOCK]), len(blocks))
        for start in range(0, CODE_POINTS, BLOCK)
    ]
    return stage1, [number for block in blocks for number in block]


def rows(numbers: list[int] | list[str], per_row: int) -> str:
    """Return the numbers as C++ initializer text."""
    return "\n".join(
        "    " + ", ".join(map(str, numbers[start : start + per_row])) + ","
        for start in range(0, len(numbers), per_row)
    )


def main() -> None:
    """Write the header and the tables."""
    bits = all_bits()
    kinds = number_kinds(bits)
    bits_of_kind = [0] * (max(kinds.values()) + 1)
    for properties, number in kinds.items():
        bits_of_kind[number] = properties
    stage1, stage2 = two_stages([kinds[properties] for properties in bits])
    constants = [
        f"inline constexpr std::uint16_t {f'{name} = {4 << i};':<23}  // {pattern}"
        for i, (name, pattern) in enumerate(PROPERTIES.items())
    ]
    write(
        "text/unicode_classes",
        HEADER,
        SOURCE,
        version=unicode_version(),
        constants="\n".join(constants),
        ascii=rows(bits[:128], 16),
        kinds_size=len(bits_of_kind),
        kinds=rows(bits_of_kind, 16),
        stage1_size=len(stage1),
        stage1=rows(stage1, 24),
        stage2_size=len(stage2),
        stage2=rows(stage2, 32),
    )


if __name__ == "__main__":
    main()
