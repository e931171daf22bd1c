// The words and pairs that merges are learned from, and the effect of one merge on them.
//
// All words are in one array, with a barrier between two words. A token that covers several
// positions has its id at its first and at its last position, and its span next to them, so the
// tokens before and after a position are reached without links. A listed pair has its count and the
// positions where it was made; a position is live while it still has the pair.
//
// Only frequent pairs are listed: `list_pairs` gives each token one position, counts all pairs and
// lists the pairs with a count of at least `floor()`. Between two calls, a pair that a merge makes
// is listed if it reaches the floor. The count of any other pair can only fall, unless a merge
// makes a token that existed before; then `is_complete()` is false until `list_pairs` has counted
// again. So only pairs that may still be merged take memory.
//
// All merges together take O(n log n) for n symbols, and each `list_pairs` O(n); a merge that makes
// a known token also walks the positions of pairs that gain. Memory: 8 bytes per symbol, 4 bytes
// for each position of a listed pair, and 32 bytes and a slot of the index for each listed pair (64
// bytes for LikelihoodQueue). Positions of merged pairs stay until the next `list_pairs`; with
// LikelihoodQueue, which lists once, they take up to 8 more bytes per symbol. `list_pairs` itself
// takes 4 more bytes per symbol, and up to 32 MiB of sums.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "count/pair_map.hpp"
#include "learn/pair_index.hpp"
#include "learn/position_arena.hpp"
#include "text/chunked_vector.hpp"

