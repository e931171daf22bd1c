// The normalizer `Precompiled`: replacements from a SentencePiece model, as Hugging Face applies
// them.
//
// The bytes of a `precompiled_charsmap` are a number of 32 bits, the size of the array in bytes; an
// array of such numbers, all little-endian; and the replacements in UTF-8, each ended by a zero
// byte. The array is a trie of bytes: entry p has the label in bits 0 to 7 and 31, a bit 8 if a key
// ends there, and the distance to its children, which are at (p ^ distance) ^ byte; the entry at p
// ^ distance has, if a key ends at p, where its replacement begins.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normalize/normalizers.hpp"
#include "text/deadline.hpp"
#include "text/graphemes.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"
#include "text/utf8_check.hpp"

namespace bpe_beam {

/// Replacements by their keys, the texts that they replace.
class Charsmap {
 public:
  /// Throws std::invalid_argument with the error in the bytes.
  explicit Charsmap(std::string_view bytes) {
    if (bytes.size() < 4) throw std::invalid_argument("it has no size of its array");
    const std::size_t size = number_at(bytes, 0);
    if (size > bytes.size() - 4) throw std::invalid_argument("its array is cut off");
    array_.reserve(size / 4);
    for (std::size_t at = 0; at + 4 <= size; at += 4) array_.push_back(number_at(bytes, 4 + at));
    if (array_.empty()) throw std::invalid_argument("its array is empty");
    texts_ = bytes.substr(4 + size / 4 * 4);
    if (valid_utf8_prefix(texts_) != texts_.size()) {
      throw std::invalid_argument("its replacements are not UTF-8");
    }
    check();
  }

  /// The replacement of the shortest key with which `text` begins.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const {
    std::optional<std::string_view> longest;
    walk(text, [&](std::size_t, std::string_view replacement) {
      longest = replacement;
      return false;
    });
    return longest;
  }

  struct Match {
    std::size_t size = 0;  // of the key
    std::string_view replacement;
  };

  /// The longest key with which `text` begins; of size 0 if there is none.
  [[nodiscard]] Match find_longest(std::string_view text) const {
    Match longest;
    const std::size_t walked = walk(text, [&](std::size_t size, std::string_view replacement) {
      longest = {size, replacement};
      return true;
    });
    if (walked > kShortWalk) [[unlikely]]
      Deadline::spend(10 * walked);
    return longest;
  }

  /// Returns whether a key begins with `text`, which is not empty.
  [[nodiscard]] bool begins_key(std::string_view text) const {
    return walk(text, [](std::size_t, std::string_view) { return true; }) == text.size();
  }

 private:
  static constexpr std::size_t kShortWalk = 64;  // bytes; only longer walks can add up

  /// Calls visit(size, replacement) for each key with which `text` begins, the shortest first,
  /// until it returns false. Returns how many bytes of `text` the array has in a row.
  template <class Visit>
  std::size_t walk(std::string_view text, Visit&& visit) const {
    std::size_t base = distance(array_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto label = static_cast<unsigned char>(text[i]);
      const std::size_t at = base ^ label;
      if (label == 0 || at >= array_.size() || label_of(array_[at]) != label) return i;
      base = at ^ distance(array_[at]);
      if (!ends_key(array_[at])) continue;
      const std::string_view rest = std::string_view(texts_).substr(value(array_[base]));
      if (!visit(i + 1, rest.substr(0, rest.find('\0')))) return i + 1;
    }
    return text.size();
  }

  static std::uint32_t number_at(std::string_view bytes, std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 4; i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return number;
  }

  static std::uint32_t label_of(std::uint32_t entry) { return entry & 0x800000FF; }
  static bool ends_key(std::uint32_t entry) { return (entry >> 8 & 1) != 0; }
  static std::size_t value(std::uint32_t entry) { return entry & 0x7FFFFFFF; }
  static std::size_t distance(std::uint32_t entry) {
    return static_cast<std::size_t>(entry >> 10) << ((entry & 0x200) >> 6);
  }

  /// Checks that every reachable key has a replacement.
  void check() const {
    std::vector<bool> seen(array_.size());
    std::vector<std::size_t> bases{distance(array_[0])};
    while (!bases.empty()) {
      const std::size_t base = bases.back();
      bases.pop_back();
      for (std::uint32_t label = 1; label < 256; ++label) {
        const std::size_t at = base ^ label;
        if (at >= array_.size() || label_of(array_[at]) != label || seen[at]) continue;
        seen[at] = true;
        const std::size_t next = at ^ distance(array_[at]);
        if (ends_key(array_[at])) check_value(next);
        bases.push_back(next);
      }
    }
  }

  void check_value(std::size_t at) const {
    const bool there = at < array_.size() && value(array_[at]) <= texts_.size();
    const bool begins =
        there && (value(array_[at]) == texts_.size() || (texts_[value(array_[at])] & 0xC0) != 0x80);
    if (!begins) throw std::invalid_argument("a key of its array has no replacement");
  }

