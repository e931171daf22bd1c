// BPE merges applied to the symbols of a word: the adjacent pair of lowest rank first, the leftmost
// if several have it.
//
// Short words are merged in a small array, long ones with a heap in O(n log n), so that a line of
// a million equal letters takes a second, not days.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "encode/pair_ranks.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

struct MergeRow {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t joined;
};

/// `Pairs` has rank(left, right), which is PairRanks::kNone for a pair that does not merge, and
/// joined(rank), the symbol that the pair becomes; or joined(left, right), if pairs with the same
/// rank may become different symbols.
template <class Pairs>
class Merging {
 public:
  explicit Merging(const Pairs& pairs) : pairs_(pairs) {}

  /// Merges the symbols in state.ids; state.ranks must have the rank of the pair that begins at
  /// each (PairRanks::kNone at the last). state.sizes are added up, if asked for.
  void apply(bool with_sizes, ModelState& state) const {
    if (state.ids.size() > kShortWord) {
      const auto nothing = [](std::uint32_t, std::uint32_t, std::uint32_t) {};
      with_sizes ? merge_long<true>(state, nothing) : merge_long<false>(state, nothing);
    } else {
      with_sizes ? merge_short<true>(state) : merge_short<false>(state);
    }
  }

  /// Merges as `apply` does, and calls `seen(rank, left, right)` for each merge.
  template <class Seen>
  void apply_watched(ModelState& state, Seen&& seen) const {
    merge_long<false>(state, seen);
  }

 private:
  static constexpr std::size_t kShortWord = 48;  // symbols; beyond it the heap wins

  [[nodiscard]] std::uint32_t joined(std::uint32_t rank, std::uint32_t left,
                                     std::uint32_t right) const {
    if constexpr (requires { pairs_.joined(left, right); }) {
      return pairs_.joined(left, right);
    } else {
      return pairs_.joined(rank);
    }
  }

  /// Symbols keep their places until the end, so that nothing is moved.
  template <bool kSizes>
  void merge_short(ModelState& state) const {
    const std::size_t size = state.ids.size();
    std::uint32_t* const ids = state.ids.data();
    std::uint32_t* const ranks = state.ranks.data();
    std::uint64_t left = (std::uint64_t{1} << size) - 1;  // bit i: symbol i was not merged away
    for (;;) {
      std::size_t at = 0;
      std::uint32_t best = PairRanks::kNone;
      for (std::size_t i = 0; i < size; ++i) {
        at = ranks[i] < best ? i : at;  // the leftmost minimum
        best = std::min(best, ranks[i]);
      }
      if (best == PairRanks::kNone) break;
      const std::uint64_t before = left & ((std::uint64_t{1} << at) - 1);
      std::uint64_t after = left & (~std::uint64_t{1} << at);
      const auto right = static_cast<std::size_t>(std::countr_zero(after));
      ids[at] = joined(best, ids[at], ids[right]);
      if constexpr (kSizes) state.sizes[at] += state.sizes[right];
      ranks[right] = PairRanks::kNone;
      left &= ~(std::uint64_t{1} << right);
      after &= after - 1;
      ranks[at] =
          after != 0 ? pairs_.rank(ids[at], ids[std::countr_zero(after)]) : PairRanks::kNone;
      if (before != 0) {
        const auto previous = static_cast<std::size_t>(std::bit_width(before)) - 1;
        ranks[previous] = pairs_.rank(ids[previous], ids[at]);
      }
    }
    std::size_t kept = 0;
    for (; left != 0; left &= left - 1, ++kept) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      ids[kept] = ids[i];
      if constexpr (kSizes) state.sizes[kept] = state.sizes[i];
    }
    state.ids.resize(kept);
    if constexpr (kSizes) state.sizes.resize(kept);
  }

  /// A rank in the high half, a position in the low one: the lowest rank wins, then the leftmost
  /// position.
  using Candidate = std::uint64_t;
  static Candidate candidate(std::uint32_t rank, std::uint32_t at) {
    return (static_cast<std::uint64_t>(rank) << 32) | at;
  }

  template <bool kSizes, class Seen>
  void merge_long(ModelState& state, Seen&& seen) const {
    std::vector<std::uint32_t>& ids = state.ids;
    std::vector<std::uint32_t>& sizes = state.sizes;
    std::vector<std::uint32_t>& ranks = state.ranks;
    std::vector<std::uint32_t>& previous = state.previous;
    std::vector<std::uint32_t>& next = state.next;
    const auto size = static_cast<std::uint32_t>(ids.size());
    previous.resize(size);
    next.resize(size);
    std::vector<Candidate> first;
    for (std::uint32_t i = 0; i < size; ++i) {
      previous[i] = i - 1;  // the first one's wraps and is never followed
      next[i] = i + 1;
      if (ranks[i] != PairRanks::kNone) first.push_back(candidate(ranks[i], i));
    }
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(),
                                                                                 std::move(first));
    const auto renew = [&](std::uint32_t at) {
      ranks[at] = next[at] < size ? pairs_.rank(ids[at], ids[next[at]]) : PairRanks::kNone;
      if (ranks[at] != PairRanks::kNone) queue.push(candidate(ranks[at], at));
    };
    while (!queue.empty()) {
      const auto rank_of_best = static_cast<std::uint32_t>(queue.top() >> 32);
      const auto at = static_cast<std::uint32_t>(queue.top());
      queue.pop();
      // A symbol that was merged away has PairRanks::kNone; a symbol whose pair has changed has
      // another rank.
      if (ranks[at] != rank_of_best) continue;
      const std::uint32_t right = next[at];
      seen(rank_of_best, ids[at], ids[right]);
      ids[at] = joined(rank_of_best, ids[at], ids[right]);
      if constexpr (kSizes) sizes[at] += sizes[right];
      next[at] = next[right];
      if (next[right] < size) previous[next[right]] = at;
      ranks[right] = PairRanks::kNone;
      ids[right] = kNoId;
      renew(at);
      if (at > 0) renew(previous[at]);
    }
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i < size; i = next[i], ++kept) {
      ids[kept] = ids[i];
      if constexpr (kSizes) sizes[kept] = sizes[i];
    }
    ids.resize(kept);
    if constexpr (kSizes) sizes.resize(kept);
  }

  const Pairs& pairs_;
};

