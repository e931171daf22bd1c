// The number of each pair of a list: open addressing over the list itself, no removal.
//
// A slot has 8 bytes, the pair's number and half of its hash; the pair itself is read from the list
// only if that half agrees. PairMap, which stores the pairs in its slots, takes 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "count/pair_map.hpp"

namespace bpe_beam {

/// `Pairs` has `left` and `right` in each element, and `operator[]`.
template <typename Pairs>
class PairIndex {
 public:
  static constexpr std::uint32_t kNone = PairMap::kNone;

  PairIndex() : slots_(kMinSlots) {}

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Forgets all pairs.
  void clear() {
    slots_ = std::vector<Slot>(kMinSlots);
    size_ = 0;
  }

  /// The pair's number in the list, or kNone.
  [[nodiscard]] std::uint32_t find(const Pairs& pairs, std::uint32_t left,
                                   std::uint32_t right) const {
    return slots_[slot_of(pairs, left, right)].number;
  }

  /// The pair's number in the list. If it is kNone, the pair is new: it must get a number, and be
  /// in the list, before the next call.
  std::uint32_t& operator()(const Pairs& pairs, std::uint32_t left, std::uint32_t right) {
    if ((size_ + 1) * 8 > slots_.size() * 5) grow();
    Slot& slot = slots_[slot_of(pairs, left, right)];
    if (slot.number == kNone) {
      slot.hash = hash_of(left, right);
      ++size_;
    }
    return slot.number;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = kNone;
  };

  static constexpr std::size_t kMinSlots = 64;

  static std::uint32_t hash_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint32_t>(PairMap::hash(PairMap::key(left, right)));
  }

  /// The slot at which a search for this hash begins: slots are in the order of hashes, so that
  /// growing copies them one after another.
  [[nodiscard]] std::size_t home(std::uint32_t hash) const {
    return static_cast<std::size_t>((static_cast<unsigned __int128>(hash) * slots_.size()) >> 32);
  }

  /// The pair's slot, or the free one for it.
  [[nodiscard]] std::size_t slot_of(const Pairs& pairs, std::uint32_t left,
                                    std::uint32_t right) const {
    const std::uint32_t hash = hash_of(left, right);
    for (std::size_t at = home(hash);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.number == kNone) return at;
      if (slot.hash != hash) continue;
      const auto& pair = pairs[slot.number];
      if (pair.left == left && pair.right == right) return at;
    }
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      std::size_t at = home(slot.hash);
      while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace bpe_beam
