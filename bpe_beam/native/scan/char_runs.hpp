// Characters of UTF-8 text one at a time and in runs: the building blocks of the scanners of
// patterns.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

// The class of an ASCII byte; kNotAscii sends the rest to the tables.
inline constexpr std::uint8_t kNotAscii = 4;

inline constexpr std::array<std::uint8_t, 256> kByteClass = [] {
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

/// The character at `at` < end; with `kMarksAreLetters`, a mark has the class of letters.
template <bool kMarksAreLetters = false>
Char char_at(const char* at, const char* end) {
  const std::uint8_t kind = kByteClass[static_cast<unsigned char>(*at)];
  if (kind != kNotAscii) [[likely]]
    return {static_cast<CharClass>(kind), 1};
  const CodePoint point = decode_utf8(at, end);
  if (point.value == kMalformed) return {CharClass::kOther, 1};
  if constexpr (kMarksAreLetters) {
    if ((char_bits(point.value) & kMark) != 0) return {CharClass::kLetter, point.size};
  }
  return {char_class(point.value), point.size};
}

/// The number of ASCII letters in the eight bytes at `at` before the first other byte; of either
/// case, or only lower case. Most words end within one call, so their length costs no branch that
/// could be mispredicted.
template <bool kEitherCase = true>
inline std::size_t ascii_letters(const char* at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x80 * kOnes;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, 8);
  // Within seven bits no sum carries into the next byte; its high bit is the result of the
  // comparison.
  const std::uint64_t lower = (bytes | (kEitherCase ? 0x20 * kOnes : 0)) & ~kHigh;
  const std::uint64_t from_a = lower + (0x80 - 'a') * kOnes;
  const std::uint64_t beyond_z = lower + (0x80 - 'z' - 1) * kOnes;
  const std::uint64_t others = ~(from_a & ~beyond_z & ~bytes) & kHigh;
  return others == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(others)) / 8;
}

/// The end of the run of characters of one class that begins at `at`. Inlining is forced: the
/// compiler considers the function too large, and a call for each word costs a tenth of the scan.
template <bool kMarksAreLetters = false>
[[gnu::always_inline]] inline const char* run_end(const char* at, const char* end, CharClass kind) {
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
    const Char here = char_at<kMarksAreLetters>(at, end);
    if (here.kind != kind) break;
    at += here.size;
  }
  return at;
}

struct CharBits {
  std::uint16_t bits;
  std::uint32_t size;
};

/// The properties of the character at `at` < end; a malformed byte has none.
inline CharBits bits_at(const char* at, const char* end) {
  const CodePoint point = decode_utf8(at, end);
  if (point.value == kMalformed) return {0, 1};
  return {char_bits(point.value), point.size};
}

inline bool is_newline(char c) { return c == '\n' || c == '\r'; }

/// The length in bytes of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, or 0. The long s folds to s; no
/// other character beyond ASCII folds to one of these letters.
inline std::size_t any_case_contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return 0;
  // Only the two cases of a letter become the lower-case letter.
  const auto lower = [at](std::size_t i) { return static_cast<char>(at[i] | 0x20); };
  const char first = lower(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (end - at < 3) return 0;
  if (at[1] == '\xC5' && at[2] == '\xBF') return 3;  // U+017F
  const char second = lower(2);
  const bool two = (first == 'l' && second == 'l') || (first == 'v' && second == 'e') ||
                   (first == 'r' && second == 'e');
  return two ? 3 : 0;
}

/// The end of a run of numbers that begins at `at`, at most `most` characters.
inline const char* numbers_end(const char* at, const char* end, std::size_t most) {
  for (std::size_t i = 0; i < most && at < end; ++i) {
    const Char here = char_at(at, end);
    if (here.kind != CharClass::kNumber) break;
    at += here.size;
  }
  return at;
}

/// Returns whether the character before `at` is a number.
inline bool is_after_number(const char* begin, const char* at) {
  if (at == begin) return false;
  const char* last = at - 1;
  while (last > begin && at - last < 4 && (static_cast<unsigned char>(*last) & 0xC0) == 0x80)
    --last;
  const Char character = char_at(last, at);
  return last + character.size == at && character.kind == CharClass::kNumber;
}

/// The rule by which a pattern groups the numbers of a run.
struct NumberRule {
  std::size_t most;         // the maximum number of numbers in a group
  bool from_right = false;  // true if the first group, not the last, may have fewer
};

/// The end of the group of numbers that begins at `at`, in the text that begins at `begin`. The
/// time of a run is linear, because only its first group searches for the run's end.
template <NumberRule kRule>
const char* group_end(const char* begin, const char* at, const char* end) {
  std::size_t size = kRule.most;
  if constexpr (kRule.from_right) {
    if (!is_after_number(begin, at)) {
      std::size_t run = 0;
      for (const char* next = at; next < end; ++run) {
        const Char here = char_at(next, end);
        if (here.kind != CharClass::kNumber) break;
        next += here.size;
      }
      size = (run - 1) % kRule.most + 1;
    }
  }
  return numbers_end(at, end, size);
}

/// The end of the match of \s*[\r\n]+|\s+(?!\S)|\s+ at the space at `start`. If the run of spaces
/// has a line break, the match ends after its last line break. Otherwise it is the whole run at the
/// text's end, and the run without its last space (but at least one space) before another
/// character. `ends_text(at)` returns whether the character at `at` counts as the text's end.
///
/// Each space is read at most three times: after the last line break of a run there is no further
/// one, and after the rest of the run there is one space.
template <class EndsText>
const char* spaces_or_lines_end(const char* start, const char* end, const EndsText& ends_text) {
  const char* lines_end = nullptr;
  const char* last = start;
  const char* at = start;
  while (at < end) {
    const Char here = char_at(at, end);
    if (here.kind != CharClass::kSpace) break;
    if (is_newline(*at)) lines_end = at + 1;
    last = at;
    at += here.size;
  }
  if (lines_end != nullptr) return lines_end;
  return at == end || last == start || ends_text(at) ? at : last;
}

inline const char* spaces_or_lines_end(const char* start, const char* end) {
  return spaces_or_lines_end(start, end, [](const char*) { return false; });
}

}  // namespace bpe_beam
