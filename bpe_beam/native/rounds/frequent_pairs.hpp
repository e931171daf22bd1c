// Splits words into segments at infrequent-pair boundaries: between two symbols whose pair is not
// frequent.
//
// Segments are parts of the packed words, copied as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "count/packed_words.hpp"
#include "count/pair_map.hpp"
#include "rounds/pair_sides.hpp"

namespace bpe_beam {

class FrequentPairs {
 public:
  FrequentPairs(std::span<const std::uint32_t> lefts, std::span<const std::uint32_t> rights) {
    std::size_t slots = 64;
    while (slots < lefts.size() * 2) slots *= 2;
    slots_.assign(slots, kFree);
    for (std::size_t i = 0; i < lefts.size(); ++i) insert(lefts[i], rights[i]);
  }

  [[nodiscard]] bool contains(std::uint32_t left, std::uint32_t right) const {
    return sides_.may_hold(left, right) && find(PairMap::key(left, right));
  }

  /// Returns the segments of words in their order, each with its word's count. Equal segments are
  /// not added up.
  ///
  /// Args:
  ///   words: Packed words.
  ///   singles: Whether to return segments of one symbol, too.
  [[nodiscard]] PackedColumns segments(const PackedWords& words, bool singles) const {
    PackedColumns out;
    out.data.reserve(words.bytes());
    for (std::size_t word = 0; word < words.size(); ++word) {
      check_count(words.counts[word], word);
      if (words.begin(word) != words.end(word)) split_word(words, word, singles, out);
    }
    return out;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  void split_word(const PackedWords& words, std::size_t word, bool singles,
                  PackedColumns& out) const {
    const char* const end = words.end(word);
    const char* segment = words.begin(word);
    const char* at = segment;
    std::uint32_t left = symbol_of(at, end, word);
    bool single = true;
    const auto keep = [&](const char* until) {
      if (single && !singles) return;
      out.data.append(segment, static_cast<std::size_t>(until - segment));
      out.end_word(words.counts[word]);
    };
    while (at != end) {
      const char* const boundary = at;
      const std::uint32_t right = symbol_of(at, end, word);
      if (contains(left, right)) {
        single = false;
      } else {
        keep(boundary);
        segment = boundary;
        single = true;
      }
      left = right;
    }
    keep(end);
  }

  void insert(std::uint32_t left, std::uint32_t right) {
    sides_.add(left, right);
    const std::uint64_t key = PairMap::key(left, right);
    if (key == kFree) {
      has_free_ = true;
      return;
    }
    std::size_t at = PairMap::hash(key) & (slots_.size() - 1);
    while (slots_[at] != kFree && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = key;
  }

  [[nodiscard]] bool find(std::uint64_t key) const {
    std::size_t at = PairMap::hash(key) & (slots_.size() - 1);
    while (slots_[at] != key && slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
    return slots_[at] == key && (key != kFree || has_free_);
  }

  PairSides sides_;
  std::vector<std::uint64_t> slots_;  // half full at most
  bool has_free_ = false;             // whether the pair whose key is kFree was inserted
};

}  // namespace bpe_beam
