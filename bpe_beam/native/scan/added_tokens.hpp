// Tokens that are extracted from a text before the model encodes it: leftmost first, of those the
// longest.
//
// A byte trie finds them, so a text costs time in its length and the longest token, whatever the
// number of tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/deadline.hpp"
#include "count/pair_map.hpp"
#include "text/text.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool single_word = false;  // only without a word character beside it
  bool lstrip = false;       // takes the spaces before it, too
  bool rstrip = false;       // takes the spaces after it, too
  bool special = true;       // counts only where it is allowed
};

class AddedTokens {
 public:
  AddedTokens() = default;

  explicit AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      insert(static_cast<std::uint32_t>(i));
      all_special_ = all_special_ && tokens_[i].special;
    }
  }

  [[nodiscard]] bool empty() const { return tokens_.empty(); }

  /// Calls `on_plain(TextView)` for the text between tokens and `on_token(id, TextView)` for
  /// the tokens, in order. Special tokens count if their id is in `allowed` (sorted); a disallowed
  /// one is plain text, and a shorter token that it overlaps is not found.
  template <class OnPlain, class OnToken>
  void extract(const TextView& text, std::span<const std::uint32_t> allowed, OnPlain&& on_plain,
           OnToken&& on_token) const {
    const std::string_view bytes = text.bytes;
    std::size_t done = 0;
    std::size_t from = all_special_ && allowed.empty() ? bytes.size() : 0;  // none counts
    std::size_t spaces_end = 0;  // of the run of spaces that was taken last
    while (from < bytes.size()) {
      const Match match = find(bytes, from);
      if (match.token == PairMap::kNone) break;
      from = match.end;
      const AddedToken& token = tokens_[match.token];
      if (token.special && !std::binary_search(allowed.begin(), allowed.end(), token.id)) continue;
      if (token.single_word && touches_word(bytes, match)) continue;
      // Spaces that the token before has taken are not taken again.
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

  void insert(std::uint32_t index) {
    const std::string& content = tokens_[index].content;
    if (content.empty()) throw std::invalid_argument("an added token is empty");
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < content.size(); ++i) {
      std::uint32_t& next = next_[PairMap::key(node, byte_at(content, i))];
      if (next == PairMap::kNone) {
        next = static_cast<std::uint32_t>(token_at_.size());
        token_at_.push_back(PairMap::kNone);
      }
      node = next;
    }
    // Of two tokens of one text (after normalizing), the first one counts.
    if (token_at_[node] == PairMap::kNone) token_at_[node] = index;
    bool& begins = begins_[byte_at(content, 0)];
    begin_bytes_ += begins ? 0 : 1;
    begins = true;
  }

  [[nodiscard]] Match find(std::string_view text, std::size_t from) const {
    if (tokens_.empty()) return {text.size(), text.size(), PairMap::kNone};
    for (std::size_t at = next_begin(text, from); at < text.size(); at = next_begin(text, at + 1)) {
      Match longest{at, at, PairMap::kNone};
      std::uint32_t node = 0;
      std::size_t i = at;
      for (; i < text.size(); ++i) {
        node = next_.find(PairMap::key(node, byte_at(text, i)));
        if (node == PairMap::kNone) break;
        if (token_at_[node] != PairMap::kNone) longest = {at, i + 1, token_at_[node]};
      }
      if (i - at > kShortWalk) [[unlikely]] Deadline::spend(10 * (i - at));
      if (longest.token != PairMap::kNone) return longest;
    }
    return {text.size(), text.size(), PairMap::kNone};
  }

  /// The first byte at or after `at` that begins a token, or the end. Most tokenizers have one such
  /// byte, for which the C library looks 32 bytes at a time.
  [[nodiscard]] std::size_t next_begin(std::string_view text, std::size_t at) const {
    if (begin_bytes_ == 1) {
      const std::size_t found = text.find(tokens_[0].content[0], at);
      return found == std::string_view::npos ? text.size() : found;
    }
    while (at < text.size() && !begins_[byte_at(text, at)]) ++at;
    return at;
  }

  /// Where the character before `at` begins, which may be one malformed byte; at > 0.
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

  /// Where the spaces before `at` begin, but not before `least`.
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
  PairMap next_;  // (node, byte) to node; 0 is the root
  std::vector<std::uint32_t> token_at_ = {PairMap::kNone};
  std::array<bool, 256> begins_{};  // a token
  std::size_t begin_bytes_ = 0;
  bool all_special_ = true;
};

}  // namespace bpe_beam