  std::vector<std::uint32_t> array_;
  std::string texts_;
};

/// Replaces a grapheme of up to 5 bytes that begins with a key as a whole, and otherwise each
/// character that has a key.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(std::string_view charsmap) : map_(charsmap) {
    for (char byte = 1; byte < 0x7F; ++byte) {
      plain_[static_cast<unsigned char>(byte)] = byte != '\r' && !map_.find({&byte, 1});
    }
  }

  void apply(const TextView& in, TextBuffer& out) const override {
    if (out.with_origins()) {
      Placing sink(in, out);
      run(in.bytes, sink);
      sink.finish();
    } else {
      Writing sink{in, out};
      run(in.bytes, sink);
    }
    check_growth(in.bytes.size(), out.size());
  }

 private:
  static constexpr std::size_t kLongestGrapheme = 5;  // that is replaced as a whole

  /// Calls sink.keep(begin, end) for bytes that stay, and sink.replace(begin, end, replacement).
  template <class Sink>
  void run(std::string_view text, Sink& sink) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = plain_end(text, at);
      if (end > at) {
        sink.keep(at, end);
      } else {
        end = grapheme_end(text, at);
        replace(text, at, end, sink);
      }
      at = end;
    }
  }

  /// The end of the characters from `at` that are their own graphemes and have no key.
  [[nodiscard]] std::size_t plain_end(std::string_view text, std::size_t at) const {
    std::size_t end = at;
    while (end < text.size() && plain_[static_cast<unsigned char>(text[end])]) ++end;
    // A character beyond ASCII may join the character before it.
    const bool alone = end == text.size() || static_cast<unsigned char>(text[end]) < 0x80;
    return alone || end == at ? end : end - 1;
  }

  template <class Sink>
  void replace(std::string_view text, std::size_t begin, std::size_t end, Sink& sink) const {
    if (end - begin <= kLongestGrapheme) {
      if (const auto replacement = map_.find(text.substr(begin, end - begin))) {
        return sink.replace(begin, end, *replacement);
      }
    }
    for (std::size_t size = 0; begin < end; begin += size) {
      size = decode_utf8(text.data() + begin, text.data() + end).size;
      if (const auto replacement = map_.find(text.substr(begin, size))) {
        sink.replace(begin, begin + size, *replacement);
      } else {
        sink.keep(begin, begin + size);
      }
    }
  }

  struct Writing {
    const TextView& in;
    TextBuffer& out;

    void keep(std::size_t begin, std::size_t end) { out.copy(in, begin, end); }
    void replace(std::size_t, std::size_t, std::string_view text) { out.put(text, Origin{}); }
  };

  /// Gives each character the origin that Hugging Face gives it. A removed character belongs to the
  /// character before it, whatever the origin of that character; at the beginning of a text there
  /// is none, so the bytes after the removed characters take the origins of earlier characters.
  class Placing {
   public:
    Placing(const TextView& in, TextBuffer& out) : in_(in), out_(out) {}

    void keep(std::size_t begin, std::size_t end) {
      for (std::size_t size = 0; begin < end; begin += size) {
        size = size_at(in_.bytes, begin);
        add(in_.bytes.substr(begin, size), 0);
      }
    }

    void replace(std::size_t begin, std::size_t end, std::string_view text) {
      const std::size_t before = characters(in_.bytes.substr(begin, end - begin));
      std::size_t made = 0;
      for (std::size_t at = 0, size = 0; at < text.size(); at += size, ++made) {
        size = size_at(text, at);
        add(text.substr(at, size), made < before ? 0 : 1);
      }
      if (made < before) taken_ -= static_cast<std::ptrdiff_t>(before - made);
    }

    void finish() { add({}, 0); }

   private:
    static std::size_t size_at(std::string_view text, std::size_t at) {
      return decode_utf8(text.data() + at, text.data() + text.size()).size;
    }

    static std::size_t characters(std::string_view text) {
      std::size_t count = 0;
      for (std::size_t at = 0; at < text.size(); at += size_at(text, at)) ++count;
      return count;
    }

    /// Writes the current character, and begins the next one. `change`: 1 if the text did not have
    /// it; below 0, the number of further characters that it replaces.
    void add(std::string_view character, std::ptrdiff_t change) {
      if (!character_.empty()) {
        const std::size_t at = taken_ > 0 && at_ > 0 ? at_ - 1 : at_;
        out_.put(character_, in_.origins[std::min(at, in_.bytes.size() - 1)]);
        for (std::ptrdiff_t left = 1 - taken_; left > 0 && at_ < in_.bytes.size(); --left) {
          at_ += size_at(in_.bytes, at_);
        }
      }
      character_ = character;
      taken_ = change;
    }

    const TextView& in_;
    TextBuffer& out_;
    std::size_t at_ = 0;  // of the next character from which an origin comes
    std::string_view character_;
    std::ptrdiff_t taken_ = 0;  // the change of the current character
  };

  Charsmap map_;
  std::array<bool, 256> plain_{};
};

}  // namespace bpe_beam
