// WordPiece's score: exact comparison, and the learner by likelihood against one that counts
// everything again after each merge.
#include "learn/likelihood_queue.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_learner.hpp"

using namespace bpe_beam;

namespace {

using Wide = unsigned __int128;

void ratios() {
  CHECK(compare_ratios(1, 2, 1, 3) > 0);
  CHECK(compare_ratios(1, 3, 1, 2) < 0);
  CHECK(compare_ratios(2, 6, 1, 3) == 0);
  const std::int64_t most = INT64_MAX;
  const Wide square = Wide{static_cast<std::uint64_t>(most)} * static_cast<std::uint64_t>(most);
  CHECK(compare_ratios(most, square, most, square) == 0);
  // They differ in the last of 189 bits only.
  CHECK(compare_ratios(most, square - 1, most, square) > 0);
  CHECK(compare_ratios(most, square, most, square - 1) < 0);
  CHECK(compare_ratios(most - 1, square, most, square) < 0);
  CHECK(compare_ratios(1, (Wide{1} << 64) + 1, 1, Wide{1} << 64) < 0);
  CHECK(compare_ratios(1, (Wide{1} << 64) - 1, 1, Wide{1} << 64) > 0);
  std::mt19937_64 random(3);
  const auto number = [&] { return static_cast<std::int64_t>(random() >> (1 + random() % 63)); };
  for (int i = 0; i < 20'000; ++i) {
    std::int64_t x[6];
    for (std::int64_t& value : x) value = number() + 1 < 1 ? 1 : number() / 2 + 1;
    const Wide a = Wide{static_cast<std::uint64_t>(x[1])} * static_cast<std::uint64_t>(x[2]);
    const Wide b = Wide{static_cast<std::uint64_t>(x[4])} * static_cast<std::uint64_t>(x[5]);
    const auto left = naive_product({x[0], x[4], x[5]});
    const auto right = naive_product({x[3], x[1], x[2]});
    const int expected = left < right ? -1 : left > right ? 1 : 0;
    CHECK(compare_ratios(x[0], a, x[3], b) == expected);
  }
}

/// Many pairs of few tokens, so that scores tie, rise and fall, and heaps are rebuilt.
void random_corpora() {
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t letters = random() % 9 + 1;
    std::vector<std::string> tokens;
    for (std::uint32_t i = 0; i < letters; ++i) tokens.push_back(std::string(1, char('a' + i)));
    for (std::uint32_t i = 0; i < letters; ++i) tokens.push_back("#" + tokens[i]);
    std::vector<NaiveWord> words;
    std::vector<std::uint32_t> symbols;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int64_t> counts;
    for (std::uint32_t n = random() % 40 + 1; n > 0; --n) {
      NaiveWord word{{}, static_cast<std::int64_t>(random() % 4 + 1), {}};
      if (random() % 20 == 0) word.count <<= 45;
      for (std::uint32_t i = 0, size = random() % 9; i < size; ++i) {
        word.symbols.push_back(random() % letters + (i > 0 ? letters : 0));
      }
      symbols.insert(symbols.end(), word.symbols.begin(), word.symbols.end());
      offsets.push_back(static_cast<std::int64_t>(symbols.size()));
      counts.push_back(word.count);
      words.push_back(word);
    }
    for (const TieBreak tie_break :
         {TieBreak::kLowestId, TieBreak::kFirstSeen, TieBreak::kGreatestBytes}) {
      const NaiveRules rules{.vocab_size = tokens.size() + random() % 80,
                             .min_frequency = static_cast<std::int64_t>(random() % 4),
                             .tie_break = tie_break,
                             .score = Score::kLikelihood,
                             .prefix = "#",
                             .max_token_length = random() % 3 ? UINT64_MAX : random() % 6};
      BpeLearner learner({.symbols = symbols,
                          .offsets = offsets,
                          .counts = counts,
                          .tokens = tokens,
                          .spans = {},
                          .prefix = rules.prefix,
                          .max_token_length = rules.max_token_length},
                         {rules.vocab_size, rules.min_frequency, tie_break, rules.score});
      NaiveLearner naive(words, tokens, rules);
      CHECK(same_merges(learn_by_steps(learner, random() % 5 + 1), naive.learn()));
      CHECK(learner.tokens() == naive.tokens());
    }
  }
}

}  // namespace

int main() {
  ratios();
  random_corpora();
}
