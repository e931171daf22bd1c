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
  NaiveRules rules{.vocab_size = 0,
                   .min_frequency = static_cast<std::int64_t>(input.below(4)),
                   .tie_break = static_cast<TieBreak>(input.below(3)),
                   .score = static_cast<Score>(input.below(2)),
                   .prefix = {}};
  // In an order that is not that of the bytes.
  const std::string alphabet = std::string("cadbe").substr(0, input.below(5) + 1);
  const auto letters = static_cast<std::uint32_t>(alphabet.size());
  if (input.below(3) == 0) rules.max_token_length = input.below(9);
  const bool decorated = input.below(2) == 0;
  // A prefix, and symbols, that are made of the letters themselves.
  if (decorated) rules.prefix = input.word(input.below(3), alphabet);
  const std::size_t step = input.below(6) + 1;
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& token) {
    const bool known = std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    if (!known) tokens.push_back(token);
  };
  // Special tokens first: some that merges make, some (empty) that they cannot make.
  for (std::uint32_t left = input.below(4); left > 0; --left) {
    const std::string special = input.word(input.below(5), alphabet);
    if (special.empty()) tokens.emplace_back();
    if (special.size() > 1) add(special);
  }
  const auto first = static_cast<std::uint32_t>(tokens.size());
  for (const char letter : alphabet) add(std::string(1, letter));
  if (decorated) {
    for (std::uint32_t left = input.below(5); left > 0; --left) {
      const std::string symbol = input.word(input.below(4), alphabet);
      if (!symbol.empty()) add(symbol);
    }
  }
  const auto symbol_kinds = decorated ? static_cast<std::uint32_t>(tokens.size()) - first : letters;
  rules.vocab_size = tokens.size() + input.below(60);
  const bool with_spans = decorated && input.below(2) == 0;
  std::vector<NaiveWord> words;
  std::vector<std::uint32_t> symbols;
  std::vector<std::uint32_t> spans;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> counts;
  while (!input.empty()) {
    NaiveWord word{{}, static_cast<std::int64_t>(input.below(5)) + 1, {}};
    if (input.below(16) == 0) word.count <<= 40;
    for (std::uint32_t left = input.below(24); left > 0 && !input.empty(); --left) {
      word.symbols.push_back(first + input.below(symbol_kinds));
      if (!with_spans) continue;
      spans.push_back(input.below(3) + 1);
      word.spans.push_back(spans.back());
    }
    symbols.insert(symbols.end(), word.symbols.begin(), word.symbols.end());
    offsets.push_back(static_cast<std::int64_t>(symbols.size()));
    counts.push_back(word.count);
    words.push_back(std::move(word));
  }
  BpeLearner learner({.symbols = symbols,
                      .offsets = offsets,
                      .counts = counts,
                      .tokens = tokens,
                      .spans = spans,
                      .prefix = rules.prefix,
                      .max_token_length = rules.max_token_length},
                     {rules.vocab_size, rules.min_frequency, rules.tie_break, rules.score});
  NaiveLearner naive(std::move(words), std::move(tokens), rules);
  const auto expected = naive.learn();
  CHECK(same_merges(learn_by_steps(learner, step), expected));
  CHECK(learner.tokens() == naive.tokens());
  return 0;
}
