// A word of up to 15 bytes as two integers, so that tables compare and hash it without a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/hash.hpp"

namespace bpe_beam {

/// Bytes 0-7 in `low`; bytes 8-14 in `high`, whose top byte is the length. A word of 16 bytes or
/// more has its hash in `low` and kLong in the top byte of `high`; its owner uses the rest of
/// `high`. The key {0, 0} is the empty word, which no table contains: it marks a free slot.
struct WordKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static constexpr std::size_t kMaxInline = 15;
  static constexpr std::size_t kReadable = 16;  // see pack_readable_word
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

/// The masks of the first `size` bytes of 16, by size. Most words have fewer than eight bytes, some
/// have more: a branch would often be mispredicted.
struct WordMasks {
  std::uint64_t low[16];
  std::uint64_t high[16];
};

inline constexpr WordMasks kWordMasks = [] {
  WordMasks masks{};
  for (std::size_t size = 0; size < 16; ++size) {
    for (std::size_t byte = 0; byte < size; ++byte) {
      (byte < 8 ? masks.low : masks.high)[size] |= std::uint64_t{0xFF} << (byte % 8 * 8);
    }
  }
  return masks;
}();

/// Packs a word of at most 15 bytes, without a branch on its size. WordKey::kReadable bytes from
/// `word` on may be read.
[[gnu::always_inline]] inline WordKey pack_readable_word(const char* word, std::size_t size) {
  WordKey key;
  std::memcpy(&key, word, WordKey::kReadable);
  key.low &= kWordMasks.low[size];
  key.high &= kWordMasks.high[size];
  key.high |= static_cast<std::uint64_t>(size) << 56;
  return key;
}

/// Packs a word of at most 15 bytes. `readable`: the number of bytes from word.data() on that may
/// be read; with WordKey::kReadable there is no branch on the size.
[[gnu::always_inline]] inline WordKey pack_word(std::string_view word, std::size_t readable) {
  const std::size_t size = word.size();
  if (readable >= WordKey::kReadable) [[likely]]
    return pack_readable_word(word.data(), size);
  WordKey key;
  key.low = load_up_to_8(word.data(), size < 8 ? size : 8);
  key.high = size > 8 ? load_up_to_8(word.data() + 8, size - 8) : 0;
  key.high |= static_cast<std::uint64_t>(size) << 56;
  return key;
}

inline std::uint64_t hash_key(const WordKey& key, std::uint64_t seed) {
  return fold_multiply(key.low ^ seed, key.high ^ 0x9E3779B97F4A7C15);
}

}  // namespace bpe_beam
