// The words that a scanner finds, compared with those expected.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/scanners.hpp"
#include "scan/word_batches.hpp"

namespace bpe_beam {

using Words = std::vector<std::string>;

/// The words that come in batches, on a processor with and without special instructions.
template <typename Scanner>
Words words_in_batches(std::string_view text, const BlockClasses& classes) {
  Words words;
  scan_batches(Scanner{}, text, classes, [&](std::span<const Word> batch) {
    CHECK(!batch.empty() && batch.size() <= kBatchWords);
    for (const Word& word : batch) {
      CHECK(word.begin < word.end && word.end <= text.size());
      words.emplace_back(text.substr(word.begin, word.end - word.begin));
    }
  });
  return words;
}

/// The words one by one. Checks that they come in batches too.
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
      CHECK(words_in_batches<Scanner>(text, BlockClasses{}) == words);
      CHECK(words_in_batches<Scanner>(text, BlockClasses::best()) == words);
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
