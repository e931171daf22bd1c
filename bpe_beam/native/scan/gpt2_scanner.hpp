// The GPT-2 pattern over UTF-8, without a regular-expression engine:
//   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// With `kSingleNumbers` each number is a word of its own, and the text before it is split as if it
// ended there: the pattern has \p{N} for ` ?\p{N}+`, and (?![^\s\p{N}]) for (?!\S).
#pragma once

#include <cstddef>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

template <bool kSingleNumbers>
class Gpt2Patterns {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 counts as neither letter, number nor space.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(start, end) - text.data());
  }

  /// The positions at which words begin in the 64 bytes at `at`, where a word begins.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    return gpt2_starts<kSingleNumbers>(
        at, class_masks<MaskKinds{}>(at, classes),
        [at](const char* apostrophe) { return contraction(apostrophe, at + kBlock); });
  }

 private:
  static bool ends_text(Char c) { return kSingleNumbers && c.kind == CharClass::kNumber; }

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
      if (ends_text(first)) return start + first.size;
      return run_end(start + first.size, end, first.kind);
    }
    const char* after = start + first.size;
    if (*start == ' ' && after < end) {
      const Char second = char_at(after, end);
      if (second.kind != CharClass::kSpace && !ends_text(second)) {
        return run_end(after + second.size, end, second.kind);
      }
    }
    // A run of spaces. Before another character, the run's last space is excluded: it begins the
    // next word (U+0020) or is a word of its own (any other space).
    const char* last = start;
    while (after < end) {
      const Char here = char_at(after, end);
      if (here.kind != CharClass::kSpace) return last == start || ends_text(here) ? after : last;
      last = after;
      after += here.size;
    }
    return after;
  }
};

using Gpt2Scanner = Gpt2Patterns<false>;
using DigitsGpt2Scanner = Gpt2Patterns<true>;

}  // namespace bpe_beam
