// A cheap first test for pairs: the ids that are the left of some pair of a set, and the ids that
// are the right of one.
//
// Most of a word's boundaries fail the test, so that few need a look-up by hash. One byte per id;
// ids beyond a million share bytes, which gives more false positives and never a false negative.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe_beam {

class PairSides {
 public:
  void add(std::uint32_t left, std::uint32_t right) {
    const std::uint32_t highest = std::min(std::max(left, right), kMaxIds - 1);
    if (highest > mask_) grow(highest);
    sides_[left & mask_] |= kLeft;
    sides_[right & mask_] |= kRight;
  }

  /// Returns false only if the set does not have the pair.
  [[nodiscard]] bool may_hold(std::uint32_t left, std::uint32_t right) const {
    return ((sides_[left & mask_] & kLeft) & (sides_[right & mask_] >> 1)) != 0;
  }

 private:
  static constexpr std::uint32_t kMaxIds = 1 << 20;
  static constexpr std::uint8_t kLeft = 1;
  static constexpr std::uint8_t kRight = 2;

  void grow(std::uint32_t highest) {
    while (mask_ < highest) mask_ = mask_ * 2 + 1;
    sides_.resize(std::size_t{mask_} + 1);
  }

  std::uint32_t mask_ = 255;
  std::vector<std::uint8_t> sides_ = std::vector<std::uint8_t>(256);
};

}  // namespace bpe_beam
