// Tokens that are extracted from a text before the model encodes it: leftmost first, and at one
// position the longest token that is allowed.
//
// They are looked up in the sorted list of their texts, byte by byte: the time depends on the
// length of the text, the longest token and the logarithm of the number of tokens, and the list
// needs no memory except an index.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "count/pair_map.hpp"
#include "text/deadline.hpp"
#include "text/text.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool single_word = false;  // only without a word character next to it
  bool lstrip = false;       // takes the spaces before it, too
  bool rstrip = false;       // takes the spaces after it, too
  bool special = true;       // counts only where it is allowed
};

class AddedTokens {
  struct Ignore {
    void operator()(const TextView& /*text*/) const {}
  };

 public:
  AddedTokens() = default;

  explicit AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    order_.resize(tokens_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    const auto content = [this](std::uint32_t index) -> const std::string& {
      return tokens_[index].content;
    };
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return content(a) < content(b); });
    // If two tokens have the same text (after normalizing), the first one counts.
    const auto end =
        std::unique(order_.begin(), order_.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return content(a) == content(b); });
    order_.erase(end, order_.end());
    for (const std::uint32_t index : order_) {
      if (content(index).empty()) throw std::invalid_argument("an added token is empty");
      ++ends_[byte_at(content(index), 0)];
      all_special_ = all_special_ && tokens_[index].special;
    }
    begin_bytes_ = 256 - std::count(ends_.begin(), ends_.end(), 0u);
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  }

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  /// Calls `on_plain(TextView)` for the text between tokens and `on_token(id, TextView)` for
  /// the tokens, in order. Special tokens count if their id is in `allowed` (sorted). A disallowed
  /// token is plain text, and `on_disallowed(TextView)` is called for it: allowed special tokens
  /// that begin in it count, as in tiktoken, and tokens that are not special do not, as in Hugging
  /// Face.
  template <class OnPlain, class OnToken, class OnDisallowed = Ignore>
  void extract(const TextView& text, std::span<const std::uint32_t> allowed, OnPlain&& on_plain,
               OnToken&& on_token, OnDisallowed&& on_disallowed = {}) const {
    const std::string_view bytes = text.bytes;
    std::size_t done = 0;
    const bool none_counts = tokens_.empty() || (all_special_ && allowed.empty());
    std::size_t from = none_counts ? bytes.size() : 0;
    std::size_t spaces_end = 0;      // of the last run of spaces that a token took
    std::size_t disallowed_end = 0;  // of the last disallowed token
    while ((from = next_begin(bytes, from)) < bytes.size()) {
      auto [longest, match] = longest_at(bytes, from, allowed);  // of all, and of the allowed
      if (from >= disallowed_end && longest.token != match.token) {
        if (!tokens_[longest.token].special) {
          match = longest;
        } else {
          disallowed_end = longest.end;
          on_disallowed(text.sub(longest.begin, longest.end));
        }
      }
      if (match.token == PairMap::kNone) {
        from = allowed.empty() ? std::max(from + 1, disallowed_end) : from + 1;
        continue;
      }
      from = match.end;
      const AddedToken& token = tokens_[match.token];
      if (token.single_word && touches_word(bytes, match)) continue;
      // Spaces that the previous token has taken are not taken again.
      const std::size_t begin =
          token.lstrip ? spaces_before(bytes, match.begin, done) : match.begin;
      // A token of spaces may lie within a run whose end is known.
      if (token.rstrip && match.end > spaces_end) spaces_end = spaces_after(bytes, match.end);
      const std::size_t end = token.rstrip ? spaces_end : match.end;
      if (done < begin) on_plain(text.sub(done, begin));
      // A token within those spaces is dropped, as in Hugging Face.
      if (begin < end) on_token(token.id, text.sub(begin, end));
      done = end;
    }
    if (done < bytes.size()) on_plain(text.sub(done, bytes.size()));
  }

 private:
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up

  struct Match {
    std::size_t begin;
    std::size_t end;
    std::uint32_t token;  // kNone: there is none
  };

  static std::uint32_t byte_at(std::string_view text, std::size_t at) {
    return static_cast<unsigned char>(text[at]);
  }

  /// The longest token, and the longest allowed special token, at `at`, where some token may begin.
  [[nodiscard]] std::pair<Match, Match> longest_at(std::string_view text, std::size_t at,
                                                   std::span<const std::uint32_t> allowed) const {
    Match longest{at, at, PairMap::kNone};
    Match allowed_one = longest;
    const auto matched = [&](std::uint32_t token, std::size_t size) {
      longest = {at, at + size, token};
      if (!tokens_[token].special) return;
      const std::uint32_t id = tokens_[token].id;
      if (std::binary_search(allowed.begin(), allowed.end(), id)) allowed_one = longest;
    };
    // The tokens that have the first `size` bytes of the text from `at` on.
    auto [first, last] = of_byte(byte_at(text, at));
    std::size_t size = 1;
    for (;; ++size) {
      if (tokens_[order_[first]].content.size() == size) {
        matched(order_[first], size);
        ++first;
      }
      if (first == last || at + size == text.size()) break;
      if (last - first == 1) {
        const std::string_view rest = std::string_view(tokens_[order_[first]].content).substr(size);
        if (text.substr(at + size).starts_with(rest)) {
          size += rest.size();
          matched(order_[first], size);
        }
        break;
      }
      const std::uint32_t byte = byte_at(text, at + size);
      const std::uint32_t least = byte_at(tokens_[order_[first]].content, size);
      const std::uint32_t most = byte_at(tokens_[order_[last - 1]].content, size);
      if (byte < least || byte > most) break;
      if (least == most) continue;  // a prefix of all of them
      const auto begin = order_.begin();
      const auto low = std::partition_point(begin + first, begin + last, [&](std::uint32_t index) {
        return byte_at(tokens_[index].content, size) < byte;
      });
      const auto high = std::partition_point(low, begin + last, [&](std::uint32_t index) {
        return byte_at(tokens_[index].content, size) == byte;
      });
      if (low == high) break;
      first = static_cast<std::uint32_t>(low - begin);
      last = static_cast<std::uint32_t>(high - begin);
    }
    if (size > kShortWalk) [[unlikely]]
      Deadline::spend(10 * size);
    return {longest, allowed_one};
  }

  /// The tokens that begin with a byte, as positions in `order_`.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> of_byte(std::uint32_t byte) const {
    return {byte == 0 ? 0 : ends_[byte - 1], ends_[byte]};
  }

  /// The first byte at or after `at` that begins a token, or the end. Most tokenizers have one such
  /// byte, for which the C library looks 32 bytes at a time.
  [[nodiscard]] std::size_t next_begin(std::string_view text, std::size_t at) const {
    if (begin_bytes_ == 1) {
      const std::size_t position = text.find(tokens_[0].content[0], at);
      return position == std::string_view::npos ? text.size() : position;
    }
    for (; at < text.size(); ++at) {
      const auto [first, last] = of_byte(byte_at(text, at));
      if (first != last) break;
    }
    return at;
  }

  /// The begin of the character before `at`, which may be one malformed byte; at > 0.
  static std::size_t previous(std::string_view text, std::size_t at) {
    std::size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && (byte_at(text, begin) & 0xC0) == 0x80) --begin;
    return point_at(text, begin).size == at - begin ? begin : at - 1;
  }

  static CodePoint point_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size());
  }

  static bool is_word(const CodePoint& point) {
    return point.value != kMalformed && (char_bits(point.value) & kWordChar) != 0;
  }

  static bool is_space(const CodePoint& point) {
    return point.value != kMalformed && char_class(point.value) == CharClass::kSpace;
  }

  static bool touches_word(std::string_view text, const Match& match) {
    return (match.begin > 0 && is_word(point_at(text, previous(text, match.begin)))) ||
           (match.end < text.size() && is_word(point_at(text, match.end)));
  }

  /// The begin of the spaces before `at`, at least `least`.
  static std::size_t spaces_before(std::string_view text, std::size_t at, std::size_t least) {
    while (at > least) {
      const std::size_t begin = previous(text, at);
      if (!is_space(point_at(text, begin))) break;
      at = begin;
    }
    return std::max(at, least);
  }

  static std::size_t spaces_after(std::string_view text, std::size_t at) {
    while (at < text.size()) {
      const CodePoint point = point_at(text, at);
      if (!is_space(point)) break;
      at += point.size;
    }
    return at;
  }

  std::vector<AddedToken> tokens_;
  std::vector<std::uint32_t> order_;  // indices of the tokens with different texts, by their texts
  std::array<std::uint32_t, 256> ends_{};  // of the tokens of each first byte, in `order_`
  std::ptrdiff_t begin_bytes_ = 0;         // that begin a token
  bool all_special_ = true;
};

}  // namespace bpe_beam
