// The pair of the highest count.
//
// Pairs wait in a heap that is put right lazily: an entry whose count (or first position) has
// changed goes back in with the new one. Only pairs of a count of `floor_` and more are in there;
// when it is empty, the floor falls. Most pairs occur once or twice and are never merged, so most
// never enter the heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/merge_table.hpp"

namespace bpe_beam {

/// The number that decides between pairs of equal score: the lower one wins. Not for
/// kGreatestBytes.
template <typename Table>
std::uint64_t tie_of(Table& table, typename Table::Pair& pair, TieBreak tie_break) {
  if (tie_break == TieBreak::kLowestId) return PairMap::key(pair.left, pair.right);
  return tie_break == TieBreak::kFirstSeen ? table.first_position(pair) : 0;
}

/// True where the bytes of pair `a` are less than those of pair `b`: for kGreatestBytes.
template <typename Table>
bool less_bytes(const Table& table, std::uint32_t a, std::uint32_t b) {
  const auto& x = table.pairs()[a];
  const auto& y = table.pairs()[b];
  if (x.left != y.left) return table.tokens()[x.left] < table.tokens()[y.left];
  return table.tokens()[x.right] < table.tokens()[y.right];
}

template <bool kWithSpans>
class CountQueue {
 public:
  /// What the heap's one valid entry of a pair says; queued == 0: none.
  struct Mark {
    std::int64_t queued = 0;
    std::uint64_t tie = 0;
  };
  using Table = MergeTable<Mark, kWithSpans>;

  CountQueue(Table& table, std::int64_t min_frequency, TieBreak tie_break)
      : table_(table), min_frequency_(min_frequency), tie_break_(tie_break) {}

  /// A pair may count more than before: makes sure that the heap holds an entry at least as good
  /// as the pair is now.
  void count_rose(std::uint32_t index) {
    auto& pair = table_.pairs()[index];
    if (pair.count < floor_) return;
    const std::uint64_t tie = tie_of(table_, pair, tie_break_);
    if (pair.mark.queued >= pair.count && pair.mark.tie <= tie) return;
    requeue(index, tie);
  }

  /// The frequency of a token has fallen, which changes no order here.
  void frequency_fell(std::uint32_t) {}

  /// Takes the best pair out of the heap; kNone when none is frequent enough.
  std::uint32_t pop_best() {
    while (true) {
      if (heap_.empty() && !lower_floor()) return PairMap::kNone;
      if (heap_.empty()) continue;
      std::pop_heap(heap_.begin(), heap_.end(),
                    [this](const Entry& a, const Entry& b) { return worse(a, b); });
      const Entry entry = heap_.back();
      heap_.pop_back();
      if (is_stale(entry)) continue;
      auto& pair = table_.pairs()[entry.pair];
      pair.mark.queued = 0;
      if (pair.count < floor_) continue;
      const std::uint64_t tie = tie_of(table_, pair, tie_break_);
      if (pair.count == entry.count && tie == entry.tie) return entry.pair;
      requeue(entry.pair, tie);
    }
  }

 private:
  struct Entry {
    std::int64_t count;
    std::uint64_t tie;
    std::uint32_t pair;
  };

  /// True where `a` is merged after `b`.
  [[nodiscard]] bool worse(const Entry& a, const Entry& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (tie_break_ != TieBreak::kGreatestBytes) return a.tie > b.tie;
    return less_bytes(table_, a.pair, b.pair);
  }

  /// Whether a later entry has replaced this one.
  [[nodiscard]] bool is_stale(const Entry& entry) const {
    const Mark& mark = table_.pairs()[entry.pair].mark;
    return entry.count != mark.queued || entry.tie != mark.tie;
  }

  /// Makes room for one more entry: first by leaving out stale ones, then by a quarter more.
  void make_room() {
    if (heap_.size() < heap_.capacity()) return;
    std::erase_if(heap_, [this](const Entry& entry) { return is_stale(entry); });
    std::make_heap(heap_.begin(), heap_.end(),
                   [this](const Entry& a, const Entry& b) { return worse(a, b); });
    const std::size_t room = heap_.capacity();
    if (heap_.size() >= room - room / 4) heap_.reserve(room + room / 4 + 64);
  }

  void requeue(std::uint32_t index, std::uint64_t tie) {
    auto& pair = table_.pairs()[index];
    pair.mark = {pair.count, tie};
    make_room();
    heap_.push_back({pair.count, tie, index});
    std::push_heap(heap_.begin(), heap_.end(),
                   [this](const Entry& a, const Entry& b) { return worse(a, b); });
  }

  /// Lets rarer pairs into the empty heap; false when there are no rarer ones to let in.
  bool lower_floor() {
    if (floor_ <= min_frequency_) return false;
    std::int64_t highest = 0;
    for (std::size_t i = 0; i < table_.pairs().size(); ++i) {
      highest = std::max(highest, table_.pairs()[i].count);
    }
    // No pair is above the old floor, so a part of the highest is below it. Most pairs of all occur
    // once: near the end the floor falls slowly, so that these enter only when they are the best.
    highest = std::min(highest, floor_ - 1);
    floor_ = std::max(min_frequency_, highest < 64 ? highest / 2 + 1 : highest / 8);
    std::size_t entering = 0;
    for (std::size_t i = 0; i < table_.pairs().size(); ++i) {
      entering += table_.pairs()[i].count >= floor_ ? 1 : 0;
    }
    heap_.reserve(entering + entering / 8);
    for (std::uint32_t i = 0; i < table_.pairs().size(); ++i) count_rose(i);
    return true;
  }

  Table& table_;
  std::int64_t min_frequency_;  // at least 1
  TieBreak tie_break_;
  std::vector<Entry> heap_;
  std::int64_t floor_ = INT64_MAX;  // counts below it are not in the heap
};

}  // namespace bpe_beam
