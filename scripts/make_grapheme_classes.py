"""Write bpe_beam/native/text/grapheme_classes.hpp: how code points join to graphemes.

Run it after a new Unicode version has reached the `regex` package, as make_unicode_classes.py:

    python scripts/make_grapheme_classes.py
"""

from __future__ import annotations

from pathlib import Path

import regex
from make_unicode_classes import BLOCK, CODE_POINTS, rows, unicode_version

OUTPUT = Path(__file__).parent.parent / "bpe_beam/native/text/grapheme_classes.hpp"
# The first that matches decides. InCB separates the consonants and linkers of conjuncts.
CLASSES = {
    "kCr": r"\r",
    "kLf": r"\n",
    "kControl": r"\p{GCB=Control}",
    "kZwj": r"\p{GCB=ZWJ}",
    "kLinker": r"(?=\p{GCB=Extend})\p{InCB=Linker}",
    "kExtend": r"(?=\p{GCB=Extend})\p{InCB=Extend}",
    "kExtendOutside": r"\p{GCB=Extend}",
    "kSpacingMark": r"\p{GCB=SpacingMark}",
    "kPrepend": r"\p{GCB=Prepend}",
    "kRegional": r"\p{GCB=RI}",
    "kL": r"\p{GCB=L}",
    "kV": r"\p{GCB=V}",
    "kT": r"\p{GCB=T}",
    "kLv": r"\p{GCB=LV}",
    "kLvt": r"\p{GCB=LVT}",
    "kPictographic": r"\p{ExtPict}",
    "kConsonant": r"\p{InCB=Consonant}",
}

HEADER = """\
// How every code point joins its neighbours to graphemes, by Unicode's standard annex 29.
// Written by scripts/make_grapheme_classes.py from Unicode {version}; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {{

enum class GraphemeClass : std::uint8_t {{
  kOther,
{names}
}};

// Code points in blocks of {block}; equal blocks stand once.
inline constexpr std::uint8_t kGraphemeBlock[{stage1_size}] = {{
{stage1}
}};
inline constexpr std::uint8_t kGraphemeClassOf[{stage2_size}] = {{
{stage2}
}};

/// The class of a code point below 0x110000.
constexpr GraphemeClass grapheme_class(std::uint32_t code_point) {{
  return static_cast<GraphemeClass>(
      kGraphemeClassOf[kGraphemeBlock[code_point / {block}] * {block} + code_point % {block}]);
}}

}}  // namespace bpe_beam
"""


def main() -> None:
    """Write the header."""
    patterns = [regex.compile(pattern) for pattern in CLASSES.values()]
    classes = [
        next((number for number, p in enumerate(patterns, 1) if p.match(character)), 0)
        for character in map(chr, range(CODE_POINTS))
    ]
    blocks: dict[tuple[int, ...], int] = {}
    stage1 = [
        blocks.setdefault(tuple(classes[start : start + BLOCK]), len(blocks))
        for start in range(0, CODE_POINTS, BLOCK)
    ]
    stage2 = [number for block in blocks for number in block]
    assert len(blocks) <= 256
    header = HEADER.format(
        version=unicode_version(),
        names="\n".join(f"  {name}," for name in CLASSES),
        block=BLOCK,
        stage1_size=len(stage1),
        stage1=rows(stage1, 32),
        stage2_size=len(stage2),
        stage2=rows(stage2, 32),
    )
    OUTPUT.write_text(header, "utf-8")


if __name__ == "__main__":
    main()
