// Boundaries in a text that no piece of a vocabulary crosses, so that the pieces on both sides are
// chosen independently, except for the sums of scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bit_filter.hpp"
#include "text/hash.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// A boundary is between two characters that no piece has in a row. Boundaries between words are
/// detected without looking at each character: in most vocabularies U+2581 is only at the beginning
/// of a piece.
class PieceBoundaries {
 public:
  /// Parts of at most this many bytes are not divided further.
  static constexpr std::size_t kShortPart = 24;

  explicit PieceBoundaries(const std::vector<std::string_view>& pieces) : pairs_(0) {
    std::vector<std::uint64_t> hashes;
    for (const std::string_view piece : pieces) {
      std::uint32_t last = kNone;
      for (std::size_t at = 0; at < piece.size();) {
        const CodePoint point = decode_utf8(piece.data() + at, piece.data() + piece.size());
        if (last != kNone) {
          hashes.push_back(hash_of(last, point.value));
          if (point.value == kSpace && last != kSpace) at_spaces_ = false;
        }
        last = point.value;
        at += point.size;
      }
    }
    std::sort(hashes.begin(), hashes.end());
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    pairs_ = BitFilter(hashes.size());
    for (const std::uint64_t hash : hashes) pairs_.add(hash);
  }

  /// Calls use(begin, end) for the parts of a text, which follow each other.
  template <class Use>
  void for_each_part(std::string_view text, Use&& use) const {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = word_end(text, begin);
      if (end - begin <= kShortPart) {
        use(begin, end);
      } else {
        divide(text, begin, end, use);
      }
      begin = end;
    }
  }

 private:
  static constexpr std::uint32_t kSpace = 0x2581;
  static constexpr std::string_view kSpaceBytes = "\xE2\x96\x81";
  static constexpr std::uint32_t kNone = 0xFFFFFFFE;

  static std::uint64_t hash_of(std::uint32_t first, std::uint32_t second) {
    return fold_multiply(std::uint64_t{first} << 32 | second, 0x9E3779B97F4A7C15);
  }

  /// The begin of the next space after another character, or the end of the text.
  [[nodiscard]] std::size_t word_end(std::string_view text, std::size_t begin) const {
    if (!at_spaces_) return text.size();
    const auto is_space = [text](std::size_t at) {
      return text.size() - at >= kSpaceBytes.size() &&
             std::memcmp(text.data() + at, kSpaceBytes.data(), kSpaceBytes.size()) == 0;
    };
    std::size_t at = begin;
    while (is_space(at)) {
      at += kSpaceBytes.size();
      if (at == text.size()) return at;
    }
    for (++at; at < text.size(); ++at) {
      const void* const space = std::memchr(text.data() + at, kSpaceBytes[0], text.size() - at);
      if (space == nullptr) return text.size();
      at = static_cast<std::size_t>(static_cast<const char*>(space) - text.data());
      if (is_space(at)) return at;
    }
    return text.size();
  }

  template <class Use>
  void divide(std::string_view text, std::size_t begin, std::size_t end, Use&& use) const {
    std::uint32_t last = kNone;
    for (std::size_t at = begin; at < end;) {
      const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
      if (last != kNone && !pairs_.may_have(hash_of(last, point.value))) {
        use(begin, at);
        begin = at;
      }
      last = point.value;
      at += point.size;
    }
    use(begin, end);
  }

  BitFilter pairs_;  // of characters that a piece has in a row
  bool at_spaces_ = true;
};

}  // namespace bpe_beam
