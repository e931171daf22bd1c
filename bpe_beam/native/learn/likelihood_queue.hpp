// The pair of the highest count / (frequency of left x frequency of right): WordPiece's score.
//
// Scores rise when a token becomes rarer, so one lazy heap over all pairs would need an update for
// every pair of every token that a merge changes. Instead each pair has an owner: the token of the
// pair that was more frequent when the pair was first queued. An owner keeps a heap of its pairs by
// count / (frequency of the other token), which does not depend on its own frequency; one heap over
// all owners has the best pair of each by its whole score. When a token becomes rarer, its one
// entry among the owners is renewed, and so are the entries of its pairs that other tokens own.
// These are few, because their owners are more frequent.
//
// Both heaps are lazy: an entry may be better than its pair is now, never worse. A pair that rises
// gets a new entry at once; a pair that fell is corrected when its entry reaches the top.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/count_queue.hpp"
#include "learn/merge_table.hpp"

namespace bpe_beam {

/// Returns -1, 0 or 1 if a.count / a.divisor is less than, equal to or greater than b.count /
/// b.divisor. Counts are below 2^63 and divisors below 2^126. Exact: the products have up to 189
/// bits.
inline int compare_ratios(std::int64_t a_count, unsigned __int128 a_divisor, std::int64_t b_count,
                          unsigned __int128 b_divisor) {
  using Wide = unsigned __int128;
  const auto a = static_cast<std::uint64_t>(a_count);
  const auto b = static_cast<std::uint64_t>(b_count);
  const Wide x_low = Wide{a} * static_cast<std::uint64_t>(b_divisor);
  const Wide y_low = Wide{b} * static_cast<std::uint64_t>(a_divisor);
  const auto b_high = static_cast<std::uint64_t>(b_divisor >> 64);
  const auto a_high = static_cast<std::uint64_t>(a_divisor >> 64);
  if ((a_high | b_high) == 0) return x_low < y_low ? -1 : x_low > y_low ? 1 : 0;
  const Wide x_high = Wide{a} * b_high + (x_low >> 64);
  const Wide y_high = Wide{b} * a_high + (y_low >> 64);
  if (x_high != y_high) return x_high < y_high ? -1 : 1;
  const auto x = static_cast<std::uint64_t>(x_low);
  const auto y = static_cast<std::uint64_t>(y_low);
  return x < y ? -1 : x > y ? 1 : 0;
}

class LikelihoodQueue {
 public:
  static constexpr std::uint32_t kNone = PairMap::kNone;

  /// The content of the owner's one valid entry of a pair; count == 0: none.
  struct Mark {
    std::int64_t count = 0;
    std::int64_t partner = 0;
    std::uint64_t tie = 0;
    std::uint32_t owner = kNone;
  };
  using Table = MergeTable<Mark>;
  using Pair = Table::Pair;

  LikelihoodQueue(Table& table, std::int64_t min_frequency, TieBreak tie_break)
      : table_(table), min_frequency_(min_frequency), tie_break_(tie_break) {
    table_.list_pairs([](std::int64_t) { return 1; });  // the best pair may be rare
    for (std::uint32_t i = 0; i < table_.pairs().size(); ++i) count_rose(i);
  }

  /// Is called when a pair may count more than before.
  void count_rose(std::uint32_t index) {
    Pair& pair = table_.pairs()[index];
    if (pair.count < min_frequency_) return;
    if (pair.mark.owner == kNone) give_owner(index);
    renew(index);
  }

  /// Is called when the frequency of a token has fallen: the scores of its pairs have risen.
  void frequency_fell(std::uint32_t token) {
    grow_to(token);
    std::vector<std::uint32_t>& lent = tokens_[token].lent;
    std::size_t kept = 0;
    for (const std::uint32_t index : lent) {
      Pair& pair = table_.pairs()[index];
      if (pair.count < min_frequency_) {
        // If it is frequent again later, it gets an owner again.
        --tokens_[pair.mark.owner].owned;
        pair.mark = {};
        continue;
      }
      lent[kept++] = index;
      renew(index);
    }
    lent.resize(kept);
    post(token);
  }

  /// Removes the best pair and returns it; kNone if no pair is frequent enough.
  std::uint32_t pop_best() {
    while (!owners_.empty()) {
      std::pop_heap(owners_.begin(), owners_.end(), worse());
      const Posted entry = owners_.back();
      owners_.pop_back();
      if (entry.stamp != tokens_[entry.owner].posted.stamp) continue;  // a later one replaced it
      tokens_[entry.owner].posted = {};
      if (!settle(entry.owner)) continue;
      const Posted now = best_of(entry.owner);
      if (!worse(now, entry)) {
        drop_best(entry.owner);
        table_.pairs()[now.entry.pair].mark.count = 0;
        return now.entry.pair;
      }
      post(entry.owner);
    }
    return kNone;
  }

 private:
  struct Entry {
    std::int64_t count = 0;
    std::int64_t partner = 0;  // the frequency of the token that is not the owner
    std::uint64_t tie = 0;
    std::uint32_t pair = kNone;
  };

  struct Posted {
    Entry entry;
    unsigned __int128 divisor = 0;  // both frequencies multiplied
    std::uint32_t owner = kNone;
    std::uint64_t stamp = 0;  // 0: no entry
  };

  struct Token {
    std::vector<Entry> heap;          // of the pairs that it owns
    std::size_t owned = 0;            // how many these are
    std::vector<std::uint32_t> lent;  // pairs whose score depends on it, but that others own
    Posted posted;                    // its one valid entry among the owners
  };

