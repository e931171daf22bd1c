// A map from a pair of 32-bit ids to a 32-bit value: open addressing, no removal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/hash.hpp"

namespace bpe_beam {

class PairMap {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  static std::uint64_t key(std::uint32_t left, std::uint32_t right) {
    return (static_cast<std::uint64_t>(left) << 32) | right;
  }

  explicit PairMap(std::size_t expected = 0) {
    std::size_t slots = 64;
    while (slots < expected * 2) slots *= 2;
    slots_.assign(slots, Slot{});
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  static std::size_t hash(std::uint64_t key) { return fold_multiply(key ^ kSeed, kOdd); }

  /// The pair's value, or kNone.
  [[nodiscard]] std::uint32_t find(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash(key) & mask;; at = (at + 1) & mask) {
      if (slots_[at].value == kNone) return kNone;
      if (slots_[at].key == key) return slots_[at].value;
    }
  }

  /// The pair's value, by reference. It is kNone for a new pair and must be overwritten before the
  /// next call.
  std::uint32_t& operator[](std::uint64_t key) {
    if (size_ * 8 >= slots_.size() * 5) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(key) & mask;
    while (slots_[at].value != kNone && slots_[at].key != key) at = (at + 1) & mask;
    if (slots_[at].value == kNone) {
      slots_[at].key = key;
      ++size_;
    }
    return slots_[at].value;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = kNone;
  };

  static constexpr std::uint64_t kSeed = 0xA0761D6478BD642F;
  static constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.value == kNone) continue;
      std::size_t at = hash(slot.key) & mask;
      while (slots_[at].value != kNone) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace bpe_beam
