// Boundaries in a word that no merge can cross: the parts between them are merged one by one, and
// equal parts of different words have equal tokens.
//
// A merge crosses a boundary only if the bytes before it are the end of the merge's left token and
// the bytes after it are the beginning of its right token. So if no merge has such a pair of ends,
// each part is merged as if it were alone. To compare up to two bytes on each side takes one
// look-up in a table of byte pairs and, if the pair is there, one for each combination of lengths.
// A text in a script for which the vocabulary has few tokens is divided into its characters.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/word_model.hpp"
#include "text/hash.hpp"

namespace bpe_beam {

class Seams {
 public:
  /// Returns nothing if the bytes of a token do not follow from the merges: a token is made of
  /// different bytes, or many tokens are listed before their parts. A merge of parts that are never
  /// made is ignored.
  static std::optional<Seams> of(std::span<const MergeRow> merges,
                                 std::span<const std::uint32_t, 256> byte_ids) {
    std::vector<Ends> ends;
    if (!ends_of_tokens(merges, byte_ids, ends)) return std::nullopt;
    Seams seams(merges.size());
    for (const MergeRow& merge : merges) {
      if (ends[merge.left].size > 0 && ends[merge.right].size > 0) {
        seams.add(ends[merge.left], ends[merge.right]);
      }
    }
    return seams;
  }

  /// Returns whether a merge may cross the boundary before byte `at` of a word, 0 < at <
  /// word.size(). True if this is unknown.
  [[nodiscard]] bool may_cross(std::string_view word, std::size_t at) const {
    const auto byte = [word](std::size_t i) {
      return std::uint32_t{static_cast<unsigned char>(word[i])};
    };
    const std::uint32_t middle = byte(at - 1) << 8 | byte(at);
    if ((singles_[middle / 64] >> (middle % 64) & 1) != 0) return true;
    if ((pairs_[middle / 64] >> (middle % 64) & 1) == 0) return false;
    const bool two_before = at >= 2;
    const bool two_after = at + 1 < word.size();
    const std::uint32_t before = two_before ? byte(at - 2) : 0;
    const std::uint32_t after = two_after ? byte(at + 1) : 0;
    return (two_before && has(key(kTwoBefore, before, middle, 0))) ||
           (two_after && has(key(kTwoAfter, 0, middle, after))) ||
           (two_before && two_after && has(key(kTwoBefore | kTwoAfter, before, middle, after)));
  }

 private:
  /// The first and the last bytes of a token.
  struct Ends {
    std::uint8_t size = 0;  // 1, or 2 for more; 0 if the token is not known
    std::uint8_t first[2] = {};
    std::uint8_t last[2] = {};  // last[1] is the last one
    bool operator==(const Ends&) const = default;
  };

  static constexpr std::uint32_t kMostIds = std::uint32_t{1} << 22;
  static constexpr int kMostPasses = 8;  // over merges that are listed before their parts
  static constexpr std::uint64_t kTwoBefore = 1;
  static constexpr std::uint64_t kTwoAfter = 2;

  explicit Seams(std::size_t merges) : mask_(std::bit_ceil(merges * 16 + 64) - 1) {
    longer_.resize((mask_ + 1) / 64);
  }

  static bool ends_of_tokens(std::span<const MergeRow> merges,
                             std::span<const std::uint32_t, 256> byte_ids,
                             std::vector<Ends>& ends) {
    std::uint32_t most = 0;
    for (const std::uint32_t id : byte_ids) most = id == kNoId ? most : std::max(most, id);
    for (const MergeRow& merge : merges) {
      most = std::max({most, merge.left, merge.right, merge.joined});
    }
    if (most >= kMostIds) return false;
    ends.resize(std::size_t{most} + 1);
    const auto set = [&](std::uint32_t id, const Ends& value) {
      if (ends[id].size == 0) ends[id] = value;
      return ends[id] == value;
    };
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte_ids[byte] == kNoId) continue;
      const auto value = static_cast<std::uint8_t>(byte);
      if (!set(byte_ids[byte], {1, {value, 0}, {0, value}})) return false;
    }
    std::vector<MergeRow> left_over(merges.begin(), merges.end());
    for (int pass = 0; pass < kMostPasses; ++pass) {
      std::vector<MergeRow> early;  // listed before a part
      for (const MergeRow& merge : left_over) {
        const Ends left = ends[merge.left];
        const Ends right = ends[merge.right];
        if (left.size == 0 || right.size == 0) {
          early.push_back(merge);
          continue;
        }
        const Ends joined = {2,
                             {left.first[0], left.size == 2 ? left.first[1] : right.first[0]},
                             {right.size == 2 ? right.last[0] : left.last[1], right.last[1]}};
        if (!set(merge.joined, joined)) return false;
      }
      if (early.size() == left_over.size()) return true;
      left_over = std::move(early);
    }
    return left_over.empty();
  }

  void add(const Ends& left, const Ends& right) {
    const std::uint32_t middle = std::uint32_t{left.last[1]} << 8 | right.first[0];
    const std::uint64_t bit = std::uint64_t{1} << (middle % 64);
    pairs_[middle / 64] |= bit;
    if (left.size == 1 && right.size == 1) {
      singles_[middle / 64] |= bit;
      return;
    }
    const std::uint64_t sizes =
        (left.size == 2 ? kTwoBefore : 0) | (right.size == 2 ? kTwoAfter : 0);
    const std::uint64_t hash = hash_of(key(sizes, left.size == 2 ? left.last[0] : 0, middle,
                                           right.size == 2 ? right.first[1] : 0));
    longer_[hash / 64] |= std::uint64_t{1} << (hash % 64);
  }

  static std::uint64_t key(std::uint64_t sizes, std::uint32_t before, std::uint32_t middle,
                           std::uint32_t after) {
    return sizes << 32 | std::uint64_t{before} << 24 | std::uint64_t{middle} << 8 | after;
  }

  [[nodiscard]] std::uint64_t hash_of(std::uint64_t key) const {
    return fold_multiply(key + 1, 0x9E3779B97F4A7C15) & mask_;
  }

  /// True also for some keys that were not added.
  [[nodiscard]] bool has(std::uint64_t key) const {
    const std::uint64_t hash = hash_of(key);
    return (longer_[hash / 64] >> (hash % 64) & 1) != 0;
  }

  std::vector<std::uint64_t> pairs_ = std::vector<std::uint64_t>(1024);    // of any merge
  std::vector<std::uint64_t> singles_ = std::vector<std::uint64_t>(1024);  // of single bytes
  std::vector<std::uint64_t> longer_;                                      // a bit for each hash
  std::uint64_t mask_;
};

}  // namespace bpe_beam
