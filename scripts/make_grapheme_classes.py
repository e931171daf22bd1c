"""Write bpe_beam/native/text/grapheme_classes.{hpp,cpp}: how code points join to graphemes.

Run it after a new Unicode version has reached the `regex` package, as make_unicode_classes.py:

    python scripts/make_grapheme_classes.py
"""

from __future__ import annotations

import regex
from make_unicode_classes import CODE_POINTS, rows, two_stages, unicode_version, write

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

#pragma GCC visibility push(hidden)
// Code points in blocks of {block}; equal blocks are stored once.
extern const std::uint8_t kGraphemeBlock[{stage1_size}];
extern const std::uint8_t kGraphemeClassOf[{stage2_size}];
#pragma GCC visibility pop

/// The class of a code point below 0x110000.
inline GraphemeClass grapheme_class(std::uint32_t code_point) {{
  return static_cast<GraphemeClass>(
      kGraphemeClassOf[kGraphemeBlock[code_point / {block}] * {block} + code_point % {block}]);
}}

}}  // namespace bpe_beam
"""

SOURCE = """\
// The tables of grapheme_classes.hpp.
// Written by scripts/make_grapheme_classes.py from Unicode {version}; do not edit.
#include "text/grapheme_classes.hpp"

namespace bpe_beam {{

const std::uint8_t kGraphemeBlock[{stage1_size}] = {{
{stage1}
}};
const std::uint8_t kGraphemeClassOf[{stage2_size}] = {{
{stage2}
}};

}}  // namespace bpe_beam
"""


def main() -> None:
    """Write the header and the tables."""
    patterns = [regex.compile(pattern) for pattern in CLASSES.values()]
    classes = [
        next((number for number, p in enumerate(patterns, 1) if p.match(character)), 0)
        for character in map(chr, range(CODE_POINTS))
    ]
    stage1, stage2 = two_stages(classes)
    assert max(stage1) < 256
    write(
        "text/grapheme_classes",
        HEADER,
        SOURCE,
        version=unicode_version(),
        names="\n".join(f"  {name}," for name in CLASSES),
        stage1_size=len(stage1),
        stage1=rows(stage1, 32),
        stage2_size=len(stage2),
        stage2=rows(stage2, 32),
    )


if __name__ == "__main__":
    main()
