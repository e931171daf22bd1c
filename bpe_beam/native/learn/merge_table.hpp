// The words and pairs that merges are learned from, and the effect of one merge on them.
//
// All words are in one array of symbols, with a barrier between two words. A token that covers
// several positions has its id at its first and at its last position, and nothing between: the
// tokens before and after a position are found without links. Each pair has a list of the positions
// where it was made; a position is live while the pair is still there.
//
// How many positions a token covers follows from its string where symbols are plain characters or
// bytes. Where they are decorated (`##b`, `m</w>`) it does not: text that holds the decoration
// itself makes the same string from other symbols. Only there (kWithSpans) an array has
// the span of the token at each position; it takes 4 bytes a symbol more.
//
// All merges together take O(n log n) in the symbols. Memory: 12 bytes a symbol, and 64 bytes and
// a slot of the index for each pair that ever was, at most some 100; natural text makes a pair for
// every two to ten of its symbols, random bytes one for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/chunked_vector.hpp"
#include "learn/pair_index.hpp"
#include "count/pair_map.hpp"
#include "learn/position_list.hpp"

namespace bpe_beam {

enum class TieBreak { kLowestId, kFirstSeen, kGreatestBytes };

/// What there is to learn from, and how tokens are joined.
struct WordsToLearn {
  /// The words' initial ids, one after another, word w at offsets[w]..offsets[w+1]. For
  /// kFirstSeen the words must be in the order of their first occurrence.
  std::span<const std::uint32_t> symbols;
  std::span<const std::int64_t> offsets;
  /// How often each word occurs.
  std::span<const std::int64_t> counts;
  /// The bytes of every id there is, empty for a token that no merge can make; ids whose bytes
  /// are equal are refused.
  std::vector<std::string> tokens;
  /// How many characters each of `symbols` covers; empty: one each. Needs kWithSpans.
  std::span<const std::uint32_t> spans;
  /// Dropped from the right part when a pair is joined.
  std::string prefix;
  /// Where a joined token would cover this many characters or more, it is neither counted nor
  /// merged, unless it would cover two.
  std::uint64_t max_token_length = UINT64_MAX;
  /// At most so many positions, for tests of the limits below.
  std::uint64_t max_positions = UINT64_MAX;
};

/// Positions of the symbols' array: of each symbol, or of each character where words come with
/// spans, and one between words. Where each knows a span too, its sign takes a bit.
inline constexpr std::uint64_t kMaxPositions = 0xFFFFFFFF;
inline constexpr std::uint64_t kMaxSpannedPositions = 0x7FFFFFFF;

struct LearnedMerge {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t joined;
  std::int64_t count;
};

using Position = std::uint32_t;

/// `Mark` is what a queue notes at each pair.
template <typename Mark, bool kWithSpans>
class MergeTable {
 public:
  struct Pair {
    std::uint32_t left;
    std::uint32_t right;
    std::int64_t count = 0;
    Mark mark{};
    bool in_order = true;    // positions ascend
    std::uint32_t head = 0;  // positions before it are known to be dead
    PositionList positions;
  };
  using Pairs = ChunkedVector<Pair>;

