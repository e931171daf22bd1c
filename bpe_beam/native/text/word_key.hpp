// A word of up to 15 bytes as two integers, so that tables compare and hash it without a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/hash.hpp"

namespace bpe_beam {

/// Bytes 0-7 in `low`; bytes 8-14 in `high`, whose top byte is the length. A word of 16 bytes and
/// more has its hash in `low` and kLong in the top byte of `high`; the rest of `high` is its
/// owner's. The key {0, 0} is the empty word, which no table contains: it marks a free slot.
struct WordKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static constexpr std::size_t kMaxInline = 15;
  static constexpr std::uint64_t kLong = 0xFF;

  bool operator==(const WordKey&) const = default;
  [[nodiscard]] bool empty() const { return high == 0 && low == 0; }
  [[nodiscard]] bool is_long() const { return (high >> 56) == kLong; }
  [[nodiscard]] std::size_t inline_size() const { return high >> 56; }
  /// The key's bytes, for an inline word: valid while the key lives.
  [[nodiscard]] std::string_view inline_bytes() const {
    return {reinterpret_cast<const char*>(&low), inline_size()};
  }
};

/// Packs a word of at most 15 bytes. `readable` says how many bytes from word.data() on may be
/// read: with 16 there is no branch on the length.
[[gnu::always_inline]] inline WordKey pack_word(std::string_view word, std::size_t readable) {
  WordKey key;
  const std::size_t size = word.size();
  if (readable >= 16) [[likely]] {
    std::memcpy(&key, word.data(), 16);
    if (size < 8) {
      key.low &= (std::uint64_t{1} << (size * 8)) - 1;
      key.high = 0;
    } else {
      key.high &= (std::uint64_t{1} << ((size - 8) * 8)) - 1;
    }
  } else {
    key.low = load_up_to_8(word.data(), size < 8 ? size : 8);
    key.high = size > 8 ? load_up_to_8(word.data() + 8, size - 8) : 0;
  }
  key.high |= static_cast<std::uint64_t>(size) << 56;
  return key;
}

inline std::uint64_t hash_key(const WordKey& key, std::uint64_t seed) {
  return fold_multiply(key.low ^ seed, key.high ^ 0x9E3779B97F4A7C15);
}

}  // namespace bpe_beam
