// The pair of the highest count.
//
// Pairs wait in a heap that is corrected lazily: an entry whose count (or first position) has
// changed goes back in with the new value. Only pairs with a count of at least the table's floor
// are in the heap; when it is empty, the floor falls. Most pairs occur once or twice and are never
// merged, so most are never listed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/merge_table.hpp"

namespace bpe_beam {

/// The number that decides between pairs with equal scores: the lower number wins. Not for
/// kGreatestBytes.
template <typename Table>
std::uint64_t tie_of(Table& table, typename Table::Pair& pair, TieBreak tie_break) {
  if (tie_break == TieBreak::kLowestId) return PairMap::key(pair.left, pair.right);
  return tie_break == TieBreak::kFirstSeen ? table.first_position(pair) : 0;
}

/// Returns whether the bytes of pair `a` are less than the bytes of pair `b`; for kGreatestBytes.
template <typename Table>
bool less_bytes(const Table& table, std::uint32_t a, std::uint32_t b) {
  const auto& x = table.pairs()[a];
  const auto& y = table.pairs()[b];
  if (x.left != y.left) return table.tokens()[x.left] < table.tokens()[y.left];
  return table.tokens()[x.right] < table.tokens()[y.right];
}

class CountQueue {
 public:
  struct Mark {};
  using Table = MergeTable<Mark>;

  CountQueue(Table& table, std::int64_t min_frequency, TieBreak tie_break)
      : table_(table), min_frequency_(min_frequency), tie_break_(tie_break) {}

  /// Is called when a pair may count more than before: makes sure that the heap has an entry at
  /// least as good as the pair is now.
  void count_rose(std::uint32_t index) {
    if (table_.pairs()[index].count >= least()) push(index);
  }

  /// Is called when the frequency of a token has fallen, which changes no order here.
  void frequency_fell(std::uint32_t) {}

  /// Removes the best pair from the heap and returns it; kNone if no pair is frequent enough.
  std::uint32_t pop_best() {
    while (true) {
      if (!table_.is_complete()) list_again();
      if (heap_.empty() && !lower_floor()) return PairMap::kNone;
      if (heap_.empty()) continue;
      std::ranges::pop_heap(heap_, worse());
      const Entry entry = heap_.back();
      heap_.pop_back();
      if (table_.pairs()[entry.pair].count < least()) continue;
      const Entry now = entry_of(entry.pair);
      if (now.count == entry.count && now.tie == entry.tie) return entry.pair;
      push(entry.pair);
    }
  }

 private:
  struct Entry {
    std::int64_t count;
    std::uint64_t tie;
    std::uint32_t pair;
  };

  /// Returns whether an entry is merged after another.
  struct Worse {
    const CountQueue& queue;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.count != b.count) return a.count < b.count;
      if (queue.tie_break_ != TieBreak::kGreatestBytes) return a.tie > b.tie;
      return less_bytes(queue.table_, a.pair, b.pair);
    }
  };

  [[nodiscard]] Worse worse() const { return {*this}; }

  /// The minimum count of a pair in the heap.
  [[nodiscard]] std::int64_t least() const { return std::max(table_.floor(), min_frequency_); }

  [[nodiscard]] Entry entry_of(std::uint32_t index) {
    auto& pair = table_.pairs()[index];
    return {pair.count, tie_of(table_, pair, tie_break_), index};
  }

  void push(std::uint32_t index) {
    heap_.push_back(entry_of(index));
    std::ranges::push_heap(heap_, worse());
  }

  /// Puts rarer pairs into the empty heap; returns false if there are none.
  bool lower_floor() {
    if (table_.floor() <= min_frequency_) return false;
    // Near the end the floor falls slowly, because most pairs occur once.
    list_pairs([this, before = table_.floor()](std::int64_t highest) {
      highest = std::min(highest, before - 1);
      return std::max(min_frequency_, highest < 64 ? highest / 2 + 1 : highest / 32);
    });
    return true;
  }

  /// Counts again after a merge that made a known token. Lists all pairs from the ninth time on.
  void list_again() {
    const std::int64_t floor = ++times_again_ > kMostTimesAgain ? 1 : table_.floor();
    list_pairs([floor](std::int64_t) { return floor; });
  }

  template <typename ChooseFloor>
  void list_pairs(ChooseFloor choose_floor) {
    heap_ = {};
    table_.list_pairs(choose_floor);
    for (std::uint32_t i = 0; i < table_.pairs().size(); ++i) {
      if (table_.pairs()[i].count >= least()) heap_.push_back(entry_of(i));
    }
    std::ranges::make_heap(heap_, worse());
  }

  static constexpr std::size_t kMostTimesAgain = 8;

  Table& table_;
  std::int64_t min_frequency_;  // at least 1
  TieBreak tie_break_;
  std::vector<Entry> heap_;
  std::size_t times_again_ = 0;
};

}  // namespace bpe_beam
