// Adjacent pairs of symbols and how often they occur: open addressing, 64-bit counts.
//
// 16 bytes per slot, at most 5/8 full. Additions are collected, and their slots fetched before they
// are needed, because a table of millions of pairs does not fit into the caches.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "count/packed_words.hpp"
#include "count/pair_map.hpp"
#include "text/hash.hpp"

namespace bpe_beam {

/// Pairs as columns.
struct PairColumns {
  std::vector<std::uint32_t> lefts;
  std::vector<std::uint32_t> rights;
  std::vector<std::int64_t> counts;
};

/// Pairs of `max_length` or more characters are not joined, except pairs of two characters.
struct PairWidths {
  std::span<const std::uint32_t> widths;  // by id
  std::uint64_t max_length;
};

/// The pair's shard among `shards`. Artifacts depend on this hash: it must never change.
inline std::uint32_t shard_of(std::uint64_t key, std::uint32_t shards) {
  constexpr std::uint64_t kSeed = 0x8EBC6AF09C88C6E3;
  constexpr std::uint64_t kOdd = 0x589965CC75374CC3;
  return static_cast<std::uint32_t>(((fold_multiply(key ^ kSeed, kOdd) >> 32) * shards) >> 32);
}

/// If a call throws, the table contains a part of the call's pairs.
class PairTable {
 public:
  PairTable() { resize(kMinSlots); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }

  /// Counts the adjacent pairs of words; overlapping pairs are all counted.
  void add_words(const PackedWords& words) {
    add_words_if(words, [](std::uint32_t, std::uint32_t, std::size_t) { return true; });
  }

  /// Counts the adjacent pairs of words that may be joined.
  void add_words(const PackedWords& words, const PairWidths& rule) {
    add_words_if(words, [&](std::uint32_t left, std::uint32_t right, std::size_t word) {
      const std::uint64_t joined = width_of(rule, left, word) + width_of(rule, right, word);
      return joined < rule.max_length || joined == 2;
    });
  }

