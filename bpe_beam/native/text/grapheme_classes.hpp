// How every code point joins its neighbours to graphemes, by Unicode's standard annex 29.
// Written by scripts/make_grapheme_classes.py from Unicode 18.0; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {

enum class GraphemeClass : std::uint8_t {
  kOther,
  kCr,
  kLf,
  kControl,
  kZwj,
  kLinker,
  kExtend,
  kExtendOutside,
  kSpacingMark,
  kPrepend,
  kRegional,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
  kPictographic,
  kConsonant,
};

#pragma GCC visibility push(hidden)
// Code points in blocks of 128; equal blocks are stored once.
extern const std::uint8_t kGraphemeBlock[8704];
extern const std::uint8_t kGraphemeClassOf[21120];
#pragma GCC visibility pop

/// The class of a code point below 0x110000.
inline GraphemeClass grapheme_class(std::uint32_t code_point) {
  return static_cast<GraphemeClass>(
      kGraphemeClassOf[kGraphemeBlock[code_point / 128] * 128 + code_point % 128]);
}

}  // namespace bpe_beam
