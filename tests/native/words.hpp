// The words that a scanner finds, compared with those expected.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/scanners.hpp"

namespace bpe_beam {

using Words = std::vector<std::string>;

template <typename Scanner>
Words words_of(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::string_view text = copy.view();
  Words words;
  for (std::size_t at = 0;;) {
    const Word word = Scanner::next(text, at);
    CHECK(word.begin >= at && word.begin <= word.end && word.end <= text.size());
    if (word.begin == word.end) {
      CHECK(word.begin == text.size());
      return words;
    }
    words.emplace_back(text.substr(word.begin, word.end - word.begin));
    at = word.end;
  }
}

template <typename Scanner>
bool gives(std::string_view text, const Words& expected) {
  const Words found = words_of<Scanner>(text);
  if (found == expected) return true;
  for (const std::string& word : found) std::fprintf(stderr, "[%s]", word.c_str());
  std::fprintf(stderr, "\n");
  return false;
}

}  // namespace bpe_beam