namespace bpe_beam {

enum class TieBreak { kLowestId, kFirstSeen, kGreatestBytes };

/// The words to learn from, and the rules for joining tokens.
struct WordsToLearn {
  /// The words' initial ids, one word after another, word w at offsets[w]..offsets[w+1]. For
  /// kFirstSeen the words must be in the order of their first occurrence.
  std::span<const std::uint32_t> symbols;
  std::span<const std::int64_t> offsets;
  /// How often each word occurs.
  std::span<const std::int64_t> counts;
  /// The bytes of every id, empty for a token that no merge can make; ids with equal bytes are
  /// refused.
  std::vector<std::string> tokens;
  /// The number of characters that each of `symbols` covers; empty: one each.
  std::span<const std::uint32_t> spans;
  /// Dropped from the right part when a pair is joined.
  std::string prefix;
  /// A pair is neither counted nor merged if the joined token would cover this many characters or
  /// more, and more than two.
  std::uint64_t max_token_length = UINT64_MAX;
  /// The maximum number of positions, for tests of the limit below.
  std::uint64_t max_positions = UINT64_MAX;
};

/// The number of positions in the array: one for each symbol (with spans, for each character), and
/// one between words.
inline constexpr std::uint64_t kMaxPositions = 0xFFFFFFFF;

struct LearnedMerge {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t joined;
  std::int64_t count;
};

using Position = std::uint32_t;

/// `Mark` is the data that a queue stores with each pair.
template <typename Mark>
class MergeTable {
 public:
  struct Pair {
    std::uint32_t left;
    std::uint32_t right;
    std::int64_t count = 0;
    PositionList positions;  // ascending; some may be dead
    [[no_unique_address]] Mark mark{};
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
    if (!words.spans.empty() && words.spans.size() != words.symbols.size()) {
      throw std::invalid_argument("spans must have one item for each symbol");
    }
    frequency_.assign(tokens_.size(), 0);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty()) continue;
      if (!id_of_.emplace(tokens_[id], static_cast<std::uint32_t>(id)).second) {
        throw std::invalid_argument("two ids have the same token");
      }
    }
    reserve_positions(words);
    lay_out(words.symbols, words.offsets, words.spans);
  }

  /// The bytes of every token, in the order of ids.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }
  /// How often a token occurs in the words now.
  [[nodiscard]] std::int64_t frequency(std::uint32_t token) const { return frequency_[token]; }
  /// The listed pairs.
  Pairs& pairs() { return pairs_; }
  [[nodiscard]] const Pairs& pairs() const { return pairs_; }
  /// The number of a listed pair, or PairMap::kNone.
  [[nodiscard]] std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    return pair_index_.find(pairs_, left, right);
  }
  /// If the list is complete, every pair with this count or more is listed.
  [[nodiscard]] std::int64_t floor() const { return floor_; }
  /// Returns whether every pair with a count of `floor()` or more is listed.
  [[nodiscard]] bool is_complete() const { return complete_; }

  /// Counts all pairs and makes a new list of the frequent pairs; numbers of pairs change.
  ///
  /// `choose_floor` gets an upper bound of all counts, and returns the new floor, at least 1.
  template <typename ChooseFloor>
  void list_pairs(ChooseFloor choose_floor) {
    pairs_.clear();
    pair_index_.clear();
    arena_.clear();
    before_.release();
    after_.release();
    if (!limited_) drop_insides();
    complete_ = true;
    const std::size_t ids = tokens_.size();
    ids* ids <= slots_.size() / kSlotsPerCell ? list_few_ids(choose_floor)
                                              : list_many_ids(choose_floor);
  }

  /// The first position of the pair; kMaxPositions if there is none.
  Position first_position(Pair& pair) const {
    while (!pair.positions.empty()) {
      const Position first = pair.positions.positions().front();
      if (is_at(pair.left, pair.right, first)) return first;
      pair.positions.pop_front();
    }
    return static_cast<Position>(kMaxPositions);
  }

  /// Joins a listed pair at all its positions. Then calls `on_gain` with each listed pair whose
  /// count may have risen, for some pairs more than once.
  template <typename OnGain>
  LearnedMerge merge(std::uint32_t index, OnGain on_gain) {
    const std::uint32_t left = pairs_[index].left;
    const std::uint32_t right = pairs_[index].right;
    const std::span<const Position> positions =
        std::exchange(pairs_[index].positions, {}).positions();
    const std::size_t known = tokens_.size();
    const LearnedMerge learned{left, right, joined_token(left, right), pairs_[index].count};
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (i + kAhead < positions.size()) {
        __builtin_prefetch(&slots_[positions[i + kAhead]]);
        __builtin_prefetch(&word_of_[positions[i + kAhead]]);
      }
      // If the right part is only the prefix, the joined token equals the left token, and its
      // position is listed twice.
      if (i > 0 && positions[i] == positions[i - 1]) continue;
      if (!is_at(left, right, positions[i])) continue;
      limited_ ? merge_at<true>(positions[i], learned) : merge_at<false>(positions[i], learned);
    }
    pairs_[index].count -= merged_count_;
    frequency_[left] -= merged_count_;
    frequency_[right] -= merged_count_;
    frequency_[learned.joined] += merged_count_;
    merged_count_ = 0;
    update_neighbours(learned, learned.joined < known);
    for (const std::uint32_t gained : gained_) on_gain(gained);
    gained_.clear();
    return learned;
  }

 private:
  // A slot has an id at the first and the last position of a token. For a token of several
  // positions, one of the two highest bits marks its first slot, the other its last slot, and both
  // mark slots within it. The second and the last but one slot have its span, if they are not its
  // first or last.
  static constexpr std::uint32_t kBegin = std::uint32_t{1} << 30;
  static constexpr std::uint32_t kEnd = std::uint32_t{2} << 30;
  static constexpr std::uint32_t kInside = kBegin | kEnd;
  static constexpr std::uint32_t kBarrier = 0xFFFFFFFF;  // between words
  static constexpr std::uint32_t kMaxSpan = kBegin - 1;
  static constexpr std::size_t kAhead = 16;  // positions fetched before they are needed
  static constexpr std::size_t kSlotsPerCell = 4;
  static constexpr std::size_t kSlotsPerSum = 8;
  static constexpr std::size_t kMinSums = 1 << 10;
  static constexpr std::size_t kMaxSums = 1 << 22;

  /// The counts that one merge moves from the pair of a neighbour and a part to the pair of the
  /// neighbour and the joined token.
  struct Neighbour {
    std::uint32_t token = 0;
    std::uint32_t size = 0;  // of `positions`
    std::int64_t lost = 0;
    std::int64_t gained = 0;
    std::uint32_t pair = PairMap::kNone;  // the listed pair of the joined token
  };

  /// Neighbours of one merge by token: a dense index, emptied by walking the list.
  struct Neighbours {
    struct Occurrence {
      std::uint32_t neighbour;  // its index in `list`
      Position position;
    };

    std::vector<std::uint32_t> index;  // by token: its index in `list`, or kNone
    std::vector<Neighbour> list;
    std::vector<Occurrence> gained;

    std::uint32_t of(std::uint32_t token) {
      if (index[token] == PairMap::kNone) {
        index[token] = static_cast<std::uint32_t>(list.size());
        list.push_back({.token = token});
      }
      return index[token];
    }

    void clear() {
      for (const Neighbour& neighbour : list) index[neighbour.token] = PairMap::kNone;
      list.clear();
      gained.clear();
    }

    /// Releases the memory of the largest merge so far.
    void release() {
      list.shrink_to_fit();
      gained.shrink_to_fit();
    }
  };

  // ---- positions ----

  /// The span of the token that begins at `at`.
  [[nodiscard]] std::uint32_t span_from(std::size_t at) const {
    if ((slots_[at] & kBegin) == 0) return 1;
    return span_of_slot(slots_[at + 1]);
  }

  /// The span of the token that ends at `at`.
  [[nodiscard]] std::uint32_t span_to(std::size_t at) const {
    if ((slots_[at] & kEnd) == 0) return 1;
    return span_of_slot(slots_[at - 1]);
  }

  /// The span, by the slot next to the first, or the last, of a token of several positions.
  static std::uint32_t span_of_slot(std::uint32_t slot) {
    return (slot & kInside) == kInside ? slot & ~kInside : 2;
  }

  /// The id at the first or last position of a token.
  static std::uint32_t id_of_slot(std::uint32_t slot) { return slot & ~kInside; }

  void set_token(std::size_t begin, std::uint32_t id, std::uint32_t span) {
    if (span == 1) {
      slots_[begin] = id;
      return;
    }
    const std::size_t last = begin + span - 1;
    slots_[begin] = id | kBegin;
    slots_[last] = id | kEnd;
    if (span == 2) return;
    slots_[begin + 1] = span | kInside;
    slots_[last - 1] = span | kInside;
  }

  [[nodiscard]] bool is_at(std::uint32_t left, std::uint32_t right, Position at) const {
    if ((slots_[at] & ~kBegin) != left) return false;
    const std::uint32_t span = span_from(at);
    const std::size_t next = at + span;
    if ((slots_[next] & ~kBegin) != right) return false;
    return !limited_ || may_join(std::uint64_t{span} + span_from(next));
  }

  /// Returns whether a token of this length may be made.
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
        throw std::invalid_argument("a symbol's span must be from 1 to 2^30 - 1");
      }
      positions += span;
    }
    const std::uint64_t most = std::min(words.max_positions, kMaxPositions);
    if (positions > most) {
      throw std::length_error("more than " + std::to_string(most) +
                              " symbols and words: too many for one learner");
    }
    slots_.reserve(positions);
    word_of_.reserve(positions);
  }

  void append_symbol(std::uint32_t symbol, std::uint32_t span, std::size_t word) {
    if (symbol >= std::min<std::size_t>(tokens_.size(), kBegin) || tokens_[symbol].empty()) {
      throw std::invalid_argument("a symbol has no token");
    }
    frequency_[symbol] += counts_[word];
    const std::size_t begin = slots_.size();
    slots_.resize(begin + span, kInside);
    word_of_.resize(begin + span, static_cast<std::uint32_t>(word));
    set_token(begin, symbol, span);
  }

  void end_word(std::size_t word) {
    slots_.push_back(kBarrier);
    word_of_.push_back(static_cast<std::uint32_t>(word));
  }

  /// Gives each token one position, and drops the words of one token, which have no pairs.
  void drop_insides() {
    std::size_t end = 1;  // after the first barrier
    for (std::size_t at = 1; at < slots_.size(); ++at) {
      const std::size_t begin = end;
      for (std::size_t span = 0; slots_[at] != kBarrier; at += span) {
        span = span_from(at);
        word_of_[end] = word_of_[at];
        slots_[end++] = id_of_slot(slots_[at]);
      }
      if (end - begin < 2) {
        end = begin;
      } else {
        slots_[end++] = kBarrier;
      }
    }
    for (auto* list : {&slots_, &word_of_}) {
      list->resize(end);
      if (end < list->capacity() / 2) list->shrink_to_fit();
    }
  }

  /// Calls `visit(position, left, right, the word's count)` for each pair in turn.
  template <typename Visit>
  void for_each_pair(Visit visit) const {
    for (std::size_t at = 1; at < slots_.size(); ++at) {
      if (slots_[at] == kBarrier) continue;
      const std::int64_t count = counts_[word_of_[at]];
      std::size_t next = at + span_from(at);
      while (slots_[next] != kBarrier) {
        const std::size_t end = next + span_from(next);
        if (!limited_ || may_join(end - at)) {
          visit(static_cast<Position>(at), id_of_slot(slots_[at]), id_of_slot(slots_[next]), count);
        }
        at = next;
        next = end;
      }
      at = next;
    }
  }

  /// Lists pairs by a table of all possible pairs of two ids.
  template <typename ChooseFloor>
  void list_few_ids(ChooseFloor choose_floor) {
    struct Cell {
      std::int64_t count = 0;
      std::uint32_t size = 0;
      std::uint32_t pair = PairMap::kNone;
    };
    const std::size_t ids = tokens_.size();
    std::vector<Cell> cells(ids * ids);
    std::int64_t highest = 0;
    for_each_pair([&](Position, std::uint32_t left, std::uint32_t right, std::int64_t count) {
      Cell& cell = cells[left * ids + right];
      cell.count += count;
      ++cell.size;
      highest = std::max(highest, cell.count);
    });
    floor_ = choose_floor(highest);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Cell& cell = cells[i];
      if (cell.count < floor_) continue;
      cell.pair = pair_of(static_cast<std::uint32_t>(i / ids), static_cast<std::uint32_t>(i % ids));
      pairs_[cell.pair].count = cell.count;
      arena_.reserve(pairs_[cell.pair].positions, cell.size);
    }
    for_each_pair([&](Position at, std::uint32_t left, std::uint32_t right, std::int64_t) {
      const std::uint32_t pair = cells[left * ids + right].pair;
      if (pair != PairMap::kNone) pairs_[pair].positions.push_back(at);
    });
  }

  /// Lists pairs after adding up their counts by a hash: no pair counts more than its sum.
  template <typename ChooseFloor>
  void list_many_ids(ChooseFloor choose_floor) {
    const std::size_t wanted = std::bit_ceil(slots_.size() / kSlotsPerSum);
    std::vector<std::int64_t> sums(std::clamp(wanted, kMinSums, kMaxSums));
    const auto sum_of = [&](std::uint32_t left, std::uint32_t right) -> std::int64_t& {
      return sums[PairMap::hash(PairMap::key(left, right)) & (sums.size() - 1)];
    };
    for_each_pair([&](Position, std::uint32_t left, std::uint32_t right, std::int64_t count) {
      sum_of(left, right) += count;
    });
    floor_ = choose_floor(*std::ranges::max_element(sums));
    std::vector<std::uint32_t> pair_at;  // of each position in turn
    std::vector<std::uint32_t> sizes;
    pair_at.reserve(slots_.size());
    for_each_pair([&](Position, std::uint32_t left, std::uint32_t right, std::int64_t count) {
      if (sum_of(left, right) < floor_) {
        pair_at.push_back(PairMap::kNone);
        return;
      }
      const std::uint32_t pair = pair_of(left, right);
      pair_at.push_back(pair);
      if (pair == sizes.size()) sizes.push_back(0);
      pairs_[pair].count += count;
      ++sizes[pair];
    });
    for (std::size_t i = 0; i < pairs_.size(); ++i) arena_.reserve(pairs_[i].positions, sizes[i]);
    const std::uint32_t* pair = pair_at.data();
    for_each_pair([&](Position at, std::uint32_t, std::uint32_t, std::int64_t) {
      if (*pair != PairMap::kNone) pairs_[*pair].positions.push_back(at);
      ++pair;
    });
  }

  /// Returns the number of the pair, and lists a new pair with count 0.
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
      if (tokens_.size() >= kBegin) throw std::length_error("more than 2^30 tokens");
      tokens_.push_back(std::move(bytes));
      frequency_.push_back(0);
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
    if (joined > kMaxSpan) throw std::length_error("a token of more than 2^30 symbols");
    const Position next = at + joined;
    const std::int64_t count = counts_[word_of_[at]];
    merged_count_ += count;
    if (slots_[at - 1] != kBarrier) {
      const std::uint32_t span = span_to(at - 1);
      note<kLimited>(before_, id_of_slot(slots_[at - 1]), span + left, span + joined, count,
                     at - span);
    }
    if (slots_[next] != kBarrier) {
      const std::uint32_t span = kLimited ? span_from(next) : 0;
      note<kLimited>(after_, id_of_slot(slots_[next]), right + span, joined + span, count, at);
    }
    slots_[middle - 1] = kInside;
    slots_[middle] = kInside;
    set_token(at, learned.joined, joined);
  }

  /// The share of one occurrence: pairs of these lengths, if they are allowed.
  template <bool kLimited>
  void note(Neighbours& neighbours, std::uint32_t token, std::uint64_t lost, std::uint64_t gained,
            std::int64_t count, Position position) {
    const std::uint32_t index = neighbours.of(token);
    Neighbour& neighbour = neighbours.list[index];
    if (!kLimited || may_join(lost)) neighbour.lost += count;
    if (kLimited && !may_join(gained)) return;
    neighbour.gained += count;
    ++neighbour.size;
    neighbours.gained.push_back({index, position});
  }

  /// Moves the counts of (before, left) to (before, joined) and of (right, after) to
  /// (joined, after). Gains come first: a pair may be made by this very merge, and lost by its
  /// later occurrences.
  void update_neighbours(const LearnedMerge& learned, bool was_known) {
    for (Neighbour& it : before_.list) gain(it.token, learned.joined, it, was_known);
    add_positions(before_);
    for (Neighbour& it : after_.list) gain(learned.joined, it.token, it, was_known);
    add_positions(after_);
    for (const Neighbour& it : before_.list) lose(it.token, learned.left, it.lost);
    for (const Neighbour& it : after_.list) lose(learned.right, it.token, it.lost);
    before_.clear();
    after_.clear();
  }

  void lose(std::uint32_t left, std::uint32_t right, std::int64_t count) {
    if (count == 0) return;
    const std::uint32_t index = find(left, right);
    if (index != PairMap::kNone) pairs_[index].count -= count;
  }

  /// Adds the gain of a pair that is listed, or must be listed now, and makes room for its
  /// positions.
  void gain(std::uint32_t left, std::uint32_t right, Neighbour& neighbour, bool was_known) {
    if (neighbour.size == 0) return;
    neighbour.pair = find(left, right);
    if (neighbour.pair == PairMap::kNone) {
      if (was_known && floor_ > 1) complete_ = false;  // it may count more than it gains here
      if (neighbour.gained < floor_ || !complete_) return;
      neighbour.pair = pair_of(left, right);
    }
    Pair& pair = pairs_[neighbour.pair];
    pair.count += neighbour.gained;
    arena_.reserve(pair.positions, neighbour.size);
    gained_.push_back(neighbour.pair);
  }

  void add_positions(Neighbours& neighbours) {
    for (const auto& [index, position] : neighbours.gained) {
      const std::uint32_t pair = neighbours.list[index].pair;
      if (pair != PairMap::kNone) pairs_[pair].positions.push_back(position);
    }
    for (const Neighbour& neighbour : neighbours.list) {
      if (neighbour.pair == PairMap::kNone) continue;
      const std::span<Position> positions = pairs_[neighbour.pair].positions.positions();
      if (neighbour.size == positions.size()) continue;
      std::inplace_merge(positions.begin(), positions.end() - neighbour.size, positions.end());
    }
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::uint32_t> id_of_;
  std::string prefix_;
  std::uint64_t max_length_;
  bool limited_;
  std::vector<std::int64_t> frequency_;  // by token
  std::vector<std::int64_t> counts_;     // by word
  std::vector<std::uint32_t> slots_;     // by position
  std::vector<std::uint32_t> word_of_;   // by position
  std::int64_t floor_ = INT64_MAX;
  bool complete_ = true;
  Pairs pairs_;
  PairIndex<Pairs> pair_index_;
  PositionArena arena_;
  Neighbours before_;
  Neighbours after_;
  std::vector<std::uint32_t> gained_;
  std::int64_t merged_count_ = 0;
};

}  // namespace bpe_beam
