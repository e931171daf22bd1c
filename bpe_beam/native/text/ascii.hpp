// Runs of ASCII, eight bytes at a time, because most text is ASCII.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bpe_beam {

/// The first byte at or after `at` that is not ASCII, or the end.
inline std::size_t ascii_run_end(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (at + sizeof(std::uint64_t) <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    if (const std::uint64_t high = word & kHighBits; high != 0) {
      if constexpr (std::endian::native == std::endian::little) {
        return at + static_cast<std::size_t>(std::countr_zero(high)) / 8;
      }
      break;
    }
    at += sizeof(word);
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

/// The first byte at or after `at` that is not one of ' ' to '~', or the end.
inline std::size_t printable_run_end(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  while (at + sizeof(std::uint64_t) <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof(word));
    // For bytes below 0x80: adding 1 raises only 0x7F above it; adding 0x60 raises all except
    // controls.
    const bool all = ((word | (word + kOnes)) & kHighBits) == 0 &&
                     ((word + 0x60 * kOnes) & kHighBits) == kHighBits;
    if (!all) break;
    at += sizeof(word);
  }
  while (at < text.size() && text[at] >= ' ' && text[at] <= '~') ++at;
  return at;
}

inline char lower_ascii(char c) { return static_cast<char>(c | (c >= 'A' && c <= 'Z' ? 0x20 : 0)); }

}  // namespace bpe_beam
