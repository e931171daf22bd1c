// The merges of a byte-level vocabulary that can happen, numbered in the order in which they
// happen.
//
// Let each token be made by one merge, of a higher rank than the merges that make its two parts.
// Two tokens *fit* if their joined bytes, merged alone, become these two tokens; this depends only
// on the two tokens. A merge whose parts do not fit when its turn comes never happens. A token
// whose parts fit is the result of merging its bytes alone: it is *sound*. Files often list several
// merges for a token, but only one can happen: the parts of the others do not fit, or one of them
// is made after the token. If a part of a merge is made later than the merge's rank, and its token
// is not made before, the merge can happen only in words in which that part is made: such a part,
// and each token made of it, is *doubtful*. A word in which a doubtful token is made must be merged
// by all merges.
//
// Words are merged from their characters. If a merge takes a part of a character and a byte outside
// of it, its token begins or ends within a character; the byte pairs at the edges of characters in
// such tokens are *ragged*. A character between two edges that are not ragged is merged alone
// before any merge with its neighbours, so a sound token of a character can replace its bytes.
// Other characters begin as bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "encode/pair_ranks.hpp"
#include "encode/word_model.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

class LiveMerges {
 public:
  /// Returns nothing if two merges make one token or have one pair, a merge makes a byte's id, two
  /// bytes have one id, a token is very long, or there are 2^21 - 256 ids or merges.
  static std::optional<LiveMerges> of(std::span<const MergeRow> merges,
                                      std::span<const std::uint32_t, 256> byte_ids) {
    std::uint32_t most = 0;
    for (const std::uint32_t id : byte_ids) most = id == kNoId ? most : std::max(most, id);
    for (const MergeRow& merge : merges) {
      most = std::max({most, merge.left, merge.right, merge.joined});
    }
    if (most >= kMostIds || merges.size() >= kMostIds) return std::nullopt;
    LiveMerges live(std::min<std::size_t>(merges.size(), std::size_t{most} + 1));
    if (!live.add_all(merges, byte_ids, std::size_t{most} + 1)) return std::nullopt;
    return live;
  }

  /// Returns whether there are words that must be merged by all merges.
  [[nodiscard]] bool has_doubtful() const { return has_doubtful_; }

  /// Returns the words whose id is not the result of merging their bytes. If two words are equal,
  /// the first counts.
  [[nodiscard]] TokenIds not_made(const TokenIds& words) const {
    TokenIds others;
    std::vector<bool> sound(ids_.size());
    for (std::uint32_t number = 0; number < ids_.size() && !words.empty(); ++number) {
      const auto [left, right] = splits_[number];
      sound[number] =
          !doubtful_[number] &&
          (number < kBytes || (sound[left] && sound[right] && fit(left, right, number)));
    }
    for (const auto& [word, id] : words) {
      const std::uint32_t number = id < number_of_.size() ? number_of_[id] : kNone;
      if (number == kNone || !sound[number] || bytes_of(number) != word) {
        others.emplace_back(word, id);
      }
    }
    if (others.empty()) return others;
    const TokenMap first(words);
    std::erase_if(others, [&](const auto& word) { return first.find(word.first) != word.second; });
    return others;
  }

  /// Puts the tokens of a word (not empty) into state.ids and, on request, state.sizes. Returns
  /// false if a byte has no token, or the word must be merged by all merges.
  bool encode(std::string_view word, bool with_sizes, ModelState& state) const {
    if (word.size() <= 2 * kPart || !merge_parts(word, state)) {
      if (!begin(word, state)) return false;
      Merging(*this).apply(false, state);
    }
    if (with_sizes) state.sizes.resize(state.ids.size());
    for (std::size_t i = 0; i < state.ids.size(); ++i) {
      const std::uint32_t number = state.ids[i];
      if (has_doubtful_ && doubtful_[number]) return false;
      if (with_sizes) state.sizes[i] = extents_[number].size;
      state.ids[i] = ids_[number];
    }
    return true;
  }

