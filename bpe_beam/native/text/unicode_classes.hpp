// The properties of every code point: letter (\p{L}), number (\p{N}), space (\s) or other,
// and the bits below.
// Written by scripts/make_unicode_classes.py from Unicode 18.0; do not edit.
#pragma once

#include <cstdint>

namespace bpe_beam {

enum class CharClass : std::uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 };

// The low two bits of a code point's properties are its CharClass; the others stand alone.
inline constexpr std::uint16_t kClassBits = 3;
inline constexpr std::uint16_t kUpperLike = 4;          // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr std::uint16_t kLowerLike = 8;          // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
inline constexpr std::uint16_t kMark = 16;              // \p{M}
inline constexpr std::uint16_t kNonspacingMark = 32;    // \p{Mn}
inline constexpr std::uint16_t kWordChar = 64;          // \w
inline constexpr std::uint16_t kPunctuation = 128;      // [\p{P}$+<=>^`|~]
inline constexpr std::uint16_t kControl = 256;          // \p{C}
inline constexpr std::uint16_t kSign = 512;             // [\p{P}\p{S}]
inline constexpr std::uint16_t kHan = 1024;             // \p{Han}

// The properties of each ASCII character.
inline constexpr std::uint16_t kAsciiBits[128] = {
    256, 256, 256, 256, 256, 256, 256, 256, 256, 259, 259, 259, 259, 259, 256, 256,
    256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256,
    3, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640, 640,
    66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 640, 640, 640, 640, 640, 640,
    640, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69,
    69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 640, 640, 640, 640, 704,
    640, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73,
    73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 73, 640, 640, 640, 640, 256,
};

// The properties of each kind of code point. A kind's low two bits are its class too.
inline constexpr std::uint16_t kBitsOfKind[41] = {
    92, 69, 2, 3, 124, 73, 66, 259, 256, 77, 1090, 0, 320, 1101, 0, 0,
    512, 0, 0, 0, 576, 0, 0, 0, 640, 0, 0, 0, 704, 0, 0, 0,
    1116, 0, 0, 0, 1536, 0, 0, 0, 1664,
};

#pragma GCC visibility push(hidden)
// The kinds of code points in blocks of 128; equal blocks are stored once.
extern const std::uint16_t kKindBlock[8704];
extern const std::uint8_t kKindOf[33152];
#pragma GCC visibility pop

/// The kind of a code point below 0x110000: an index of kBitsOfKind.
inline std::uint8_t char_kind(std::uint32_t code_point) {
  return kKindOf[kKindBlock[code_point / 128] * 128 + code_point % 128];
}

/// The class of a code point below 0x110000.
inline CharClass char_class(std::uint32_t code_point) {
  return static_cast<CharClass>(char_kind(code_point) & kClassBits);
}

/// The properties of a code point below 0x110000.
inline std::uint16_t char_bits(std::uint32_t code_point) {
  return kBitsOfKind[char_kind(code_point)];
}

}  // namespace bpe_beam
