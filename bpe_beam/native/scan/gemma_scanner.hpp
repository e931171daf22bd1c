// Words as Gemma's tokens have them, over UTF-8, without a regular-expression engine: a text is cut
// at line breaks and before runs of blanks only.
//    *[^ \r\n]+| +|[\r\n]+
#pragma once

#include <cstddef>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

class GemmaScanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  static std::size_t next(std::string_view text, std::size_t begin) {
    std::size_t at = begin;
    const auto skip = [&](auto is) {
      while (at < text.size() && is(text[at])) ++at;
    };
    if (is_newline(text[begin])) {
      skip(is_newline);
      return at;
    }
    skip([](char c) { return c == ' '; });
    skip([](char c) { return c != ' ' && !is_newline(c); });
    return at;
  }

  /// The positions at which words begin in the 64 bytes at `at`, where a word begins.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    ClassMasks masks;
    classes.ascii(at, masks);
    return gemma_starts(masks);
  }
};

}  // namespace bpe_beam
