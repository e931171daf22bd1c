// Words to ids by BPE merges: the adjacent pair of lowest rank first, the leftmost of equals.
//
// A model is immutable and shared by threads; what changes while encoding (the word cache, scratch
// arrays) is a BpeEncodingState, one a thread. Short words are merged in a small array, long ones
// with a heap in O(n log n), so that a line of a million equal letters takes a second, not days.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <queue>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "gpt2_scanner.hpp"
#include "pair_map.hpp"
#include "special_tokens.hpp"
#include "word_key.hpp"

namespace bpe_beam {

/// A byte of the text that has no id in the vocabulary.
struct MissingByte {
  std::size_t offset;  // in the text
};

struct MergeRow {
  std::uint32_t left;
  std::uint32_t right;
  std::uint32_t joined;
};

/// Short words and their ids, in a table of fixed size: a newer word takes an older one's slot.
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
    slots_.resize(slots);
  }

  Slot& slot_of(const WordKey& key) { return slots_[hash_key(key, seed_) & (slots_.size() - 1)]; }

 private:
  // A key's length is at most 15: the upper half of its byte tells how many ids there are.
  static constexpr int kCountShift = 60;
  static constexpr std::uint64_t kCountBits = std::uint64_t{0xF} << kCountShift;

  std::uint64_t seed_ = process_seed();
  std::vector<Slot> slots_;
};

class BpeEncodingState {
 public:
  explicit BpeEncodingState(std::size_t cache_bytes) : cache(cache_bytes) {}

  WordCache cache;
  std::vector<std::uint32_t> ids;       // symbols of the word at hand
  std::vector<std::uint32_t> ranks;     // rank of the pair that begins at each symbol
  std::vector<std::uint32_t> previous;  // links of a long word
  std::vector<std::uint32_t> next;
};

class BpeModel {
 public:
  static constexpr std::uint32_t kNoId = 0xFFFFFFFF;

  /// `merges` by rank; a pair listed twice has its last rank. `byte_ids`: the id of each byte's
  /// symbol, kNoId where the vocabulary has none.
  BpeModel(std::span<const MergeRow> merges, std::span<const std::uint32_t, 256> byte_ids,
           SpecialTokens specials)
      : rank_of_(merges.size()), specials_(std::move(specials)) {
    if (merges.size() >= kNoRank) throw std::length_error("more than 2^32 merges");
    std::copy(byte_ids.begin(), byte_ids.end(), byte_ids_.begin());
    joined_.reserve(merges.size());
    for (const MergeRow& merge : merges) {
      if (merge.joined == kNoId) throw std::invalid_argument("a merge makes an id that is none");
      rank_of_[PairMap::key(merge.left, merge.right)] = static_cast<std::uint32_t>(joined_.size());
      joined_.push_back(merge.joined);
    }
    for (std::uint32_t left = 0; left < 256; ++left) {
      for (std::uint32_t right = 0; right < 256; ++right) {
        const bool both = byte_ids_[left] != kNoId && byte_ids_[right] != kNoId;
        byte_pair_rank_[left * 256 + right] = both ? rank(byte_ids_[left], byte_ids_[right]) : kNoRank;
      }
    }
  }

  /// Appends the ids of a text. Special tokens in `allowed` (sorted ids) become their id; others
  /// are plain text, and so joined with what stands around them.
  void encode(std::string_view text, std::span<const std::uint32_t> allowed,
              BpeEncodingState& state, std::vector<std::uint32_t>& out) const {
    std::size_t begin = 0;
    std::size_t from = 0;
    while (!allowed.empty() && from < text.size()) {
      const SpecialTokens::Match match = specials_.find(text, from);
      if (match.begin == text.size()) break;
      from = match.end;
      if (!std::binary_search(allowed.begin(), allowed.end(), match.id)) continue;
      encode_plain(text, begin, match.begin, state, out);
      out.push_back(match.id);
      begin = match.end;
    }
    encode_plain(text, begin, text.size(), state, out);
  }

