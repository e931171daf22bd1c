// The pattern of DeepSeek V3 over UTF-8, without a regular-expression engine. Three patterns split
// a text, each the texts that the one before left:
//   \p{N}{1,3}
//   [一-龥぀-ゟ゠-ヿ]+
//   [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
// What no pattern matches (controls, unassigned characters) is a word as long as its run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

class DeepSeekScanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 is of no class.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(start, end) - text.data());
  }

  /// The positions at which words begin in the 64 bytes at `at`, where a word begins.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    return deepseek_starts(class_masks<MaskKinds{.cjk = true}>(at, classes), classes.controls(at));
  }

 private:
  enum class Kind : std::uint8_t { kLetter, kNumber, kSpace, kSign, kCjk, kOther };

  struct Char {
    Kind kind;
    std::uint32_t size;
  };

  static Char char_at(const char* at, const char* end) {
    const CodePoint point = decode_utf8(at, end);
    if (point.value == kMalformed) return {Kind::kOther, 1};
    if (is_cjk(point.value)) return {Kind::kCjk, point.size};
    const std::uint16_t bits = char_bits(point.value);
    switch (static_cast<CharClass>(bits & kClassBits)) {
      case CharClass::kLetter: return {Kind::kLetter, point.size};
      case CharClass::kNumber: return {Kind::kNumber, point.size};
      case CharClass::kSpace: return {Kind::kSpace, point.size};
      case CharClass::kOther: break;
    }
    if ((bits & kMark) != 0) return {Kind::kLetter, point.size};
    return {(bits & kSign) != 0 ? Kind::kSign : Kind::kOther, point.size};
  }

  static bool is(Kind kind, const char* at, const char* end) {
    return at < end && char_at(at, end).kind == kind;
  }

  static const char* kind_end(const char* at, const char* end, Kind kind) {
    while (at < end) {
      const Char here = char_at(at, end);
      if (here.kind != kind) break;
      at += here.size;
    }
    return at;
  }

  static const char* ascii_letters_end(const char* at, const char* end) {
    while (at < end && kByteClass[static_cast<unsigned char>(*at)] == 1) ++at;
    return at;
  }

  /// The end of the match of [\p{P}\p{S}]+[\r\n]*.
  static const char* signs_end(const char* at, const char* end) {
    at = kind_end(at, end, Kind::kSign);
    while (at < end && is_newline(*at)) ++at;
    return at;
  }

  /// The end of a run of characters that no pattern matches; the last one before letters belongs to
  /// the letters. The first character, of `size` bytes, is known to be in the run.
  static const char* others_end(const char* at, std::uint32_t size, const char* end) {
    at += size;
    while (at < end) {
      const Char here = char_at(at, end);
      if (here.kind != Kind::kOther || is(Kind::kLetter, at + here.size, end)) break;
      at += here.size;
    }
    return at;
  }

  static const char* word_end(const char* start, const char* end) {
    const Char first = char_at(start, end);
    const char* const after = start + first.size;
    switch (first.kind) {
      case Kind::kNumber: return numbers_end(start, end, 3);
      case Kind::kCjk:
      case Kind::kLetter: return kind_end(after, end, first.kind);
      case Kind::kSign: {
        const char* const letters = first.size == 1 ? ascii_letters_end(after, end) : after;
        return letters > after ? letters : signs_end(after, end);
      }
      case Kind::kOther:
        if (is(Kind::kLetter, after, end)) return kind_end(after, end, Kind::kLetter);
        return others_end(start, first.size, end);
      case Kind::kSpace: break;
    }
    if (!is_newline(*start) && is(Kind::kLetter, after, end)) {
      return kind_end(after, end, Kind::kLetter);
    }
    if (*start == ' ' && is(Kind::kSign, after, end)) return signs_end(after, end);
    return spaces_or_lines_end(start, end, [end](const char* at) {
      const Kind kind = char_at(at, end).kind;
      return kind == Kind::kNumber || kind == Kind::kCjk;
    });
  }
};

}  // namespace bpe_beam
