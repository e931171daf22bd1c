// JSON text to calls of a handler, one for each value, key and bracket, in order.
//
// The grammar is RFC 8259's. What a reader refuses somebody else may still read and explain: it says
// only that it refuses. UTF-8 is not checked; outside of strings nothing but ASCII is allowed.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "read/json_string.hpp"

namespace bpe_beam {

/// Reads one JSON text.
///
/// The handler has `begin_object()`, `key(JsonString)`, `end_object()`, `begin_array()`,
/// `end_array()`, `string(JsonString)`, `number(string_view)` and `word(char)` ('t', 'f' or 'n').
/// Each returns false to refuse the text.
template <class Handler>
class JsonReader {
 public:
  /// Containers in containers beyond this depth are refused.
  static constexpr std::size_t kMaxDepth = 256;

  JsonReader(std::string_view text, Handler& handler)
      : at_(text.data()), end_(text.data() + text.size()), handler_(handler) {}

  /// False: the text is not JSON, is nested too deeply, or the handler refuses it.
  [[nodiscard]] bool read() {
    do {
      skip_space();
      if (!read_value()) return false;
      while (!opened_) {
        skip_space();
        if (depth_ == 0) return at_ == end_;
        if (take(',')) {
          skip_space();
          if (is_object_[depth_ - 1] && !read_key()) return false;
          break;
        }
        if (!close()) return false;
      }
    } while (true);
  }

 private:
  char peek() const { return at_ < end_ ? *at_ : '\0'; }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  /// Reads a value, or the opening of one that is not empty (`opened_`) up to its first value.
  bool read_value() {
    opened_ = false;
    const char first = peek();
    switch (first) {
      case '{':
      case '[':
        return open(first == '{');
      case '"': {
        JsonString string;
        return read_string(string) && handler_.string(string);
      }
      case 't':
        return read_word("true");
      case 'f':
        return read_word("false");
      case 'n':
        return read_word("null");
      default:
        return read_number();
    }
  }

  bool open(bool object) {
    if (depth_ == kMaxDepth) return false;
    is_object_[depth_++] = object;
    ++at_;
    if (!(object ? handler_.begin_object() : handler_.begin_array())) return false;
    skip_space();
    if (peek() == (object ? '}' : ']')) return close();
    opened_ = true;
    return !object || read_key();
  }

  bool close() {
    const bool object = is_object_[depth_ - 1];
    if (!take(object ? '}' : ']')) return false;
    --depth_;
    return object ? handler_.end_object() : handler_.end_array();
  }

  bool read_key() {
    JsonString key;
    if (peek() != '"' || !read_string(key) || !handler_.key(key)) return false;
    skip_space();
    return take(':');
  }

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
        for (int i = 0; i < 4; ++i, ++at_) {
          if (hex_value(peek()) < 0) return false;
        }
      } else if (at_ == end_ || std::string_view("\"\\/bfnrt").find(*at_) == std::string_view::npos) {
        return false;
      } else {
        ++at_;
      }
    }
    string.raw = {first, static_cast<std::size_t>(at_ - first)};
    ++at_;
    return true;
  }

  bool read_word(std::string_view word) {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    if (!rest.starts_with(word)) return false;
    at_ += word.size();
    return handler_.word(word[0]);
  }

  bool read_digits() {
    const char* const first = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > first;
  }

  bool read_number() {
    const char* const first = at_;
    take('-');
    if (!take('0') && !read_digits()) return false;
    if (take('.') && !read_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!read_digits()) return false;
    }
    return handler_.number({first, static_cast<std::size_t>(at_ - first)});
  }

  const char* at_;
  const char* end_;
  Handler& handler_;
  std::array<bool, kMaxDepth> is_object_{};
  std::size_t depth_ = 0;
  bool opened_ = false;
};

}  // namespace bpe_beam