 private:
  static constexpr std::uint32_t kNoRank = PairMap::kNone;
  static constexpr std::size_t kShortWord = 48;  // symbols; beyond it the heap wins

  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    return rank_of_.find(PairMap::key(left, right));
  }

  /// A word that has been found and whose cache slot is on its way from memory.
  struct Pending {
    WordKey key;
    WordCache::Slot* slot = nullptr;  // none for a long word
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Enough words to hide the way to memory.
  static constexpr std::size_t kPending = 32;

  void encode_plain(std::string_view text, std::size_t begin, std::size_t end,
                    BpeEncodingState& state, std::vector<std::uint32_t>& out) const {
    const std::string_view plain = text.substr(0, end);
    std::array<Pending, kPending> pending;
    while (begin < end) {
      std::size_t words = 0;
      for (; words < kPending && begin < end; ++words) {
        Pending& word = pending[words];
        word.begin = begin;
        word.end = Gpt2Scanner::next(plain, begin);
        word.slot = nullptr;
        if (word.end - begin <= WordKey::kMaxInline) {
          word.key = pack_word(plain.substr(begin, word.end - begin), text.size() - begin);
          word.slot = &state.cache.slot_of(word.key);
          __builtin_prefetch(word.slot);
        }
        begin = word.end;
      }
      for (std::size_t i = 0; i < words; ++i) encode_word(plain, pending[i], state, out);
    }
  }

  void encode_word(std::string_view text, const Pending& word, BpeEncodingState& state,
                   std::vector<std::uint32_t>& out) const {
    if (word.slot != nullptr && word.slot->holds(word.key)) [[likely]] {
      // All four, whatever their number: cheaper than a loop whose end is hard to foresee.
      const std::size_t size = out.size();
      out.resize(size + WordCache::kMaxIds);
      std::memcpy(out.data() + size, word.slot->ids.data(), sizeof word.slot->ids);
      out.resize(size + word.slot->count());
      return;
    }
    merge_word(text.substr(word.begin, word.end - word.begin), word.begin, state);
    out.insert(out.end(), state.ids.begin(), state.ids.end());
    if (word.slot != nullptr && state.ids.size() <= WordCache::kMaxIds) {
      word.slot->put(word.key, state.ids);
    }
  }

  /// Leaves the word's ids in state.ids.
  void merge_word(std::string_view word, std::size_t offset, BpeEncodingState& state) const {
    if (word.size() >= kNoRank) throw std::length_error("a word of 2^32 bytes");
    state.ids.resize(word.size());
    state.ranks.resize(word.size());
    for (std::size_t i = 0; i < word.size(); ++i) {
      const auto byte = static_cast<unsigned char>(word[i]);
      state.ids[i] = byte_ids_[byte];
      if (state.ids[i] == kNoId) throw MissingByte{offset + i};
      state.ranks[i] =
          i + 1 < word.size()
              ? byte_pair_rank_[byte * 256u + static_cast<unsigned char>(word[i + 1])]
              : kNoRank;
    }
    if (word.size() <= kShortWord) {
      merge_short(state.ids, state.ranks);
    } else {
      merge_long(state);
    }
  }

  void merge_short(std::vector<std::uint32_t>& ids, std::vector<std::uint32_t>& ranks) const {
    std::size_t size = ids.size();
    while (size > 1) {
      // min_element takes the leftmost of equals.
      const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(size) - 1);
      if (*best == kNoRank) break;
      const auto at = static_cast<std::size_t>(best - ranks.begin());
      ids[at] = joined_[*best];
      std::copy(ids.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                ids.begin() + static_cast<std::ptrdiff_t>(size),
                ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                ranks.begin() + static_cast<std::ptrdiff_t>(size),
                ranks.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      --size;
      ranks[at] = at + 1 < size ? rank(ids[at], ids[at + 1]) : kNoRank;
      if (at > 0) ranks[at - 1] = rank(ids[at - 1], ids[at]);
    }
    ids.resize(size);
  }

  void merge_long(BpeEncodingState& state) const {
    struct Candidate {
      std::uint32_t rank;
      std::uint32_t at;
      bool operator>(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    auto& ids = state.ids;
    auto& ranks = state.ranks;
    auto& previous = state.previous;
    auto& next = state.next;
    const auto size = static_cast<std::uint32_t>(ids.size());
    previous.resize(size);
    next.resize(size);
    std::vector<Candidate> first;
    for (std::uint32_t i = 0; i < size; ++i) {
      previous[i] = i - 1;  // the first one's wraps and is never followed
      next[i] = i + 1;
      if (ranks[i] != kNoRank) first.push_back({ranks[i], i});
    }
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(
        std::greater<>(), std::move(first));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      // A symbol that was merged away has kNoRank; one whose pair has changed, another rank.
      if (ranks[best.at] != best.rank) continue;
      const std::uint32_t right = next[best.at];
      ids[best.at] = joined_[best.rank];
      next[best.at] = next[right];
      if (next[right] < size) previous[next[right]] = best.at;
      ranks[right] = kNoRank;
      ids[right] = kNoId;
      const auto renew = [&](std::uint32_t at) {
        ranks[at] = next[at] < size ? rank(ids[at], ids[next[at]]) : kNoRank;
        if (ranks[at] != kNoRank) queue.push({ranks[at], at});
      };
      renew(best.at);
      if (best.at > 0) renew(previous[best.at]);
    }
    std::erase(ids, kNoId);
  }

  PairMap rank_of_;
  std::vector<std::uint32_t> joined_;  // by rank
  std::array<std::uint32_t, 256> byte_ids_{};
  std::vector<std::uint32_t> byte_pair_rank_ = std::vector<std::uint32_t>(65536);
  SpecialTokens specials_;
};

}  // namespace bpe_beam
