// A set of hashes in two to four bytes each. It never misses a hash, and reports up to 2 % of other
// hashes by mistake. It stays in cache, unlike a large table, and saves most look-ups in that
// table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe_beam {

class BitFilter {
 public:
  /// For about `hashes` hashes.
  explicit BitFilter(std::size_t hashes)
      : words_(std::bit_ceil(std::max<std::size_t>(hashes / 4, 1))), mask_(words_.size() - 1) {}

  void add(std::uint64_t hash) { words_[word_of(hash)] |= bits_of(hash); }

  [[nodiscard]] bool may_have(std::uint64_t hash) const {
    const std::uint64_t bits = bits_of(hash);
    return (words_[word_of(hash)] & bits) == bits;
  }

 private:
  [[nodiscard]] std::size_t word_of(std::uint64_t hash) const { return (hash >> 12) & mask_; }

  static std::uint64_t bits_of(std::uint64_t hash) {
    return std::uint64_t{1} << (hash % 64) | std::uint64_t{1} << (hash / 64 % 64);
  }

  std::vector<std::uint64_t> words_;
  std::size_t mask_;
};

}  // namespace bpe_beam