  void add(const std::uint32_t* lefts, const std::uint32_t* rights,
           std::span<const std::int64_t> counts) {
    Gathered gathered(*this);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] < 1) throw std::invalid_argument("a pair's count must be at least 1");
      gathered.add(PairMap::key(lefts[i], rights[i]), counts[i]);
    }
    gathered.flush();
  }

  void add_table(const PairTable& other) {
    Gathered gathered(*this);
    for (const Slot& slot : other.slots_) {
      if (slot.count != 0) gathered.add(slot.key, slot.count);
    }
    gathered.flush();
  }

  /// The pairs of each of `shards` shards, sorted by left and right.
  [[nodiscard]] std::vector<PairColumns> split(std::uint32_t shards) const {
    if (shards < 1) throw std::invalid_argument("shards must be at least 1, got 0");
    std::vector<std::vector<Slot>> members(shards);
    for (const Slot& slot : slots_) {
      if (slot.count != 0) members[shard_of(slot.key, shards)].push_back(slot);
    }
    std::vector<PairColumns> result;
    for (std::vector<Slot>& each : members) {
      result.push_back(sorted(each));
      std::vector<Slot>().swap(each);
    }
    return result;
  }

  /// The pairs that count at least `floor`, sorted by left and right. If there are more than
  /// `limit`, `floor` is raised as little as necessary.
  [[nodiscard]] PairColumns frequent(std::int64_t& floor, std::size_t limit) const {
    floor = std::max(floor, lowest_floor(floor, limit));
    std::vector<Slot> frequent_slots;
    for (const Slot& slot : slots_) {
      if (slot.count != 0 && slot.count >= floor) frequent_slots.push_back(slot);
    }
    return sorted(frequent_slots);
  }

  /// The first `limit` pairs: by falling count, then by the rank of left, then of right. `ranks`
  /// are by id; without them ids are the ranks.
  [[nodiscard]] PairColumns best(std::size_t limit,
                                 const std::optional<std::span<const std::uint32_t>>& ranks) const {
    const auto before = [&](const Slot& a, const Slot& b) {
      if (a.count != b.count) return a.count > b.count;
      return ranked(a, ranks) < ranked(b, ranks);
    };
    // A heap of the best pairs so far, with the worst of these on top: most pairs take one
    // comparison.
    std::vector<Slot> heap;
    for (const Slot& slot : slots_) {
      if (slot.count == 0) continue;
      if (ranks) check_ranked(slot, *ranks);
      if (heap.size() < limit) {
        heap.push_back(slot);
        std::push_heap(heap.begin(), heap.end(), before);
      } else if (limit > 0 && before(slot, heap.front())) {
        std::pop_heap(heap.begin(), heap.end(), before);
        heap.back() = slot;
        std::push_heap(heap.begin(), heap.end(), before);
      }
    }
    std::sort_heap(heap.begin(), heap.end(), before);
    return columns(heap);
  }

  /// Removes all pairs and frees their memory.
  void clear() {
    std::vector<Slot>().swap(slots_);
    size_ = 0;
    resize(kMinSlots);
  }

 private:
  static constexpr std::size_t kMinSlots = 256;
  static constexpr std::size_t kGathered = 64;

  struct Slot {
    std::uint64_t key = 0;
    std::int64_t count = 0;  // 0: free
  };

  /// Additions whose slots are being fetched from memory.
  class Gathered {
   public:
    explicit Gathered(PairTable& table) : table_(table) {}

    void add(std::uint64_t key, std::int64_t count) {
      const std::uint64_t hash = table_.hash(key);
      __builtin_prefetch(&table_.slots_[hash & table_.mask_], 1);
      waiting_[used_++] = {key, hash, count};
      if (used_ == kGathered) flush();
    }

    void flush() {
      table_.make_room(used_);
      for (std::size_t i = 0; i < used_; ++i) {
        table_.add_one(waiting_[i].key, waiting_[i].hash, waiting_[i].count);
      }
      used_ = 0;
    }

   private:
    struct Addition {
      std::uint64_t key;
      std::uint64_t hash;
      std::int64_t count;
    };

    PairTable& table_;
    std::array<Addition, kGathered> waiting_;
    std::size_t used_ = 0;
  };

  template <typename MayJoin>
  void add_words_if(const PackedWords& words, MayJoin may_join) {
    Gathered gathered(*this);
    for (std::size_t word = 0; word < words.size(); ++word) {
      const std::int64_t count = words.counts[word];
      check_count(count, word);
      const char* at = words.begin(word);
      const char* const end = words.end(word);
      if (at == end) continue;
      std::uint32_t left = symbol_of(at, end, word);
      while (at != end) {
        const std::uint32_t right = symbol_of(at, end, word);
        if (may_join(left, right, word)) gathered.add(PairMap::key(left, right), count);
        left = right;
      }
    }
    gathered.flush();
  }

  static std::uint64_t width_of(const PairWidths& rule, std::uint32_t id, std::size_t word) {
    if (id >= rule.widths.size()) [[unlikely]] {
      throw std::invalid_argument("word " + std::to_string(word) + " has the symbol " +
                                  std::to_string(id) + ": widths has " +
                                  std::to_string(rule.widths.size()) + " items");
    }
    return rule.widths[id];
  }

  [[nodiscard]] std::uint64_t hash(std::uint64_t key) const {
    return fold_multiply(key ^ seed_, 0x9E3779B97F4A7C15);
  }

  void add_one(std::uint64_t key, std::uint64_t hash, std::int64_t count) {
    std::size_t at = hash & mask_;
    while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & mask_;
    Slot& slot = slots_[at];
    if (slot.count == 0) {
      slot.key = key;
      ++size_;
    }
    if (__builtin_add_overflow(slot.count, count, &slot.count)) {
      slot.count = std::numeric_limits<std::int64_t>::max();
      throw std::overflow_error("a pair's count is beyond 64 bits");
    }
  }

  /// Makes room for `more` new pairs.
  void make_room(std::size_t more) {
    while ((size_ + more) * 8 > slots_.size() * 5) resize(slots_.size() * 2);
  }

  void resize(std::size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    mask_ = slots - 1;
    for (const Slot& slot : old) {
      if (slot.count == 0) continue;
      std::size_t at = hash(slot.key) & mask_;
      while (slots_[at].count != 0) at = (at + 1) & mask_;
      slots_[at] = slot;
    }
  }

  /// The lowest floor such that at most `limit` pairs count at least `floor`.
  [[nodiscard]] std::int64_t lowest_floor(std::int64_t floor, std::size_t limit) const {
    std::vector<std::int64_t> counts;
    for (const Slot& slot : slots_) {
      if (slot.count != 0 && slot.count >= floor) counts.push_back(slot.count);
    }
    if (counts.size() <= limit) return floor;
    const auto first_out = counts.begin() + static_cast<std::ptrdiff_t>(limit);
    std::nth_element(counts.begin(), first_out, counts.end(), std::greater<>());
    if (*first_out == std::numeric_limits<std::int64_t>::max()) {
      throw std::overflow_error("more pairs than the limit count 2^63 - 1");
    }
    return *first_out + 1;
  }

  static std::tuple<std::uint32_t, std::uint32_t, std::uint64_t> ranked(
      const Slot& slot, const std::optional<std::span<const std::uint32_t>>& ranks) {
    const auto left = static_cast<std::uint32_t>(slot.key >> 32);
    const auto right = static_cast<std::uint32_t>(slot.key);
    if (!ranks) return {left, right, 0};
    return {(*ranks)[left], (*ranks)[right], slot.key};  // the key decides if two ids share a rank
  }

  static void check_ranked(const Slot& slot, std::span<const std::uint32_t> ranks) {
    const std::uint64_t highest = std::max(slot.key >> 32, slot.key & 0xFFFFFFFF);
    if (highest >= ranks.size()) [[unlikely]] {
      throw std::invalid_argument("a pair has the symbol " + std::to_string(highest) +
                                  ": ranks has " + std::to_string(ranks.size()) + " items");
    }
  }

  static PairColumns sorted(std::vector<Slot>& slots) {
    std::sort(slots.begin(), slots.end(),
              [](const Slot& a, const Slot& b) { return a.key < b.key; });
    return columns(slots);
  }

  static PairColumns columns(const std::vector<Slot>& slots) {
    PairColumns result;
    result.lefts.reserve(slots.size());
    result.rights.reserve(slots.size());
    result.counts.reserve(slots.size());
    for (const Slot& slot : slots) {
      result.lefts.push_back(static_cast<std::uint32_t>(slot.key >> 32));
      result.rights.push_back(static_cast<std::uint32_t>(slot.key));
      result.counts.push_back(slot.count);
    }
    return result;
  }

  // Each table has its own seed: see WordTable.
  std::uint64_t seed_ = table_seed();
  std::size_t size_ = 0;
  std::size_t mask_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace bpe_beam
