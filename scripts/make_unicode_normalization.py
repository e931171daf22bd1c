"""Write native/normalize/unicode_normalization.{hpp,cpp}: decompositions, lower case.

It needs the packages `unicodedata2` 18.0.0 and a `regex` of the same Unicode version; both are
tools of this script only (the second is a dependency of bpe-beam for other reasons):

    pip install unicodedata2==18.0.0 regex
    python scripts/make_unicode_normalization.py

Lower case comes from the Python that runs the script. For letters that this Python does not know,
it comes from `regex`: the lower-case letter that an upper-case letter matches when case is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex
import unicodedata2 as unicode
from make_unicode_classes import CODE_POINTS, rows, two_stages, write

SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)
HANGUL_VOWELS_AND_TAILS = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# Above the bits of the forms.
SECOND, SYLLABLE, CONTROL = 16, 32, 64

HEADER = """\
// Normalization data of every code point: combining class, full decompositions, compositions,
// lower case. Hangul syllables are computed, not listed.
// Written by scripts/make_unicode_normalization.py from Unicode {version}; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {{

// What a code point does in a normalization form. The low four bits, one a form, say that it is
// inert: it stays itself, takes part in no reordering, and joins nothing that stands before it.
inline constexpr std::uint8_t kInertInNfc = 1;
inline constexpr std::uint8_t kInertInNfd = 2;
inline constexpr std::uint8_t kInertInNfkc = 4;
inline constexpr std::uint8_t kInertInNfkd = 8;
inline constexpr std::uint8_t kComposesAsSecond = 16;
inline constexpr std::uint8_t kHangulSyllable = 32;
inline constexpr std::uint8_t kAssignedControl = 64;  // Cc, Cf, Co: not what is unassigned

struct NormalizationRecord {{
  std::uint8_t flags;
  std::uint8_t combining_class;
  std::uint8_t canonical_size;  // 0 where the code point stands for itself
  std::uint8_t compatible_size;
  std::uint16_t canonical;  // the full decomposition: an index of kDecompositions
  std::uint16_t compatible;
}};

struct Composition {{
  std::uint32_t first;
  std::uint32_t second;
  std::uint32_t composed;
}};

#pragma GCC visibility push(hidden)
// Code points in blocks of {block}; equal blocks and records are stored once.
extern const std::uint16_t kNormalizationBlock[{stage1_size}];
extern const std::uint16_t kNormalizationRecordOf[{stage2_size}];
extern const NormalizationRecord kNormalizationRecords[{records_size}];
extern const char32_t kDecompositions[{decompositions_size}];

// Sorted by (first, second).
extern const Composition kCompositions[{compositions_size}];

// Lower case is this far from the code point. U+0130, the one letter whose lower case is two code
// points, has the first of them here.
extern const std::uint8_t kLowerBlock[{lower1_size}];
extern const std::uint8_t kLowerDistanceOf[{lower2_size}];
extern const std::int32_t kLowerDistances[{distances_size}];
#pragma GCC visibility pop

/// The normalization data of a code point below 0x110000.
inline const NormalizationRecord& normalization_record(std::uint32_t code_point) {{
  const std::uint32_t block = kNormalizationBlock[code_point / {block}];
  return kNormalizationRecords[kNormalizationRecordOf[block * {block} + code_point % {block}]];
}}

/// The first code point of the lower case of a code point below 0x110000.
inline std::uint32_t lower_case(std::uint32_t code_point) {{
  const std::uint32_t block = kLowerBlock[code_point / {block}];
  const std::int32_t distance =
      kLowerDistances[kLowerDistanceOf[block * {block} + code_point % {block}]];
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(code_point) + distance);
}}

}}  // namespace bpe_beam
"""

SOURCE = """\
// The tables of unicode_normalization.hpp.
// Written by scripts/make_unicode_normalization.py from Unicode {version}; do not edit.
#include "normalize/unicode_normalization.hpp"