  // For Merging: symbols are numbers.
  [[nodiscard]] std::uint32_t rank(std::uint32_t left, std::uint32_t right) const {
    return pairs_.find(left, right);
  }
  [[nodiscard]] static std::uint32_t joined(std::uint32_t rank) { return rank + kBytes; }

 private:
  // Tokens have numbers: for a byte its value, for other tokens numbers in the order of their
  // merges.
  static constexpr std::uint32_t kBytes = 256;
  static constexpr std::uint32_t kNone = PairRanks::kNone;
  static constexpr std::uint32_t kMostIds = (std::uint32_t{1} << 21) - kBytes;
  static constexpr std::size_t kMostSize = 1024;     // bytes of a token
  static constexpr std::uint32_t kPoints = 0x10000;  // characters of up to three bytes
  static constexpr std::size_t kPart = 32;           // bytes of a long word that are merged at once
  static constexpr std::size_t kMostParts = 8;

  struct Split {
    std::uint32_t left;
    std::uint32_t right;
  };

  struct Extent {
    std::uint32_t begin;
    std::uint32_t size;
  };

  explicit LiveMerges(std::size_t most)
      : pairs_(most, kMostIds + kBytes - 1), ids_(kBytes, kNoId), splits_(kBytes) {}

  bool add_all(std::span<const MergeRow> merges, std::span<const std::uint32_t, 256> byte_ids,
               std::size_t ids) {
    number_of_.assign(ids, kNone);
    std::vector<MergeRow> early;  // listed before a part is made
    for (std::uint32_t byte = 0; byte < kBytes; ++byte) {
      extents_.push_back({byte, 1});
      bytes_ += static_cast<char>(byte);
      const std::uint32_t id = byte_ids[byte];
      if (id == kNoId) continue;
      if (number_of_[id] != kNone) return false;
      number_of_[id] = byte;
      ids_[byte] = id;
    }
    const bool in_order = are_in_order(merges);
    for (const MergeRow& merge : merges) {
      const std::uint32_t left = number_of_[merge.left];
      const std::uint32_t right = number_of_[merge.right];
      if (left == kNone || right == kNone) {
        early.push_back(merge);
        continue;
      }
      if (rank(left, right) != kNone) return false;
      // In order, a merge that never happens does no harm.
      if (!in_order && !fit(left, right, kNone)) continue;
      if (number_of_[merge.joined] != kNone || !add(left, right, merge.joined)) return false;
    }
    mark_doubtful(early);
    for (std::uint32_t number = 0; number < ids_.size(); ++number) add_characters(number);
    for (std::uint32_t left = 0; left < kBytes; ++left) {
      for (std::uint32_t right = 0; right < kBytes; ++right) {
        byte_pair_ranks_[left * kBytes + right] = rank(left, right);
      }
    }
    return true;
  }

  /// Returns whether each token is made by one merge, after its parts.
  [[nodiscard]] bool are_in_order(std::span<const MergeRow> merges) const {
    std::vector<bool> made(number_of_.size());
    for (const std::uint32_t id : ids_) {
      if (id != kNoId) made[id] = true;
    }
    for (const MergeRow& merge : merges) {
      if (!made[merge.left] || !made[merge.right] || made[merge.joined]) return false;
      made[merge.joined] = true;
    }
    return true;
  }

  bool add(std::uint32_t left, std::uint32_t right, std::uint32_t id) {
    const auto number = static_cast<std::uint32_t>(ids_.size());
    const std::uint32_t size = extents_[left].size + extents_[right].size;
    if (size > kMostSize) return false;
    extents_.push_back({static_cast<std::uint32_t>(bytes_.size()), size});
    bytes_.append(bytes_, extents_[left].begin, extents_[left].size);
    bytes_.append(bytes_, extents_[right].begin, extents_[right].size);
    number_of_[id] = number;
    pairs_.set(left, right, number - kBytes);
    splits_.push_back({left, right});
    ids_.push_back(id);
    return true;
  }

