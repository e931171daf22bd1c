// The learner against one that counts everything again after each merge.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fuzz_input.hpp"
#include "naive_learner.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2000) return 0;  // the naive one is slow
  FuzzInput input(data, size);
  const auto tie_break = static_cast<TieBreak>(input.below(3));
  // In an order that is not that of the bytes.
  const std::string alphabet = std::string("cadbe").substr(0, input.below(5) + 1);
  const auto letters = static_cast<std::uint32_t>(alphabet.size());
  const std::int64_t min_frequency = input.below(4);
  const std::size_t step = input.below(6) + 1;
  std::vector<std::string> tokens;
  // Special tokens first: some that merges make, some (empty) that they cannot make.
  for (std::uint32_t left = input.below(4); left > 0; --left) {
    const std::string special = input.word(input.below(5), alphabet);
    const bool known = std::find(tokens.begin(), tokens.end(), special) != tokens.end();
    if (special.empty() || (special.size() > 1 && !known)) tokens.push_back(special);
  }
  const auto first = static_cast<std::uint32_t>(tokens.size());
  for (const char letter : alphabet) tokens.emplace_back(1, letter);
  const std::size_t vocab_size = tokens.size() + input.below(60);
  std::vector<NaiveWord> words;
  std::vector<std::uint32_t> symbols;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> counts;
  while (!input.empty()) {
    NaiveWord word{{}, static_cast<std::int64_t>(input.below(5)) + 1};
    if (input.below(16) == 0) word.count <<= 40;
    for (std::uint32_t left = input.below(24); left > 0 && !input.empty(); --left) {
      word.symbols.push_back(first + input.below(letters));
    }
    symbols.insert(symbols.end(), word.symbols.begin(), word.symbols.end());
    offsets.push_back(static_cast<std::int64_t>(symbols.size()));
    counts.push_back(word.count);
    words.push_back(std::move(word));
  }
  BpeLearner learner(symbols, offsets, counts, tokens, vocab_size, min_frequency, tie_break);
  const auto expected = naive_learn(words, tokens, vocab_size, min_frequency, tie_break);
  std::size_t learned = 0;
  while (true) {
    const auto merges = learner.learn(step);
    if (merges.empty()) break;
    CHECK(merges.size() <= step);
    for (const LearnedMerge& merge : merges) {
      CHECK(learned < expected.size());
      CHECK(merge.left == expected[learned].left);
      CHECK(merge.right == expected[learned].right);
      CHECK(merge.joined == expected[learned].joined);
      CHECK(merge.count == expected[learned].count);
      ++learned;
    }
  }
  CHECK(learned == expected.size());
  CHECK(learner.tokens() == tokens);
  return 0;
}
