// The GPT-2 pattern over UTF-8, without a regular-expression engine:
//   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "unicode_classes.hpp"
#include "utf8.hpp"

namespace bpe_beam {

class Gpt2Scanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 counts as neither letter, number nor space.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(start, end) - text.data());
  }

 private:
  // The class of an ASCII byte; kNotAscii sends the rest to the tables.
  static constexpr std::uint8_t kNotAscii = 4;

  static constexpr std::array<std::uint8_t, 256> kByteClass = [] {
    std::array<std::uint8_t, 256> classes{};
    for (int c = 0; c < 256; ++c) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool space = c == ' ' || (c >= '\t' && c <= '\r');
      classes[c] = c >= 0x80                ? kNotAscii
                   : letter                 ? std::uint8_t{1}
                   : (c >= '0' && c <= '9') ? std::uint8_t{2}
                   : space                  ? std::uint8_t{3}
                                            : std::uint8_t{0};
    }
    return classes;
  }();

  struct Char {
    CharClass kind;
    std::uint32_t size;
  };

  static Char char_at(const char* at, const char* end) {
    const std::uint8_t kind = kByteClass[static_cast<unsigned char>(*at)];
    if (kind != kNotAscii) [[likely]] return {static_cast<CharClass>(kind), 1};
    const CodePoint point = decode_utf8(at, end);
    if (point.value == kMalformed) return {CharClass::kOther, 1};
    return {char_class(point.value), point.size};
  }

  /// How many of the eight bytes at `at` are ASCII letters before the first that is none. Most
  /// words end within one call, so their length costs no branch that could be mispredicted.
  static std::size_t ascii_letters(const char* at) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHigh = 0x80 * kOnes;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, 8);
    // Within seven bits no sum carries into the next byte; its high bit tells the comparison.
    const std::uint64_t lower = (bytes | 0x20 * kOnes) & ~kHigh;
    const std::uint64_t from_a = lower + (0x80 - 'a') * kOnes;
    const std::uint64_t beyond_z = lower + (0x80 - 'z' - 1) * kOnes;
    const std::uint64_t others = ~(from_a & ~beyond_z & ~bytes) & kHigh;
    return others == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(others)) / 8;
  }

  /// The end of the run of characters of one class that begins at `at`.
  static const char* run_end(const char* at, const char* end, CharClass kind) {
    if (kind == CharClass::kLetter) {
      while (end - at >= 8) {
        const std::size_t letters = ascii_letters(at);
        at += letters;
        if (letters == 8) continue;
        if (static_cast<unsigned char>(*at) < 0x80) return at;
        break;
      }
    }
    while (at < end) {
      const Char here = char_at(at, end);
      if (here.kind != kind) break;
      at += here.size;
    }
    return at;
  }

  /// The length of a contraction (with its apostrophe) at `at`, or 0.
  static std::size_t contraction(const char* at, const char* end) {
    if (end - at < 2) return 0;
    const char first = at[1];
    if (first == 's' || first == 'd' || first == 'm' || first == 't') return 2;
    if (end - at < 3) return 0;
    const char second = at[2];
    const bool two = (first == 'l' && second == 'l') || (first == 'v' && second == 'e') ||
                     (first == 'r' && second == 'e');
    return two ? 3 : 0;
  }

  static const char* word_end(const char* start, const char* end) {
    const Char first = char_at(start, end);
    if (first.kind != CharClass::kSpace) {
      if (*start == '\'') {
        if (const std::size_t size = contraction(start, end)) return start + size;
      }
      return run_end(start + first.size, end, first.kind);
    }
    const char* after = start + first.size;
    if (*start == ' ' && after < end) {
      const Char second = char_at(after, end);
      if (second.kind != CharClass::kSpace) return run_end(after + second.size, end, second.kind);
    }
    // A run of spaces. Before a character that is no space, the run's last space is left over:
    // it opens the next word (a blank) or is a word of its own (any other space).
    const char* last = start;
    while (after < end) {
      const Char here = char_at(after, end);
      if (here.kind != CharClass::kSpace) return last == start ? after : last;
      last = after;
      after += here.size;
    }
    return after;
  }
};

}  // namespace bpe_beam
