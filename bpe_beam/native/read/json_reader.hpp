// JSON text to calls of a handler, one for each value, key and bracket, in order.
//
// The grammar is RFC 8259's. This reader only reports that it refuses a text; a slower reader
// explains why. UTF-8 is not checked; outside of strings only ASCII is allowed.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "read/json_scanner.hpp"
#include "read/json_string.hpp"

namespace bpe_beam {

/// Reads one JSON text.
///
/// The handler has `begin_object()`, `key(JsonString)`, `end_object()`, `begin_array()`,
/// `end_array()`, `string(JsonString)`, `number(string_view)` and `literal(char)` ('t', 'f' or
/// 'n'). Each returns false to refuse the text.
template <class Handler>
class JsonReader : private JsonScanner {
 public:
  /// Containers that are nested deeper are refused.
  static constexpr std::size_t kMaxDepth = 256;

  JsonReader(std::string_view text, Handler& handler) : JsonScanner(text), handler_(handler) {}

  /// Returns false if the text is not JSON, is nested too deeply, or the handler refuses it.
  [[nodiscard]] bool read() {
    do {
      skip_space();
      if (!read_value()) return false;
      while (!opened_) {
        skip_space();
        if (depth_ == 0) return at_ == end_;
        if (take(',')) {
          skip_space();
          if (is_object_[depth_ - 1] && !read_name()) return false;
          break;
        }
        if (!close()) return false;
      }
    } while (true);
  }

 private:
  /// Reads a value, or a container that is not empty up to its first value (`opened_`).
  bool read_value() {
    opened_ = false;
    const char first = peek();
    switch (first) {
      case '{':
      case '[': return open(first == '{');
      case '"': {
        JsonString string;
        return read_string(string) && handler_.string(string);
      }
      case 't': return read_literal("true") && handler_.literal('t');
      case 'f': return read_literal("false") && handler_.literal('f');
      case 'n': return read_literal("null") && handler_.literal('n');
      default: {
        const char* const begin = at_;
        return read_number() && handler_.number({begin, static_cast<std::size_t>(at_ - begin)});
      }
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
    return !object || read_name();
  }

  bool close() {
    const bool object = is_object_[depth_ - 1];
    if (!take(object ? '}' : ']')) return false;
    --depth_;
    return object ? handler_.end_object() : handler_.end_array();
  }

  bool read_name() {
    JsonString name;
    return read_key(name) && handler_.key(name);
  }

  Handler& handler_;
  std::array<bool, kMaxDepth> is_object_{};
  std::size_t depth_ = 0;
  bool opened_ = false;
};

}  // namespace bpe_beam