  [[nodiscard]] std::string_view bytes_of(std::uint32_t number) const {
    return std::string_view(bytes_).substr(extents_[number].begin, extents_[number].size);
  }

  /// Returns whether the token `joined` has the bytes of the other two.
  [[nodiscard]] bool is_joined(std::uint32_t joined, std::uint32_t left,
                               std::uint32_t right) const {
    const std::string_view bytes = bytes_of(joined);
    const std::string_view end = bytes_of(right);
    return bytes.size() == extents_[left].size + end.size() && bytes.starts_with(bytes_of(left)) &&
           bytes.ends_with(end);
  }

  /// Returns whether two tokens fit, by the merges before the number `limit`. The two tokens are
  /// split again, from the last merge back to the first. At no step may a pair across the boundary
  /// have a merge before the merges that made its two tokens.
  [[nodiscard]] bool fit(std::uint32_t left, std::uint32_t right, std::uint32_t limit) const {
    for (;;) {
      const std::uint32_t merge = rank(left, right);
      if (merge != kNone && joined(merge) < limit) return false;
      if (left > right && left >= kBytes) {
        limit = left;
        left = splits_[left].right;
      } else if (right >= kBytes) {
        limit = right + 1;  // if two pairs have the same merge, the left one goes first
        right = splits_[right].left;
      } else {
        return true;
      }
    }
  }

  [[nodiscard]] bool is_sound(std::uint32_t number) const {
    if (number < kBytes) return true;
    const auto [left, right] = splits_[number];
    return fit(left, right, number) && is_sound(left) && is_sound(right);
  }

  /// Marks the tokens whose making may trigger one of `early`, and the tokens that have them as
  /// parts.
  void mark_doubtful(std::span<const MergeRow> early) {
    doubtful_.resize(ids_.size());
    for (const MergeRow& merge : early) {
      const std::uint32_t left = number_of_[merge.left];
      const std::uint32_t right = number_of_[merge.right];
      if (left == kNone || right == kNone) continue;  // a part that is never made
      const std::uint32_t last = std::max(left, right);
      const std::uint32_t joined = number_of_[merge.joined];
      // The bytes have become the token before this part is made.
      if (joined < last && is_joined(joined, left, right)) continue;
      doubtful_[last] = true;
      has_doubtful_ = true;
    }
    for (std::size_t i = kBytes; has_doubtful_ && i < ids_.size(); ++i) {
      if (doubtful_[splits_[i].left] || doubtful_[splits_[i].right]) doubtful_[i] = true;
    }
  }

  // ---- characters ----

  static std::uint8_t byte_at(std::string_view text, std::size_t at) {
    return static_cast<std::uint8_t>(text[at]);
  }
  static bool continues(std::uint8_t byte) { return (byte & 0xC0) == 0x80; }

  /// Records a token that is a character, and the ragged edges of a token that has a part of a
  /// character.
  void add_characters(std::uint32_t number) {
    const std::string_view bytes = bytes_of(number);
    const CodePoint point = decode_utf8(bytes.data(), bytes.data() + bytes.size());
    if (point.value != kMalformed && point.size == bytes.size() && point.value < kPoints &&
        is_sound(number)) {
      characters_[point.value] = number;
    }
    for (std::size_t at = 1; at < std::min<std::size_t>(bytes.size(), 4); ++at) {
      if (!continues(byte_at(bytes, at - 1))) break;
      set_ragged(bytes, at);
    }
    for (std::size_t left = 1; left < std::min<std::size_t>(bytes.size(), 4); ++left) {
      const std::uint8_t lead = byte_at(bytes, bytes.size() - left);
      if (continues(lead)) continue;
      const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
      if (size > left) set_ragged(bytes, bytes.size() - left);
      break;
    }
  }

