// The patterns of cl100k's family over UTF-8, without a regular-expression engine:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
// Qwen 2 has \p{N} for \p{N}{1,3}, nanochat \p{N}{1,2}. Qwen 3.5 has the numbers of Qwen 2, and in
// all the rest marks are letters. Groups of numbers may begin at the right of a run:
// \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})). With `kEndSpaces` spaces and line breaks up to the text's
// end are one word, by \s++$ before \s*[\r\n]+.
#pragma once

#include <cstddef>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

template <NumberRule kNumbers, bool kMarksAreLetters = false, bool kEndSpaces = false>
class LinesScanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 counts as neither letter, number nor space.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(text.data(), start, end) - text.data());
  }

  /// The positions at which words begin in the 64 bytes at `at`, where a word begins. Spaces that
  /// may continue to the text's end are not decided, so `kEndSpaces` changes nothing.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    ClassMasks masks = class_masks<MaskKinds{}>(at, classes);
    if constexpr (kMarksAreLetters) masks.letters |= masks.marks;
    return cl100k_starts<kNumbers>(at, masks);
  }

 private:
  static Char class_at(const char* at, const char* end) {
    return char_at<kMarksAreLetters>(at, end);
  }

  static const char* class_end(const char* at, const char* end, CharClass kind) {
    return run_end<kMarksAreLetters>(at, end, kind);
  }

  static const char* word_end(const char* begin, const char* start, const char* end) {
    const Char first = class_at(start, end);
    const char* const after = start + first.size;
    if (first.kind == CharClass::kLetter) return class_end(after, end, CharClass::kLetter);
    if (first.kind == CharClass::kNumber) return group_end<kNumbers>(begin, start, end);
    if (const std::size_t size = any_case_contraction(start, end)) return start + size;
    if (is_newline(*start)) return spaces_end(start, end);
    if (after < end) {
      const Char second = class_at(after, end);
      if (second.kind == CharClass::kLetter) {
        return class_end(after + second.size, end, CharClass::kLetter);
      }
      if (*start == ' ' && second.kind == CharClass::kOther) return signs_end(after, end);
    }
    if (first.kind == CharClass::kOther) return signs_end(start, end);
    return spaces_end(start, end);
  }

  /// The end of the match of the alternatives for spaces.
  static const char* spaces_end(const char* start, const char* end) {
    if constexpr (kEndSpaces) {
      if (class_end(start, end, CharClass::kSpace) == end) return end;
    }
    return spaces_or_lines_end(start, end);
  }

  /// The end of the match of [^\s\p{L}\p{N}]+[\r\n]*.
  static const char* signs_end(const char* at, const char* end) {
    at = class_end(at, end, CharClass::kOther);
    while (at < end && is_newline(*at)) ++at;
    return at;
  }
};

using Cl100kScanner = LinesScanner<NumberRule{3}>;
using Cl100kRightScanner = LinesScanner<NumberRule{3, true}>;
using Cl100kEndSpacesScanner = LinesScanner<NumberRule{3}, false, true>;
using Qwen2Scanner = LinesScanner<NumberRule{1}>;
using NanochatScanner = LinesScanner<NumberRule{2}>;
using Qwen35Scanner = LinesScanner<NumberRule{1}, true>;

}  // namespace bpe_beam
