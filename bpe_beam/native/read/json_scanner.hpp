// The grammar of JSON's tokens (RFC 8259): white space, strings, numbers and literals.
//
// JsonLine (jsonl.hpp) and JsonReader (json_reader.hpp) build on it.
#pragma once

#include <cstddef>
#include <string_view>

#include "read/json_string.hpp"

namespace bpe_beam {

/// Reads the tokens of a JSON text from left to right. Never reads beyond the text.
class JsonScanner {
 protected:
  explicit JsonScanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  /// The next byte, or NUL at the end.
  char peek() const { return at_ < end_ ? *at_ : '\0'; }

  /// Moves past `c`; returns false if the next byte is not `c`.
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  }

  /// Reads a member's name and the colon after it.
  bool read_key(JsonString& key) {
    if (peek() != '"' || !read_string(key)) return false;
    skip_space();
    return take(':');
  }

  /// Reads a string; the next byte must be its opening quote.
  bool read_string(JsonString& string) {
    const char* const first = ++at_;
    for (;;) {
      at_ = end_of_plain(at_, end_);
      if (at_ == end_) return false;
      if (*at_ == '"') break;
      if (*at_ != '\\') return false;
      string.escaped = true;
      ++at_;
      if (take('u')) {
        for (int i = 0; i < 4; ++i, ++at_)
          if (kHexValues[static_cast<unsigned char>(peek())] < 0) return false;
      } else if (kShortEscapes[static_cast<unsigned char>(peek())] != '\0') {
        ++at_;
      } else {
        return false;
      }
    }
    string.raw = {first, static_cast<std::size_t>(at_ - first)};
    ++at_;
    return true;
  }

  /// Reads a string and appends its text, in one pass; the next byte must be its opening quote. If
  /// it returns false, nothing is read or appended: `read_string` says what there is.
  bool copy_string(Strings& out) {
    char* const begin = out.room(static_cast<std::size_t>(end_ - at_));
    const auto [quote, text_end] = bpe_beam::copy_string(at_ + 1, end_, begin);
    if (quote == nullptr) return false;
    out.add(static_cast<std::size_t>(text_end - begin));
    at_ = quote + 1;
    return true;
  }

  bool read_number() {
    take('-');
    if (!take('0') && !read_digits()) return false;
    if (take('.') && !read_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!read_digits()) return false;
    }
    return true;
  }

  /// Reads `true`, `false` or `null`.
  bool read_literal(std::string_view literal) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(literal))
      return false;
    at_ += literal.size();
    return true;
  }

  const char* at_;  // the next byte
  const char* end_;

 private:
  bool read_digits() {
    const char* const first = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > first;
  }
};

}  // namespace bpe_beam
