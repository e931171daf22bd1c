// Decodes UTF-8, one code point at a time; safe on any bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpe_beam {

struct CodePoint {
  std::uint32_t value;  // kMalformed if the bytes are not UTF-8
  std::uint32_t size;   // bytes taken: 1 for a malformed byte, so that a scan always moves on
};

inline constexpr std::uint32_t kMalformed = 0xFFFFFFFF;

/// Decodes the code point that begins at `at`; `end` bounds what is read. at < end.
inline CodePoint decode_utf8(const char* at, const char* end) {
  const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t lead = byte(0);
  const auto left = static_cast<std::size_t>(end - at);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && left >= 2 && continues(1)) {
    return {((lead & 0x1F) << 6) | (byte(1) & 0x3Fu), 2};
  }
  if (lead >= 0xE0 && lead < 0xF0 && left >= 3 && continues(1) && continues(2)) {
    const std::uint32_t value =
        ((lead & 0x0F) << 12) | ((byte(1) & 0x3Fu) << 6) | (byte(2) & 0x3Fu);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && left >= 4 && continues(1) && continues(2) && continues(3)) {
    const std::uint32_t value = ((lead & 0x07) << 18) | ((byte(1) & 0x3Fu) << 12) |
                                ((byte(2) & 0x3Fu) << 6) | (byte(3) & 0x3Fu);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {kMalformed, 1};
}

}  // namespace bpe_beam