  static std::uint32_t edge(std::string_view text, std::size_t at) {
    return byte_at(text, at - 1) * kBytes + byte_at(text, at);
  }
  void set_ragged(std::string_view text, std::size_t at) {
    const std::uint32_t pair = edge(text, at);
    ragged_[pair / 64] |= std::uint64_t{1} << (pair % 64);
  }
  /// Returns whether a merge may take a part of a character on one side of a boundary.
  [[nodiscard]] bool is_ragged(std::string_view text, std::size_t at) const {
    if (at == 0 || at == text.size()) return false;
    const std::uint32_t pair = edge(text, at);
    return (ragged_[pair / 64] >> (pair % 64) & 1) != 0;
  }

  /// Merges a long word part by part, each with the last token of the part before it, and puts the
  /// numbers of the tokens into state.ids. Tokens that all fit their neighbors are the result: no
  /// merge is the first to cross the boundary of two neighbors, since none crosses it in these two
  /// alone. Where two do not fit, the part is merged with one more token before it. Returns false
  /// if such a part becomes long, or a byte has no token.
  bool merge_parts(std::string_view word, ModelState& state) const {
    std::vector<std::uint32_t>& tokens = state.parts;
    tokens.clear();
    std::size_t first = 0;  // byte of the part
    for (std::size_t end = 0; end < word.size();) {
      end = std::min(end + kPart, word.size());
      do {
        if (!tokens.empty()) {
          first -= extents_[tokens.back()].size;
          tokens.pop_back();
        }
        if (end - first > kMostParts * kPart) return false;
        if (!begin(word.substr(first, end - first), state)) return false;
        Merging(*this).apply(false, state);
      } while (!tokens.empty() && !fit(tokens.back(), state.ids.front(), kNone));
      tokens.insert(tokens.end(), state.ids.begin(), state.ids.end());
      first = end;
    }
    state.ids.swap(tokens);
    return true;
  }

  /// Puts the numbers of a word's characters and bytes into state.ids, with the ranks of their
  /// pairs. Returns false if a byte has no token.
  bool begin(std::string_view word, ModelState& state) const {
    state.ids.resize(word.size());
    state.ranks.resize(word.size());
    std::size_t count = 0;
    for (std::size_t at = 0; at < word.size(); ++count) {
      std::uint32_t number = byte_at(word, at);
      std::uint32_t size = 1;
      if (number >= 0xC0) {
        const CodePoint point = decode_utf8(word.data() + at, word.data() + word.size());
        if (point.value < kPoints && characters_[point.value] != kNone && !is_ragged(word, at) &&
            !is_ragged(word, at + point.size)) {
          number = characters_[point.value];
          size = point.size;
        }
      }
      if (ids_[number] == kNoId) return false;
      state.ids[count] = number;
      at += size;
    }
    state.ids.resize(count);
    state.ranks.resize(count);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const std::uint32_t left = state.ids[i];
      const std::uint32_t right = state.ids[i + 1];
      state.ranks[i] =
          (left | right) < kBytes ? byte_pair_ranks_[left * kBytes + right] : rank(left, right);
    }
    state.ranks[count - 1] = kNone;
    return true;
  }

  PairRanks pairs_;
  std::vector<std::uint32_t> ids_;  // by number, as `splits_`, `extents_` and `doubtful_`
  std::vector<Split> splits_;
  std::vector<Extent> extents_;  // in `bytes_`
  std::vector<bool> doubtful_;
  bool has_doubtful_ = false;
  std::string bytes_;
  std::vector<std::uint32_t> number_of_;  // by id
  std::vector<std::uint32_t> characters_ = std::vector<std::uint32_t>(kPoints, kNone);
  std::vector<std::uint32_t> byte_pair_ranks_ = std::vector<std::uint32_t>(kBytes * kBytes);
  std::array<std::uint64_t, kBytes * kBytes / 64> ragged_{};
};

}  // namespace bpe_beam
