// Hashes of words: a seeded hash for tables in memory, and a fixed hash for partitions.
//
// Both read the key that `word_key` packs: equal words give equal keys. The seed is random in every
// process, so that no author can write a text whose words all collide. The fixed hash decides to
// which partition a word belongs, and must never change on any machine.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace bpe_beam {

static_assert(std::endian::native == std::endian::little,
              "words are read as little-endian integers");

/// Multiplies to 128 bits and folds the halves: every input bit reaches every output bit.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Reads `size` <= 8 bytes as an integer, zeros above.
inline std::uint64_t load_up_to_8(const char* bytes, std::size_t size) {
  std::uint64_t value = 0;
  if (size >= 8) {
    std::memcpy(&value, bytes, 8);
  } else if (size >= 4) {
    // Two overlapping reads of four bytes cover 4 to 8 bytes without a loop.
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + size - 4, 4);
    value = low | (static_cast<std::uint64_t>(high) << ((size - 4) * 8));
  } else if (size > 0) {
    const auto at = [bytes](std::size_t i) {
      return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i]));
    };
    value = at(0) | (at(size / 2) << (size / 2 * 8)) | (at(size - 1) << ((size - 1) * 8));
  }
  return value;
}

/// Hash of any bytes under a seed; about 0.3 ns per byte.
inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  constexpr std::uint64_t kOdd2 = 0xD1B54A32D192ED03;
  std::uint64_t state = seed ^ fold_multiply(bytes.size() ^ kOdd1, kOdd2);
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 16) {
    state = fold_multiply(load_up_to_8(at, 8) ^ state, load_up_to_8(at + 8, 8) ^ kOdd1);
    at += 16;
    left -= 16;
  }
  const std::uint64_t a = load_up_to_8(at, left < 8 ? left : 8);
  const std::uint64_t b = left > 8 ? load_up_to_8(at + 8, left - 8) : 0;
  return fold_multiply(fold_multiply(a ^ state, b ^ kOdd2) ^ kOdd1, state ^ kOdd2);
}

/// The word's partition among `partitions`. Artifacts depend on this hash: it must never change.
inline std::uint32_t partition_of(std::string_view word, std::uint32_t partitions) {
  // The upper half, scaled: the bias is too small to justify a division.
  return static_cast<std::uint32_t>(((hash_bytes(word, 0) >> 32) * partitions) >> 32);
}

/// This process's seed for tables in memory; results never depend on it.
inline std::uint64_t process_seed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }();
  return seed;
}

/// A seed that no other table of this process has.
inline std::uint64_t table_seed() {
  static std::atomic<std::uint64_t> tables{0};
  return fold_multiply(process_seed() + ++tables, 0x9E3779B97F4A7C15);
}

}  // namespace bpe_beam