class BpeMerges {
 public:
  static constexpr std::uint32_t kNoRank = PairRanks::kNone;

  /// `merges` by rank; a pair listed twice has its last rank. With `rank_by_joined`, all pairs that
  /// make one token have the rank of the first of these pairs, as in files that have only ranks.
  BpeMerges(std::span<const MergeRow> merges, bool rank_by_joined)
      : ranks_(merges.size(), most_id(merges)) {
    if (merges.size() >= kNoRank) throw std::length_error("more than 2^32 merges");
    joined_.reserve(merges.size());
    for (const MergeRow& merge : merges) {
      if (merge.joined == kNoId) throw std::invalid_argument("a merge makes an id that is none");
      const bool shares = rank_by_joined && !joined_.empty() && joined_.back() == merge.joined;
      if (!shares) joined_.push_back(merge.joined);
      ranks_.set(merge.left, merge.right, static_cast<std::uint32_t>(joined_.size() - 1));
    }
  }

  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    return ranks_.find(left, right);
  }

  /// The symbol that the pair of a rank becomes.
  [[nodiscard]] std::uint32_t joined(std::uint32_t rank) const { return joined_[rank]; }

  /// Merges the symbols in state.ids; state.ranks must have the rank of the pair that begins at
  /// each (kNoRank at the last). state.sizes are added up, if asked for.
  void apply(bool with_sizes, ModelState& state) const { Merging(*this).apply(with_sizes, state); }

  /// Merges as `apply` does, and calls `seen(rank, left, right)` for each merge.
  template <class Seen>
  void apply_watched(ModelState& state, Seen&& seen) const {
    Merging(*this).apply_watched(state, std::forward<Seen>(seen));
  }

  /// Fills state.ranks from state.ids.
  void look_up_ranks(ModelState& state) const {
    const std::size_t size = state.ids.size();
    state.ranks.resize(size);
    for (std::size_t i = 0; i + 1 < size; ++i) {
      state.ranks[i] = rank(state.ids[i], state.ids[i + 1]);
    }
    if (size > 0) state.ranks[size - 1] = kNoRank;
  }

 private:
  static std::uint32_t most_id(std::span<const MergeRow> merges) {
    std::uint32_t most = 0;
    for (const MergeRow& merge : merges) most = std::max({most, merge.left, merge.right});
    return most;
  }

  PairRanks ranks_;
  std::vector<std::uint32_t> joined_;  // by rank
};

}  // namespace bpe_beam