  explicit MergeTable(WordsToLearn words)
      : tokens_(std::move(words.tokens)),
        prefix_(std::move(words.prefix)),
        max_length_(words.max_token_length),
        limited_(max_length_ != UINT64_MAX),
        counts_(words.counts.begin(), words.counts.end()) {
    if (words.offsets.size() != words.counts.size() + 1) {
      throw std::invalid_argument("offsets must have one item more than counts");
    }
    if (!words.spans.empty() && (!kWithSpans || words.spans.size() != words.symbols.size())) {
      throw std::invalid_argument("spans must have one item for each symbol");
    }
    frequency_.assign(tokens_.size(), 0);
    if constexpr (!kWithSpans) widths_.assign(tokens_.size(), 0);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty()) continue;
      if (!id_of_.emplace(tokens_[id], static_cast<std::uint32_t>(id)).second) {
        throw std::invalid_argument("two ids have the same token");
      }
    }
    reserve_positions(words);
    lay_out(words.symbols, words.offsets, words.spans);
    count_pairs();
  }

  /// The bytes of every token, in the order of ids.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }
  /// How often a token occurs in the words now.
  [[nodiscard]] std::int64_t frequency(std::uint32_t token) const { return frequency_[token]; }
  Pairs& pairs() { return pairs_; }
  [[nodiscard]] const Pairs& pairs() const { return pairs_; }
  /// The pair's number, or PairMap::kNone.
  [[nodiscard]] std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    return pair_index_.find(pairs_, left, right);
  }

  /// The first position of the pair; kMaxPositions if there is none.
  Position first_position(Pair& pair) {
    const std::span<Position> positions = pair.positions.positions();
    if (!pair.in_order) {
      std::ranges::sort(positions.subspan(pair.head));
      pair.in_order = true;
    }
    while (pair.head < positions.size() && !is_at(pair, positions[pair.head])) ++pair.head;
    if (pair.head == positions.size()) return static_cast<Position>(kMaxPositions);
    return positions[pair.head];
  }

  /// Joins the pair at all its positions. Then calls `on_gain` with each pair whose count may have
  /// risen, with some more than once.
  template <typename OnGain>
  LearnedMerge merge(std::uint32_t index, OnGain on_gain) {
    const std::uint32_t left = pairs_[index].left;
    const std::uint32_t right = pairs_[index].right;
    const LearnedMerge learned{left, right, joined_token(left, right), pairs_[index].count};
    PositionList taken = pairs_[index].positions.take();
    const std::span<Position> positions = taken.positions();
    if (!pairs_[index].in_order) std::ranges::sort(positions);
    pairs_[index].head = 0;
    pairs_[index].in_order = true;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (i + kAhead < positions.size()) {
        __builtin_prefetch(&symbols_[positions[i + kAhead]]);
        __builtin_prefetch(&word_of_[positions[i + kAhead]]);
      }
      // If the right part is the prefix alone, the joined token equals the left one, and its
      // position is listed twice.
      if (kWithSpans && i > 0 && positions[i] == positions[i - 1]) continue;
      if (!is_at(pairs_[index], positions[i])) continue;
      limited_ ? merge_at<true>(positions[i], learned) : merge_at<false>(positions[i], learned);
    }
    pairs_[index].count -= merged_count_;
    frequency_[left] -= merged_count_;
    frequency_[right] -= merged_count_;
    frequency_[learned.joined] += merged_count_;
    merged_count_ = 0;
    update_neighbours(learned);
    for (const std::uint32_t gained : gained_) on_gain(gained);
    gained_.clear();
    return learned;
  }

 private:
  static constexpr std::uint32_t kBarrier = 0xFFFFFFFF;  // between words
  static constexpr std::uint32_t kInside = 0xFFFFFFFE;   // a position within a token
  static constexpr std::size_t kAhead = 16;              // positions fetched before they are needed
  static constexpr std::uint64_t kMaxSpan = 0x7FFFFFFF;

  /// What one merge takes from the pair of a neighbour and a part, and gives to the joined one.
  struct Neighbour {
    std::uint32_t token;
    std::int64_t lost = 0;
    std::int64_t gained = 0;
    std::vector<Position> positions;
  };

  /// Neighbours of one merge by token: a dense index, emptied by walking the list.
  struct Neighbours {
    std::vector<std::uint32_t> index;  // by token: its index in `list`, or kNone
    std::vector<Neighbour> list;
    std::size_t used = 0;

    Neighbour& of(std::uint32_t token) {
      if (index[token] == PairMap::kNone) {
        index[token] = static_cast<std::uint32_t>(used);
        if (used == list.size()) list.emplace_back();
        list[used].token = token;
        list[used].lost = 0;
        list[used].gained = 0;
        list[used].positions.clear();
        ++used;
      }
      return list[index[token]];
    }

    void clear() {
      for (std::size_t i = 0; i < used; ++i) index[list[i].token] = PairMap::kNone;
      used = 0;
    }
  };

  // ---- positions ----

  /// Of the token that begins at `at`.
  [[nodiscard]] std::uint32_t span_from(std::size_t at) const {
    if constexpr (kWithSpans) return static_cast<std::uint32_t>(spans_[at]);
    return widths_[symbols_[at]];
  }

  /// Of the token that ends at `at`.
  [[nodiscard]] std::uint32_t span_to(std::size_t at) const {
    if constexpr (kWithSpans) return static_cast<std::uint32_t>(std::abs(spans_[at]));
    return widths_[symbols_[at]];
  }

  void set_span(std::size_t begin, std::uint32_t span) {
    if constexpr (kWithSpans) {
      // At a token's last position it is negative: no token begins there.
      spans_[begin + span - 1] = -static_cast<std::int32_t>(span);
      spans_[begin] = static_cast<std::int32_t>(span);
    }
  }

  [[nodiscard]] bool is_at(const Pair& pair, Position at) const {
    if (symbols_[at] != pair.left) return false;
    if constexpr (!kWithSpans) {
      // It began a token when it was listed; tokens only grow, and this one is as wide as then.
      return symbols_[at + span_from(at)] == pair.right;
    }
    if (spans_[at] < 0) return false;
    const std::size_t next = at + span_from(at);
    return symbols_[next] == pair.right && may_join(next - at + span_from(next));
  }

  /// Whether a token of this length may be made.
  [[nodiscard]] bool may_join(std::uint64_t length) const {
    return length < max_length_ || length == 2;
  }

  void lay_out(std::span<const std::uint32_t> symbols, std::span<const std::int64_t> offsets,
               std::span<const std::uint32_t> spans) {
    __int128 total = 0;
    end_word(0);
    for (std::size_t word = 0; word < counts_.size(); ++word) {
      const std::int64_t begin = offsets[word];
      const std::int64_t end = offsets[word + 1];
      if (begin < 0 || end < begin || static_cast<std::size_t>(end) > symbols.size()) {
        throw std::invalid_argument("offsets must ascend within the symbols");
      }
      if (counts_[word] < 1) throw std::invalid_argument("a word's count must be at least 1");
      total += static_cast<__int128>(counts_[word]) * (end - begin);
      if (total > INT64_MAX) throw std::overflow_error("the words' symbols are beyond 64 bits");
      for (std::int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        append_symbol(symbols[at], spans.empty() ? 1 : spans[at], word);
      }
      end_word(word);
    }
  }

  void reserve_positions(const WordsToLearn& words) {
    std::uint64_t positions = counts_.size() + 1 + (words.spans.empty() ? words.symbols.size() : 0);
    for (const std::uint32_t span : words.spans) {
      if (span < 1 || span > kMaxSpan) {
        throw std::invalid_argument("a symbol's span must be from 1 to 2^31 - 1");
      }
      positions += span;
    }
    const std::uint64_t most =
        std::min(words.max_positions, kWithSpans ? kMaxSpannedPositions : kMaxPositions);
    if (positions > most) {
      throw std::length_error("more than " + std::to_string(most) +
                              " symbols and words: too many for one learner");
    }
    symbols_.reserve(positions);
    word_of_.reserve(positions);
    if constexpr (kWithSpans) spans_.reserve(positions);
  }

  void append_symbol(std::uint32_t symbol, std::uint32_t span, std::size_t word) {
    if (symbol >= tokens_.size() || tokens_[symbol].empty()) {
      throw std::invalid_argument("a symbol has no token");
    }
    if constexpr (!kWithSpans) widths_[symbol] = 1;
    frequency_[symbol] += counts_[word];
    symbols_.push_back(symbol);
    word_of_.push_back(static_cast<std::uint32_t>(word));
    if constexpr (kWithSpans) {
      const std::size_t begin = symbols_.size() - 1;
      spans_.resize(begin + span, 0);
      set_span(begin, span);
      if (span == 1) return;
      symbols_.resize(begin + span, kInside);
      word_of_.resize(begin + span, static_cast<std::uint32_t>(word));
      symbols_.back() = symbol;
    }
  }

  void end_word(std::size_t word) {
    symbols_.push_back(kBarrier);
    word_of_.push_back(static_cast<std::uint32_t>(word));
    if constexpr (kWithSpans) spans_.push_back(1);
  }

  /// Counts the initial pairs. Two passes, so that each list of positions is allocated at its size.
  void count_pairs() {
    std::vector<std::uint32_t> sizes;
    for_each_initial_pair([&](Position at, std::uint32_t left, std::uint32_t right) {
      const std::uint32_t index = pair_of(left, right);
      if (index == sizes.size()) sizes.push_back(0);
      pairs_[index].count += counts_[word_of_[at]];
      ++sizes[index];
    });
    for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i].positions.reserve(sizes[i]);
    for_each_initial_pair([&](Position at, std::uint32_t left, std::uint32_t right) {
      pairs_[find(left, right)].positions.push_back(at);
    });
  }

  template <typename Visit>
  void for_each_initial_pair(Visit visit) const {
    std::size_t at = 1;
    while (at + 1 < symbols_.size()) {
      // Only words that come with spans begin with wider symbols.
      const std::size_t span = kWithSpans && symbols_[at] != kBarrier ? span_from(at) : 1;
      const std::size_t next = at + span;
      if (symbols_[at] != kBarrier && symbols_[next] != kBarrier &&
          (!kWithSpans || may_join(span + span_from(next)))) {
        visit(static_cast<Position>(at), symbols_[at], symbols_[next]);
      }
      at = next;
    }
  }

  /// The pair's number; a new pair counts 0.
  std::uint32_t pair_of(std::uint32_t left, std::uint32_t right) {
    std::uint32_t& index = pair_index_(pairs_, left, right);
    if (index == PairMap::kNone) {
      if (pairs_.size() >= PairMap::kNone) throw std::length_error("more than 2^32 pairs");
      pairs_.push_back({.left = left, .right = right, .positions = {}});
      index = static_cast<std::uint32_t>(pairs_.size() - 1);
    }
    return index;
  }

  // ---- one merge ----

  std::uint32_t joined_token(std::uint32_t left, std::uint32_t right) {
    std::string bytes = tokens_[left];
    const std::string& part = tokens_[right];
    bytes.append(part, part.starts_with(prefix_) ? prefix_.size() : 0);
    const auto [entry, is_new] =
        id_of_.try_emplace(bytes, static_cast<std::uint32_t>(tokens_.size()));
    if (is_new) {
      tokens_.push_back(std::move(bytes));
      frequency_.push_back(0);
    }
    if constexpr (!kWithSpans) {
      if (is_new) widths_.push_back(0);
      const std::uint32_t width = widths_[left] + widths_[right];
      // A special token gets its width when it is first made by a merge.
      std::uint32_t& known = widths_[entry->second];
      if (known != 0 && known != width) {
        throw std::invalid_argument("a symbol's token is made of other symbols");
      }
      known = width;
    }
    for (Neighbours* it : {&before_, &after_}) it->index.resize(tokens_.size(), PairMap::kNone);
    return entry->second;
  }

  template <bool kLimited>
  void merge_at(Position at, const LearnedMerge& learned) {
    const std::uint32_t left = span_from(at);
    const Position middle = at + left;
    const std::uint32_t right = span_from(middle);
    const std::uint32_t joined = left + right;
    const Position next = at + joined;
    const std::int64_t count = counts_[word_of_[at]];
    merged_count_ += count;
    if (symbols_[at - 1] != kBarrier) {
      const std::uint32_t span = span_to(at - 1);
      note<kLimited>(before_, symbols_[at - 1], span + left, span + joined, count, at - span);
    }
    if (symbols_[next] != kBarrier) {
      const std::uint32_t span = span_from(next);
      note<kLimited>(after_, symbols_[next], right + span, joined + span, count, at);
    }
    symbols_[middle - 1] = kInside;
    symbols_[middle] = kInside;
    symbols_[at] = learned.joined;
    symbols_[next - 1] = learned.joined;
    set_span(at, joined);
  }

  /// One occurrence's share of it: pairs of these lengths, if they count.
  template <bool kLimited>
  void note(Neighbours& neighbours, std::uint32_t token, std::uint64_t lost, std::uint64_t gained,
            std::int64_t count, Position position) {
    Neighbour& neighbour = neighbours.of(token);
    if (!kLimited || may_join(lost)) neighbour.lost += count;
    if (kLimited && !may_join(gained)) return;
    neighbour.gained += count;
    neighbour.positions.push_back(position);
  }

  /// Moves the counts of (before, left) to (before, joined) and of (right, after) to
  /// (joined, after). Sums may be moved in any order: what a merge adds and another merge of the
  /// same run takes away again cancels out.
  void update_neighbours(const LearnedMerge& learned) {
    for (std::size_t i = 0; i < before_.used; ++i) {
      const Neighbour& neighbour = before_.list[i];
      // The pair may be one that this very merge makes, to be counted only below.
      pairs_[pair_of(neighbour.token, learned.left)].count -= neighbour.lost;
      gain(pair_of(neighbour.token, learned.joined), neighbour);
    }
    for (std::size_t i = 0; i < after_.used; ++i) {
      const Neighbour& neighbour = after_.list[i];
      pairs_[pair_of(learned.right, neighbour.token)].count -= neighbour.lost;
      gain(pair_of(learned.joined, neighbour.token), neighbour);
    }
    before_.clear();
    after_.clear();
  }

  void gain(std::uint32_t index, const Neighbour& neighbour) {
    if (neighbour.positions.empty()) return;
    Pair& pair = pairs_[index];
    pair.count += neighbour.gained;
    const bool ascends = pair.positions.empty() ||
                         pair.positions.positions().back() <= neighbour.positions.front();
    pair.in_order = pair.in_order && ascends;
    pair.positions.append(neighbour.positions);
    gained_.push_back(index);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::uint32_t> id_of_;
  std::string prefix_;
  std::uint64_t max_length_;
  bool limited_;
  std::vector<std::int64_t> frequency_;  // by token
  std::vector<std::uint32_t> widths_;    // by token: its positions; 0: not made yet (!kWithSpans)
  std::vector<std::int64_t> counts_;     // by word
  std::vector<std::uint32_t> symbols_;   // by position
  std::vector<std::uint32_t> word_of_;   // by position
  std::vector<std::int32_t> spans_;      // by position (kWithSpans)
  PairIndex<Pairs> pair_index_;
  Pairs pairs_;
  Neighbours before_;
  Neighbours after_;
  std::vector<std::uint32_t> gained_;
  std::int64_t merged_count_ = 0;
};

}  // namespace bpe_beam
