// Learns BPE merges from words and their counts.
//
// All words stand one after another in one array of symbols, a barrier between them. A token that
// covers several places has its id at its first and at its last place, and nothing between: so the
// tokens before and after a place are found without links. Every pair keeps the places where it
// was made; a place is live while the pair still stands there. Pairs wait in a heap that is put
// right lazily: an entry whose count (or first place) has changed goes back in with the new one.
// Only pairs of a count of `floor_` and more are in there; when it is empty, the floor falls. Most
// pairs occur once or twice and are never merged, so most never enter the heap.
//
// Each merge costs time in its occurrences; all of them together, O(n log n) in the symbols.
// Memory: 12 bytes a symbol, and the pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pair_map.hpp"

namespace bpe_beam {

enum class TieBreak { kLowestId, kFirstSeen, kGreatestBytes };

struct LearnedMerge {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t joined;
  std::int64_t count;
};

class BpeLearner {
 public:
  /// `symbols`: the words' initial ids, one after another, word w at offsets[w]..offsets[w+1].
  /// `counts`: how often each word occurs. `tokens`: the bytes of every id there is, empty for a
  /// token that no merge can make; ids whose bytes are equal are refused. With kFirstSeen words
  /// must stand in the order of their first occurrence; else their order does not matter.
  BpeLearner(std::span<const std::uint32_t> symbols, std::span<const std::int64_t> offsets,
             std::span<const std::int64_t> counts, std::vector<std::string> tokens,
             std::size_t vocab_size, std::int64_t min_frequency, TieBreak tie_break)
      : tokens_(std::move(tokens)),
        vocab_size_(vocab_size),
        min_frequency_(std::max<std::int64_t>(min_frequency, 1)),
        tie_break_(tie_break),
        counts_(counts.begin(), counts.end()) {
    if (offsets.size() != counts.size() + 1) {
      throw std::invalid_argument("offsets must be one longer than counts");
    }
    widths_.assign(tokens_.size(), 0);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].empty()) continue;
      if (!id_of_.emplace(tokens_[id], static_cast<std::uint32_t>(id)).second) {
        throw std::invalid_argument("two ids have the same token");
      }
    }
    lay_out(symbols, offsets);
    count_pairs();
  }

  /// Learns at most `limit` more merges; returns them. An empty result means the end: the
  /// vocabulary is full, or no pair is frequent enough.
  std::vector<LearnedMerge> learn(std::size_t limit) {
    std::vector<LearnedMerge> learned;
    while (learned.size() < limit && tokens_.size() < vocab_size_) {
      const std::uint32_t pair = pop_best();
      if (pair == PairMap::kNone) break;
      learned.push_back(merge(pair));
    }
    return learned;
  }

  /// The bytes of every token, in the order of ids.
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  using Position = std::uint32_t;
  static constexpr std::uint32_t kBarrier = 0xFFFFFFFF;  // between words
  static constexpr std::uint32_t kInside = 0xFFFFFFFE;   // a place within a token
  static constexpr std::size_t kMaxPositions = 0xFFFFFFFF;
  static constexpr std::size_t kAhead = 16;  // places fetched before they are looked at

  struct Pair {
    std::uint32_t left;
    std::uint32_t right;
    std::int64_t count = 0;
    // What the heap's one valid entry of this pair says; queued == 0: none.
    std::int64_t queued = 0;
    std::uint64_t queued_tie = 0;
    bool in_order = true;  // places ascend
    std::size_t head = 0;  // places before it are known to be dead
    std::vector<Position> places;
  };

  struct Entry {
    std::int64_t count;
    std::uint64_t tie;  // the lower wins among equal counts; see `tie_of`
    std::uint32_t pair;
  };

  /// What one merge does to the pairs with one neighbour.
  struct Neighbour {
    std::uint32_t token;
    std::int64_t count = 0;
    std::vector<Position> places;
  };

  /// Neighbours of one merge by token: a dense index, emptied by walking the list.
  struct Neighbours {
    std::vector<std::uint32_t> index;  // by token: its place in `list`, or kNone
    std::vector<Neighbour> list;
    std::size_t used = 0;

    void add(std::uint32_t token, std::int64_t count, Position place) {
      if (index[token] == PairMap::kNone) {
        index[token] = static_cast<std::uint32_t>(used);
        if (used == list.size()) list.emplace_back();
        list[used].token = token;
        list[used].count = 0;
        list[used].places.clear();
        ++used;
      }
      Neighbour& neighbour = list[index[token]];
      neighbour.count += count;
      neighbour.places.push_back(place);
    }

    void clear() {
      for (std::size_t i = 0; i < used; ++i) index[list[i].token] = PairMap::kNone;
      used = 0;
    }
  };

  void lay_out(std::span<const std::uint32_t> symbols, std::span<const std::int64_t> offsets) {
    const std::size_t positions = symbols.size() + counts_.size() + 1;
    if (positions > kMaxPositions) {
      throw std::length_error("more than 2^32 symbols and words: too many for one learner");
    }
    symbols_.reserve(positions);
    word_of_.reserve(positions);
    symbols_.push_back(kBarrier);
    word_of_.push_back(0);
    __int128 total = 0;
    for (std::size_t word = 0; word < counts_.size(); ++word) {
      const std::int64_t begin = offsets[word];
      const std::int64_t end = offsets[word + 1];
      if (begin < 0 || end < begin || static_cast<std::size_t>(end) > symbols.size()) {
        throw std::invalid_argument("offsets do not ascend within the symbols");
      }
      if (counts_[word] < 1) throw std::invalid_argument("a word's count is below 1");
      total += static_cast<__int128>(counts_[word]) * (end - begin);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint32_t symbol = symbols[static_cast<std::size_t>(i)];
        if (symbol >= tokens_.size() || tokens_[symbol].empty()) {
          throw std::invalid_argument("a symbol has no token");
        }
        widths_[symbol] = 1;
        symbols_.push_back(symbol);
        word_of_.push_back(static_cast<std::uint32_t>(word));
      }
      symbols_.push_back(kBarrier);
      word_of_.push_back(static_cast<std::uint32_t>(word));
    }
    if (total > INT64_MAX) throw std::overflow_error("the words' symbols are beyond 64 bits");
  }

  /// Counts the initial pairs. Two passes, so that each list of places is made at its size.
  void count_pairs() {
    std::vector<std::uint32_t> sizes;
    for_each_initial_pair([&](Position at, std::uint32_t left, std::uint32_t right) {
      std::uint32_t& index = pair_index_[PairMap::key(left, right)];
      if (index == PairMap::kNone) {
        index = new_pair(left, right);
        sizes.push_back(0);
      }
      pairs_[index].count += counts_[word_of_[at]];
      ++sizes[index];
    });
    for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i].places.reserve(sizes[i]);
    for_each_initial_pair([&](Position at, std::uint32_t left, std::uint32_t right) {
      pairs_[pair_index_.find(PairMap::key(left, right))].places.push_back(at);
    });
  }

  template <typename Visit>
  void for_each_initial_pair(Visit visit) const {
    for (std::size_t at = 1; at + 1 < symbols_.size(); ++at) {
      if (symbols_[at] != kBarrier && symbols_[at + 1] != kBarrier) {
        visit(static_cast<Position>(at), symbols_[at], symbols_[at + 1]);
      }
    }
  }

  std::uint32_t new_pair(std::uint32_t left, std::uint32_t right) {
    if (pairs_.size() >= PairMap::kNone) throw std::length_error("more than 2^32 pairs");
    pairs_.push_back(Pair{.left = left, .right = right, .places = {}});
    return static_cast<std::uint32_t>(pairs_.size() - 1);
  }

  [[nodiscard]] bool stands_at(const Pair& pair, Position at) const {
    return symbols_[at] == pair.left && symbols_[at + widths_[pair.left]] == pair.right;
  }

  // ---- the heap ----

  /// True where `a` is merged after `b`.
  [[nodiscard]] bool worse(const Entry& a, const Entry& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (tie_break_ != TieBreak::kGreatestBytes) return a.tie > b.tie;
    const Pair& x = pairs_[a.pair];
    const Pair& y = pairs_[b.pair];
    if (x.left != y.left) return tokens_[x.left] < tokens_[y.left];
    return tokens_[x.right] < tokens_[y.right];
  }

  /// What decides between this pair and others of its count; strings are compared in `worse`.
  std::uint64_t tie_of(Pair& pair) {
    if (tie_break_ == TieBreak::kLowestId) return PairMap::key(pair.left, pair.right);
    return tie_break_ == TieBreak::kFirstSeen ? first_place(pair) : 0;
  }

  void push(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(),
                   [this](const Entry& a, const Entry& b) { return worse(a, b); });
  }

  /// The place where the pair stands first; kMaxPositions when nowhere.
  Position first_place(Pair& pair) {
    if (!pair.in_order) {
      std::sort(pair.places.begin() + static_cast<std::ptrdiff_t>(pair.head), pair.places.end());
      pair.in_order = true;
    }
    while (pair.head < pair.places.size() && !stands_at(pair, pair.places[pair.head])) ++pair.head;
    return pair.head < pair.places.size() ? pair.places[pair.head]
                                          : static_cast<Position>(kMaxPositions);
  }

  /// Makes sure that the heap holds an entry at least as good as the pair is now.
  void enqueue(std::uint32_t index) {
    Pair& pair = pairs_[index];
    if (pair.count < floor_) return;
    const std::uint64_t tie = tie_of(pair);
    if (pair.queued >= pair.count && pair.queued_tie <= tie) return;
    requeue(index, tie);
  }

  void requeue(std::uint32_t index, std::uint64_t tie) {
    Pair& pair = pairs_[index];
    pair.queued = pair.count;
    pair.queued_tie = tie;
    push(Entry{pair.count, tie, index});
  }

  /// Takes the best pair out of the heap; kNone when none is frequent enough.
  std::uint32_t pop_best() {
    while (true) {
      if (heap_.empty() && !lower_floor()) return PairMap::kNone;
      if (heap_.empty()) continue;
      std::pop_heap(heap_.begin(), heap_.end(),
                    [this](const Entry& a, const Entry& b) { return worse(a, b); });
      const Entry entry = heap_.back();
      heap_.pop_back();
      Pair& pair = pairs_[entry.pair];
      // An entry that a later one has replaced.
      if (entry.count != pair.queued || entry.tie != pair.queued_tie) continue;
      pair.queued = 0;
      if (pair.count < floor_) continue;
      const std::uint64_t tie = tie_of(pair);
      if (pair.count == entry.count && tie == entry.tie) return entry.pair;
      requeue(entry.pair, tie);
    }
  }

  /// Lets rarer pairs into the empty heap; false when there are no rarer ones to let in.
  bool lower_floor() {
    if (floor_ <= min_frequency_) return false;
    std::int64_t highest = 0;
    for (const Pair& pair : pairs_) highest = std::max(highest, pair.count);
    // No pair is above the old floor, so an eighth of the highest is below it.
    floor_ = std::max(min_frequency_, std::min(highest, floor_ - 1) / 8);
    for (std::uint32_t i = 0; i < pairs_.size(); ++i) enqueue(i);
    return true;
  }

  // ---- one merge ----

  LearnedMerge merge(std::uint32_t index) {
    const std::uint32_t left = pairs_[index].left;
    const std::uint32_t right = pairs_[index].right;
    const LearnedMerge learned{left, right, joined_token(left, right), pairs_[index].count};
    std::vector<Position> places = std::move(pairs_[index].places);
    if (!pairs_[index].in_order) std::sort(places.begin(), places.end());
    pairs_[index].places = {};
    pairs_[index].head = 0;
    pairs_[index].in_order = true;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i + kAhead < places.size()) {
        __builtin_prefetch(&symbols_[places[i + kAhead]]);
        __builtin_prefetch(&word_of_[places[i + kAhead]]);
      }
      if (stands_at(pairs_[index], places[i])) merge_at(places[i], learned);
    }
    pairs_[index].count -= merged_count_;
    merged_count_ = 0;
    update_neighbours(learned);
    return learned;
  }

  std::uint32_t joined_token(std::uint32_t left, std::uint32_t right) {
    std::string bytes = tokens_[left] + tokens_[right];
    const auto [entry, is_new] =
        id_of_.try_emplace(bytes, static_cast<std::uint32_t>(tokens_.size()));
    const std::uint32_t width = widths_[left] + widths_[right];
    if (is_new) {
      tokens_.push_back(std::move(bytes));
      widths_.push_back(width);
    } else {
      // A special token gets its width when it is first made by a merge.
      std::uint32_t& known = widths_[entry->second];
      if (known != 0 && known != width) {
        throw std::invalid_argument("a symbol's token is made of other symbols");
      }
      known = width;
    }
    before_.index.resize(tokens_.size(), PairMap::kNone);
    after_.index.resize(tokens_.size(), PairMap::kNone);
    return entry->second;
  }

  void merge_at(Position at, const LearnedMerge& learned) {
    const Position middle = at + widths_[learned.left];
    const Position last = middle + widths_[learned.right] - 1;
    const std::int64_t count = counts_[word_of_[at]];
    const std::uint32_t before = symbols_[at - 1];
    const std::uint32_t after = symbols_[last + 1];
    symbols_[middle - 1] = kInside;
    symbols_[middle] = kInside;
    symbols_[at] = learned.joined;
    symbols_[last] = learned.joined;
    merged_count_ += count;
    if (before != kBarrier) before_.add(before, count, at - widths_[before]);
    if (after != kBarrier) after_.add(after, count, at);
  }

  /// Moves the counts of (before, left) to (before, joined) and of (right, after) to
  /// (joined, after). Sums may be moved in any order: what a merge adds and another merge of the
  /// same run takes away again cancels out.
  void update_neighbours(const LearnedMerge& learned) {
    for (std::size_t i = 0; i < before_.used; ++i) {
      const Neighbour& neighbour = before_.list[i];
      lose(neighbour.token, learned.left, neighbour.count);
      gain(neighbour.token, learned.joined, neighbour);
    }
    for (std::size_t i = 0; i < after_.used; ++i) {
      const Neighbour& neighbour = after_.list[i];
      lose(learned.right, neighbour.token, neighbour.count);
      gain(learned.joined, neighbour.token, neighbour);
    }
    before_.clear();
    after_.clear();
    for (const std::uint32_t index : gained_) enqueue(index);
    gained_.clear();
  }

  void lose(std::uint32_t left, std::uint32_t right, std::int64_t count) {
    // The pair may be one that this very merge makes and that is counted only below.
    std::uint32_t& index = pair_index_[PairMap::key(left, right)];
    if (index == PairMap::kNone) index = new_pair(left, right);
    pairs_[index].count -= count;
  }

  void gain(std::uint32_t left, std::uint32_t right, const Neighbour& neighbour) {
    std::uint32_t& index = pair_index_[PairMap::key(left, right)];
    if (index == PairMap::kNone) index = new_pair(left, right);
    Pair& pair = pairs_[index];
    pair.count += neighbour.count;
    if (!pair.places.empty() && pair.places.back() > neighbour.places.front()) {
      pair.in_order = false;
    }
    pair.places.insert(pair.places.end(), neighbour.places.begin(), neighbour.places.end());
    gained_.push_back(index);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::uint32_t> id_of_;
  std::vector<std::uint32_t> widths_;  // places that a token covers; 0: not made yet
  std::size_t vocab_size_;
  std::int64_t min_frequency_;
  TieBreak tie_break_;
  std::vector<std::int64_t> counts_;      // by word
  std::vector<std::uint32_t> symbols_;    // by place
  std::vector<std::uint32_t> word_of_;    // by place
  PairMap pair_index_;
  std::vector<Pair> pairs_;
  std::vector<Entry> heap_;
  std::int64_t floor_ = INT64_MAX;  // counts below it are not in the heap
  Neighbours before_;
  Neighbours after_;
  std::vector<std::uint32_t> gained_;
  std::int64_t merged_count_ = 0;
};

}  // namespace bpe_beam
