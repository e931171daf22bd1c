// Normalization data of every code point: combining class, full decompositions, compositions,
// lower case. Hangul syllables are computed, not listed.
// Written by scripts/make_unicode_normalization.py from Unicode 18.0.0; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {

// What a code point does in a normalization form. The low four bits, one a form, say that it is
// inert: it stays itself, takes part in no reordering, and joins nothing that stands before it.
inline constexpr std::uint8_t kInertInNfc = 1;
inline constexpr std::uint8_t kInertInNfd = 2;
inline constexpr std::uint8_t kInertInNfkc = 4;
inline constexpr std::uint8_t kInertInNfkd = 8;
inline constexpr std::uint8_t kComposesAsSecond = 16;
inline constexpr std::uint8_t kHangulSyllable = 32;
inline constexpr std::uint8_t kAssignedControl = 64;  // Cc, Cf, Co: not what is unassigned

struct NormalizationRecord {
  std::uint8_t flags;
  std::uint8_t combining_class;
  std::uint8_t canonical_size;  // 0 where the code point stands for itself
  std::uint8_t compatible_size;
  std::uint16_t canonical;  // the full decomposition: an index of kDecompositions
  std::uint16_t compatible;
};

struct Composition {
  std::uint32_t first;
  std::uint32_t second;
  std::uint32_t composed;
};

#pragma GCC visibility push(hidden)
// Code points in blocks of 128; equal blocks and records are stored once.
extern const std::uint16_t kNormalizationBlock[8704];
extern const std::uint16_t kNormalizationRecordOf[23808];
extern const NormalizationRecord kNormalizationRecords[3950];
extern const char32_t kDecompositions[6828];

// Sorted by (first, second).
extern const Composition kCompositions[961];

// Lower case is this far from the code point. U+0130, the one letter whose lower case is two code
// points, has the first of them here.
extern const std::uint8_t kLowerBlock[8704];
extern const std::uint8_t kLowerDistanceOf[5120];
extern const std::int32_t kLowerDistances[87];
#pragma GCC visibility pop

/// The normalization data of a code point below 0x110000.
inline const NormalizationRecord& normalization_record(std::uint32_t code_point) {
  const std::uint32_t block = kNormalizationBlock[code_point / 128];
  return kNormalizationRecords[kNormalizationRecordOf[block * 128 + code_point % 128]];
}

/// The first code point of the lower case of a code point below 0x110000.
inline std::uint32_t lower_case(std::uint32_t code_point) {
  const std::uint32_t block = kLowerBlock[code_point / 128];
  const std::int32_t distance =
      kLowerDistances[kLowerDistanceOf[block * 128 + code_point % 128]];
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(code_point) + distance);
}

}  // namespace bpe_beam
