// Matchers find the parts of a text that a normalizer replaces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin;
  std::size_t end;
  bool operator==(const Span&) const = default;
};

/// Threads may share one.
class Matcher {
 public:
  virtual ~Matcher() = default;

  /// Appends the matches in `text` in order. They do not overlap; a match may be empty.
  virtual void find(std::string_view text, std::vector<Span>& out) const = 0;
};

/// Finds a sequence of bytes, leftmost first. An empty sequence matches between all characters and
/// at both ends.
class LiteralMatcher final : public Matcher {
 public:
  explicit LiteralMatcher(std::string bytes) : bytes_(std::move(bytes)), borders_(bytes_.size()) {
    for (std::size_t i = 1, border = 0; i < bytes_.size(); ++i) {
      while (border > 0 && bytes_[i] != bytes_[border]) border = borders_[border - 1];
      if (bytes_[i] == bytes_[border]) ++border;
      borders_[i] = border;
    }
  }

  /// Linear in the text, whatever the bytes (Knuth, Morris, Pratt).
  void find(std::string_view text, std::vector<Span>& out) const override {
    if (bytes_.empty()) return find_boundaries(text, out);
    std::size_t matched = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (matched == 0) {
        const void* first = std::memchr(text.data() + at, bytes_[0], text.size() - at);
        if (first == nullptr) return;
        at = static_cast<std::size_t>(static_cast<const char*>(first) - text.data());
      }
      while (matched > 0 && text[at] != bytes_[matched]) matched = borders_[matched - 1];
      if (text[at] == bytes_[matched]) ++matched;
      if (matched == bytes_.size()) {
        out.push_back({at + 1 - matched, at + 1});
        matched = 0;
      }
    }
  }

 private:
  static void find_boundaries(std::string_view text, std::vector<Span>& out) {
    for (std::size_t at = 0; at < text.size();) {
      out.push_back({at, at});
      at += decode_utf8(text.data() + at, text.data() + text.size()).size;
    }
    out.push_back({text.size(), text.size()});
  }

  std::string bytes_;
  // For each prefix, the length of its longest proper prefix that is also its suffix.
  std::vector<std::size_t> borders_;
};

/// Finds the empty match after each word: `(?<=\S)(?=\s|$)`.
class WordEndMatcher final : public Matcher {
 public:
  void find(std::string_view text, std::vector<Span>& out) const override {
    bool in_word = false;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
      const bool space = point.value != kMalformed && char_class(point.value) == CharClass::kSpace;
      if (in_word && space) out.push_back({at, at});
      in_word = !space;
      at += point.size;
    }
    if (in_word) out.push_back({text.size(), text.size()});
  }
};

/// Finds each run of two or more spaces: ` {2,}`.
class SpaceRunMatcher final : public Matcher {
 public:
  void find(std::string_view text, std::vector<Span>& out) const override {
    for (std::size_t at = text.find("  "); at != std::string_view::npos;) {
      const std::size_t end = std::min(text.find_first_not_of(' ', at), text.size());
      out.push_back({at, end});
      at = text.find("  ", end);
    }
  }
};

/// Finds each punctuation character.
class PunctuationMatcher final : public Matcher {
 public:
  void find(std::string_view text, std::vector<Span>& out) const override {
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
      if (point.value != kMalformed && (char_bits(point.value) & kPunctuation) != 0) {
        out.push_back({at, at + point.size});
      }
      at += point.size;
    }
  }
};

}  // namespace bpe_beam
