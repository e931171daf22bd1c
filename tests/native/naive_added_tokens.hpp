// Added tokens as they are defined: every token is tried at every place. Quadratic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "scan/added_tokens.hpp"

/// A part of a text: a token, or what stands between two.
struct NaiveCut {
  static constexpr std::uint32_t kPlain = 0xFFFFFFFF;
  std::uint32_t id;
  std::size_t begin;
  std::size_t end;
  bool operator==(const NaiveCut&) const = default;
};

/// The characters of a text one by one, a malformed byte being one.
class NaiveCharacters {
 public:
  explicit NaiveCharacters(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const auto point = bpe_beam::decode_utf8(text.data() + at, text.data() + text.size());
      borders_.push_back(at);
      points_.push_back(point.value);
      at += point.size;
    }
    borders_.push_back(text.size());
  }

  [[nodiscard]] bool is_border(std::size_t at) const {
    return std::binary_search(borders_.begin(), borders_.end(), at);
  }
  [[nodiscard]] bool word_before(std::size_t at) const {
    return at > 0 && is(points_[index(at) - 1], false);
  }
  [[nodiscard]] bool word_after(std::size_t at) const {
    return at < borders_.back() && is(points_[index(at)], false);
  }
  [[nodiscard]] std::size_t spaces_before(std::size_t at) const {
    std::size_t i = index(at);
    while (i > 0 && is(points_[i - 1], true)) --i;
    return borders_[i];
  }
  [[nodiscard]] std::size_t spaces_after(std::size_t at) const {
    std::size_t i = index(at);
    while (i < points_.size() && is(points_[i], true)) ++i;
    return borders_[i];
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t at) const {
    CHECK(is_border(at));
    return static_cast<std::size_t>(std::lower_bound(borders_.begin(), borders_.end(), at) -
                                    borders_.begin());
  }
  static bool is(std::uint32_t point, bool space) {
    if (point == bpe_beam::kMalformed) return false;
    return space ? bpe_beam::char_class(point) == bpe_beam::CharClass::kSpace
                 : (bpe_beam::char_bits(point) & bpe_beam::kWordChar) != 0;
  }

  std::vector<std::size_t> borders_;
  std::vector<std::uint32_t> points_;
};

/// The parts of a text; the tokens are UTF-8.
inline std::vector<NaiveCut> naive_segments(const std::vector<bpe_beam::AddedToken>& tokens,
                                            std::string_view text,
                                            const std::vector<std::uint32_t>& allowed) {
  const NaiveCharacters characters(text);
  std::vector<NaiveCut> parts;
  std::size_t done = 0, disallowed_end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const bpe_beam::AddedToken* found = nullptr;
    const bpe_beam::AddedToken* longest = nullptr;  // also of those that are disallowed
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto& token = tokens[i];
      const auto same = [&](const auto& other) { return other.content == token.content; };
      // Of two tokens of one text the first one counts.
      if (text.substr(at, token.content.size()) != token.content ||
          std::any_of(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i), same)) {
        continue;
      }
      const auto longer = [&](const bpe_beam::AddedToken* than) {
        return than == nullptr || token.content.size() > than->content.size();
      };
      const bool allowed_one =
          token.special && std::count(allowed.begin(), allowed.end(), token.id) > 0;
      if (allowed_one && longer(found)) found = &token;
      if (longer(longest)) longest = &token;
    }
    if (at >= disallowed_end && longest != found) {
      if (longest->special) {  // plain text, in which only allowed special tokens count
        disallowed_end = at + longest->content.size();
      } else {
        found = longest;
      }
    }
    if (found == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + found->content.size();
    at = end;
    if (found->single_word && (characters.word_before(begin) || characters.word_after(end))) {
      continue;
    }
    if (found->lstrip) begin = std::max(characters.spaces_before(begin), done);
    if (found->rstrip) end = characters.spaces_after(end);
    if (done < begin) parts.push_back({NaiveCut::kPlain, done, begin});
    if (begin < end) parts.push_back({found->id, begin, end});
    done = end;
  }
  if (done < text.size()) parts.push_back({NaiveCut::kPlain, done, text.size()});
  return parts;
}
