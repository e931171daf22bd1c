// The rank of each pair of ids that merge, in 10 to 21 bytes per pair, and a filter.
//
// Most pairs that are looked up do not merge: a filter that fits the caches answers for them. The
// table should fit the caches too: vocabularies of up to two million ids and four million merges
// take eight bytes per slot, larger ones go into a PairMap.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "count/pair_map.hpp"
#include "encode/bit_filter.hpp"

namespace bpe_beam {

class PairRanks {
 public:
  static constexpr std::uint32_t kNone = PairMap::kNone;

  /// For `pairs` pairs of ids up to `most_id`.
  PairRanks(std::size_t pairs, std::uint32_t most_id) : filter_(pairs) {
    if (most_id >= kIds || pairs >= kRanks) {
      large_.emplace(pairs);
      return;
    }
    // At most 77 % are used, so that the table stays in the caches.
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(pairs * 13 / 10, 16));
    slots_.assign(slots, kFree);
    mask_ = slots - 1;
  }

  /// Sets the rank of a pair, below the number of pairs; the last rank counts.
  void set(std::uint32_t left, std::uint32_t right, std::uint32_t rank) {
    if (large_) {
      (*large_)[PairMap::key(left, right)] = rank;
      return;
    }
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    filter_.add(hash);
    std::size_t at = (hash >> kSlotShift) & mask_;
    while (slots_[at] != kFree && slots_[at] >> kRankBits != key) at = (at + 1) & mask_;
    slots_[at] = key << kRankBits | rank;
  }

  /// The pair's rank, or kNone.
  [[nodiscard]] std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    if (large_) [[unlikely]]
      return large_->find(PairMap::key(left, right));
    if (((left | right) >> kIdBits) != 0) [[unlikely]]
      return kNone;
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    if (!filter_.may_have(hash)) return kNone;
    for (std::size_t at = (hash >> kSlotShift) & mask_;; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot == kFree) return kNone;  // first: its upper bits could be a pair's
      if (slot >> kRankBits == key) return static_cast<std::uint32_t>(slot & (kRanks - 1));
    }
  }

 private:
  static constexpr int kIdBits = 21;
  static constexpr int kRankBits = 22;
  static constexpr int kSlotShift = 40;  // other bits of the hash than the filter's first
  static constexpr std::uint64_t kIds = std::uint64_t{1} << kIdBits;
  static constexpr std::uint64_t kRanks = std::uint64_t{1} << kRankBits;
  // No rank is kRanks - 1, so no pair with its rank is all ones.
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << kIdBits | right;
  }
  static std::uint64_t hash_of(std::uint64_t key) {
    return fold_multiply(key ^ 0xA0761D6478BD642F, 0x9E3779B97F4A7C15);
  }

  BitFilter filter_;
  std::vector<std::uint64_t> slots_;
  std::size_t mask_ = 0;
  std::optional<PairMap> large_;
};

}  // namespace bpe_beam