  /// Decides between pairs with equal scores.
  [[nodiscard]] bool worse_tie(const Entry& a, const Entry& b) const {
    if (tie_break_ != TieBreak::kGreatestBytes) return a.tie > b.tie;
    return less_bytes(table_, a.pair, b.pair);
  }

  /// Compares pairs of one owner.
  [[nodiscard]] bool worse(const Entry& a, const Entry& b) const {
    const auto a_partner = static_cast<unsigned __int128>(a.partner);
    const auto b_partner = static_cast<unsigned __int128>(b.partner);
    const int order = compare_ratios(a.count, a_partner, b.count, b_partner);
    return order != 0 ? order < 0 : worse_tie(a, b);
  }

  [[nodiscard]] bool worse(const Posted& a, const Posted& b) const {
    const int order = compare_ratios(a.entry.count, a.divisor, b.entry.count, b.divisor);
    return order != 0 ? order < 0 : worse_tie(a.entry, b.entry);
  }

  /// The order of heaps, of entries or of posted ones.
  struct Worse {
    const LikelihoodQueue& queue;
    bool operator()(const auto& a, const auto& b) const { return queue.worse(a, b); }
  };

  [[nodiscard]] Worse worse() const { return {*this}; }

  void grow_to(std::uint32_t token) {
    if (token >= tokens_.size()) tokens_.resize(table_.tokens().size());
  }

  void give_owner(std::uint32_t index) {
    Pair& pair = table_.pairs()[index];
    const bool left = table_.frequency(pair.left) >= table_.frequency(pair.right);
    pair.mark.owner = left ? pair.left : pair.right;
    grow_to(std::max(pair.left, pair.right));
    ++tokens_[pair.mark.owner].owned;
    // For a pair of equal tokens, owner and other token are the same.
    tokens_[left ? pair.right : pair.left].lent.push_back(index);
  }

  /// The pair as it is now.
  [[nodiscard]] Entry entry_of(std::uint32_t index) {
    Pair& pair = table_.pairs()[index];
    const std::uint32_t partner = pair.mark.owner == pair.left ? pair.right : pair.left;
    return {pair.count, table_.frequency(partner), tie_of(table_, pair, tie_break_), index};
  }

  /// Makes sure that the pair's owner has an entry at least as good as the pair is now.
  void renew(std::uint32_t index) {
    Mark& mark = table_.pairs()[index].mark;
    const Entry entry = entry_of(index);
    if (mark.count != 0 && !worse(Entry{mark.count, mark.partner, mark.tie, index}, entry)) return;
    push(mark.owner, entry);
    if (tokens_[mark.owner].heap.front().pair == index) post(mark.owner);
  }

  void push(std::uint32_t owner, const Entry& entry) {
    Mark& mark = table_.pairs()[entry.pair].mark;
    mark = {entry.count, entry.partner, entry.tie, owner};
    Token& token = tokens_[owner];
    if (token.heap.size() > 2 * token.owned + kSlack) {
      std::erase_if(token.heap, [&](const Entry& old) { return is_stale(old, owner); });
      std::make_heap(token.heap.begin(), token.heap.end(), worse());
    }
    token.heap.push_back(entry);
    std::push_heap(token.heap.begin(), token.heap.end(), worse());
  }

  [[nodiscard]] bool is_stale(const Entry& entry, std::uint32_t owner) const {
    const Mark& mark = table_.pairs()[entry.pair].mark;
    return entry.count != mark.count || entry.partner != mark.partner || entry.tie != mark.tie ||
           owner != mark.owner;
  }

  void drop_best(std::uint32_t owner) {
    std::vector<Entry>& heap = tokens_[owner].heap;
    std::pop_heap(heap.begin(), heap.end(), worse());
    heap.pop_back();
  }

  /// Corrects the owner's first entry; returns false if no entry remains.
  bool settle(std::uint32_t owner) {
    std::vector<Entry>& heap = tokens_[owner].heap;
    while (!heap.empty()) {
      const Entry entry = heap.front();
      if (is_stale(entry, owner)) {
        drop_best(owner);
        continue;
      }
      Pair& pair = table_.pairs()[entry.pair];
      const bool rare = pair.count < min_frequency_;
      const Entry now = rare ? Entry{} : entry_of(entry.pair);
      if (!rare && !worse(now, entry)) return true;
      drop_best(owner);
      pair.mark.count = 0;
      if (!rare) push(owner, now);
    }
    return false;
  }

  [[nodiscard]] Posted best_of(std::uint32_t owner) const {
    const Entry& entry = tokens_[owner].heap.front();
    const auto partner = static_cast<unsigned __int128>(entry.partner);
    const auto own = static_cast<unsigned __int128>(table_.frequency(owner));
    return {entry, partner * own, owner, 0};
  }

  /// Makes sure that the owner's entry among the owners is at least as good as its best pair.
  void post(std::uint32_t owner) {
    Token& token = tokens_[owner];
    if (token.heap.empty()) return;
    Posted best = best_of(owner);
    if (token.posted.stamp != 0 && !worse(token.posted, best)) return;
    if (owners_.size() > 2 * tokens_.size() + kSlack) {
      std::erase_if(owners_, [this](const Posted& old) {
        return old.stamp != tokens_[old.owner].posted.stamp;
      });
      std::make_heap(owners_.begin(), owners_.end(), worse());
    }
    best.stamp = ++stamp_;
    token.posted = best;
    owners_.push_back(best);
    std::push_heap(owners_.begin(), owners_.end(), worse());
  }

  static constexpr std::size_t kSlack = 64;

  Table& table_;
  std::int64_t min_frequency_;  // at least 1
  TieBreak tie_break_;
  std::vector<Token> tokens_;
  std::vector<Posted> owners_;
  std::uint64_t stamp_ = 0;
};

}  // namespace bpe_beam