namespace bpe_beam {{

const std::uint16_t kNormalizationBlock[{stage1_size}] = {{
{stage1}
}};
const std::uint16_t kNormalizationRecordOf[{stage2_size}] = {{
{stage2}
}};
const NormalizationRecord kNormalizationRecords[{records_size}] = {{
{records}
}};
const char32_t kDecompositions[{decompositions_size}] = {{
{decompositions}
}};

const Composition kCompositions[{compositions_size}] = {{
{compositions}
}};

const std::uint8_t kLowerBlock[{lower1_size}] = {{
{lower1}
}};
const std::uint8_t kLowerDistanceOf[{lower2_size}] = {{
{lower2}
}};
const std::int32_t kLowerDistances[{distances_size}] = {{
{distances}
}};

}}  // namespace bpe_beam
"""


@dataclass
class Decompositions:
    """All full decompositions, one after another; equal ones are stored once."""

    points: list[int]
    places: dict[str, int]

    def place(self, text: str) -> int:
        """Return the index of the first code point of `text`."""
        if text not in self.places:
            self.places[text] = len(self.points)
            self.points += map(ord, text)
        return self.places[text]


def compositions() -> dict[tuple[int, int], int]:
    """Return the primary composites by their two code points, without Hangul."""
    found = {}
    for code_point in range(CODE_POINTS):
        mapping = unicode.decomposition(chr(code_point))
        if mapping and not mapping.startswith("<") and code_point not in HANGUL:
            parts = [int(part, 16) for part in mapping.split()]
            # Those that composition excludes do not come back.
            if len(parts) == 2 and unicode.normalize("NFC", chr(code_point)) == chr(code_point):
                found[parts[0], parts[1]] = code_point
    return dict(sorted(found.items()))


def flags_of(code_point: int, seconds: frozenset[int]) -> int:
    """Return a record's flags."""
    character = chr(code_point)
    flags = 0
    if code_point not in SURROGATES and unicode.combining(character) == 0:
        for bit, form in enumerate(FORMS):
            first = unicode.normalize("NFKD" if "K" in form else "NFD", character)[0]
            joins = form.endswith("C") and ord(first) in seconds
            stays = unicode.normalize(form, character) == character
            if stays and not joins and unicode.combining(first) == 0:
                flags |= 1 << bit
    flags |= SECOND * (code_point in seconds)
    flags |= SYLLABLE * (code_point in HANGUL)
    return flags | CONTROL * (unicode.category(character) in ("Cc", "Cf", "Co"))


def record_of(code_point: int, seconds: frozenset[int], decompositions: Decompositions) -> str:
    """Return a record as C++ text."""
    character = chr(code_point)
    sizes, places = [], []
    for form in ("NFD", "NFKD"):
        text = unicode.normalize(form, character)
        own = text == character or code_point in HANGUL
        sizes.append(0 if own else len(text))
        places.append(0 if own else decompositions.place(text))
    numbers = [flags_of(code_point, seconds), unicode.combining(character), *sizes, *places]
    return "{" + ", ".join(map(str, numbers)) + "}"


def lower_of(code_point: int) -> int:
    """Return the first code point of the lower case."""
    character = chr(code_point)
    lower = character.lower()
    if lower == character and regex.match(r"[\p{Lu}\p{Lt}]", character):
        # Python may be too old to know this letter. Those without a partner have none here too.
        pattern = regex.compile(regex.escape(character), regex.IGNORECASE)
        partners = [other for other in LOWER_CASE_LETTERS if pattern.match(other)]
        lower = partners[0] if len(partners) == 1 else character
    if len(lower) > 1 and code_point != 0x130:
        raise SystemExit(f"U+{code_point:04X} has a lower case of {len(lower)} code points")
    return ord(lower[0])


LOWER_CASE_LETTERS = [c for c in map(chr, range(CODE_POINTS)) if regex.match(r"\p{Ll}", c)]


def number(items: list[str] | list[int]) -> dict[str | int, int]:
    """Return a number for each item that occurs, from 0 up in order of occurrence."""
    numbers: dict[str | int, int] = {}
    for item in items:
        numbers.setdefault(item, len(numbers))
    return numbers


def main() -> None:
    """Write the header and the tables."""
    version = unicode.unidata_version
    if version != "18.0.0" or not regex.match(r"\p{L}", "\ua7e2"):
        raise SystemExit("this wants unicodedata2 18.0.0 and a regex that knows Unicode 18")
    composed = compositions()
    seconds = frozenset([*(second for _, second in composed), *HANGUL_VOWELS_AND_TAILS])
    decompositions = Decompositions([], {})
    records = [record_of(point, seconds, decompositions) for point in range(CODE_POINTS)]
    record_numbers = number(records)
    stage1, stage2 = two_stages([record_numbers[record] for record in records])
    distances = [lower_of(point) - point for point in range(CODE_POINTS)]
    distance_numbers = number(distances)
    lower1, lower2 = two_stages([distance_numbers[distance] for distance in distances])
    if max(len(record_numbers), len(decompositions.points)) >= 1 << 16:
        raise SystemExit("the tables no longer fit 16 bits")
    if max(len(distance_numbers), *lower1) >= 1 << 8:
        raise SystemExit("the tables of lower case no longer fit 8 bits")
    pairs = [f"{{{a}, {b}, {joined}}}" for (a, b), joined in composed.items()]
    write(
        "normalize/unicode_normalization",
        HEADER,
        SOURCE,
        version=version,
        stage1_size=len(stage1),
        stage1=rows(stage1, 20),
        stage2_size=len(stage2),
        stage2=rows(stage2, 20),
        records_size=len(record_numbers),
        records=rows([str(record) for record in record_numbers], 4),
        decompositions_size=len(decompositions.points),
        decompositions=rows(decompositions.points, 16),
        compositions_size=len(pairs),
        compositions=rows(pairs, 5),
        lower1_size=len(lower1),
        lower1=rows(lower1, 24),
        lower2_size=len(lower2),
        lower2=rows(lower2, 32),
        distances_size=len(distance_numbers),
        distances=rows([int(distance) for distance in distance_numbers], 16),
    )


if __name__ == "__main__":
    main()
