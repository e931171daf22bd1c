// Short words and their ids, in a table of fixed size: a newer word takes an older one's slot.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "text/hash.hpp"
#include "text/word_key.hpp"

namespace bpe_beam {

class WordCache {
 public:
  static constexpr std::size_t kMaxIds = 4;

  struct Slot {
    WordKey key;
    std::array<std::uint32_t, kMaxIds> ids{};

    [[nodiscard]] bool holds(const WordKey& word) const {
      return key.low == word.low && (key.high & ~kCountBits) == word.high;
    }
    [[nodiscard]] std::size_t count() const { return key.high >> kCountShift; }
    void put(const WordKey& word, std::span<const std::uint32_t> word_ids) {
      key = {word.low, word.high | (static_cast<std::uint64_t>(word_ids.size()) << kCountShift)};
      std::copy(word_ids.begin(), word_ids.end(), ids.begin());
    }
  };

  /// Holds at most `bytes` (at least one slot).
  explicit WordCache(std::size_t bytes) {
    std::size_t slots = 1;
    while (slots * 2 * sizeof(Slot) <= bytes) slots *= 2;
    slots_.reset(static_cast<Slot*>(std::calloc(slots, sizeof(Slot))));
    if (slots_ == nullptr) throw std::bad_alloc();
    mask_ = slots - 1;
  }

  Slot& slot_of(const WordKey& key) { return slots_[hash_key(key, seed_) & mask_]; }

 private:
  // A key's length is at most 15: the upper half of its byte is the number of ids.
  static constexpr int kCountShift = 60;
  static constexpr std::uint64_t kCountBits = std::uint64_t{0xF} << kCountShift;

  std::uint64_t seed_ = process_seed();
  // From `calloc`, whose zeroed pages take memory and time only when they are touched: a short text
  // touches few of them.
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  static_assert(std::is_trivially_copyable_v<Slot>);
  std::unique_ptr<Slot[], Free> slots_;
  std::size_t mask_ = 0;
};

}  // namespace bpe_beam
