// The script of every code point: equal numbers are equal scripts, with kana as Han; 0 for a blank
// and for code points without a script.
// Written by scripts/make_unicode_scripts.py from Unicode 18.0; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {

#pragma GCC visibility push(hidden)
// Code points in blocks of 128; equal blocks are stored once.
extern const std::uint16_t kScriptBlock[8704];
extern const std::uint8_t kScriptOf[33280];
#pragma GCC visibility pop

/// The number of the script of a code point below 0x110000.
inline std::uint8_t script_of(std::uint32_t code_point) {
  return kScriptOf[kScriptBlock[code_point / 128] * 128 + code_point % 128];
}

}  // namespace bpe_beam
