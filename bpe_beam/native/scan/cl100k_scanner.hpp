// The patterns of cl100k, Llama 3 and Qwen 2 over UTF-8, without a regular-expression engine:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
// Qwen 2 has \p{N} for \p{N}{1,3}.
#pragma once

#include <cstddef>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

template <std::size_t kMostNumbers>
class LinesScanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 counts as neither letter, number nor space.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(start, end) - text.data());
  }

  /// Where words begin in the 64 bytes at `at`, where one begins.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    return cl100k_starts<kMostNumbers>(at, class_masks<false>(at, classes));
  }

 private:
  static const char* word_end(const char* start, const char* end) {
    const Char first = char_at(start, end);
    const char* const after = start + first.size;
    if (first.kind == CharClass::kLetter) return run_end(after, end, CharClass::kLetter);
    if (first.kind == CharClass::kNumber) return numbers_end(after, end, kMostNumbers - 1);
    if (const std::size_t size = any_case_contraction(start, end)) return start + size;
    if (is_newline(*start)) return spaces_or_lines_end(start, end);
    if (after < end) {
      const Char second = char_at(after, end);
      if (second.kind == CharClass::kLetter) {
        return run_end(after + second.size, end, CharClass::kLetter);
      }
      if (*start == ' ' && second.kind == CharClass::kOther) return signs_end(after, end);
    }
    if (first.kind == CharClass::kOther) return signs_end(start, end);
    return spaces_or_lines_end(start, end);
  }

  /// The end of what [^\s\p{L}\p{N}]+[\r\n]* takes.
  static const char* signs_end(const char* at, const char* end) {
    at = run_end(at, end, CharClass::kOther);
    while (at < end && is_newline(*at)) ++at;
    return at;
  }
};

using Cl100kScanner = LinesScanner<3>;
using Qwen2Scanner = LinesScanner<1>;

}  // namespace bpe_beam
