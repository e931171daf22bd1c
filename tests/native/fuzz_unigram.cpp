// The passes of Unigram training against their definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"
#include "fuzz_input.hpp"
#include "naive_unigram.hpp"
#include "unigram/best_paths.hpp"
#include "unigram/expected_counts.hpp"
#include "unigram/pruning.hpp"
#include "unigram/seeds.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 400) return 0;  // the naive ones are slow
  FuzzInput input(data, size);
  static const std::vector<std::string> kLetters = {"a", "\xC3\xA9", "\xE2\x96\x81",
                                                    "\xF0\x9F\x98\x80"};
  static const std::vector<std::uint32_t> kFollowers = {'a', 'b', 0xE9, 0xE8};
  const std::size_t letters = input.below(4) + 1;
  const std::size_t longest = input.below(6) + 1;
  std::vector<naive_unigram::Text> texts;
  std::set<std::string> names;
  while (!input.empty() && texts.size() < 12) {
    naive_unigram::Text text{
        {}, (input.below(4) + 1) * (input.below(2) == 0 ? 1 : 1000), kNoFollower};
    for (std::uint32_t left = input.below(9) + 1; left > 0; --left) {
      text.text += kLetters[input.below(static_cast<std::uint32_t>(letters))];
    }
    if (input.below(2) == 0) text.follower = kFollowers[input.below(4)];
    texts.push_back(text);
  }
  // Some bytes are no characters: they are cut out before any other step.
  std::vector<std::uint32_t> kept;
  for (std::uint32_t point = 0; point < 128; ++point) kept.push_back(point);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::size_t covered = 0;
  SegmentCutter(kept, input.below(2) == 0, 5).cut(bytes, [&](std::string_view text, std::uint32_t) {
    CHECK(!text.empty() && text.size() <= 5);
    covered += text.size();
  });
  CHECK(covered == static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(),
                                                          [](char byte) { return byte >= 0; })));
  const auto segments = naive_unigram::segments_of(texts);
  const auto weights = naive_unigram::seeds(texts, longest);
  const auto seeds = find_seeds(segments, longest, 100000, 1);
  CHECK(seeds.size() == weights.size());
  const std::size_t limit = input.below(8);
  const auto few = find_seeds(segments, longest, limit, 2);
  CHECK(few.size() == std::min(limit, seeds.size()));
  const auto weakest = std::min_element(few.begin(), few.end(),
                                        [](const Seed& a, const Seed& b) { return b.before(a); });
  for (const Seed& seed : seeds) {
    const auto same = [&seed](const Seed& other) {
      return other.text() == seed.text() && other.weight() == seed.weight();
    };
    CHECK(std::any_of(few.begin(), few.end(), same) || limit == 0 || weakest->before(seed));
  }
  for (const Seed& seed : seeds) CHECK(weights.at(std::string(seed.text())) == seed.weight());
  for (const auto& text : texts) {
    const auto at = naive_unigram::positions(text.text);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      names.insert(text.text.substr(at[i], at[i + 1] - at[i]));
    }
  }
  for (const Seed& seed : seeds) names.insert(std::string(seed.text()));
  const std::vector<std::string> in_order(names.begin(), names.end());
  const auto pieces = naive_unigram::pieces_of(in_order);
  std::vector<double> probabilities;
  std::vector<std::int64_t> scores;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    probabilities.push_back(std::ldexp(1.0 + input.byte() / 256.0, -1 - input.below(64)));
    scores.push_back(-static_cast<std::int64_t>(input.below(4)));
  }
  const auto sums = expected_counts(pieces, probabilities, segments, 1);
  auto expected = naive_unigram::expected(texts, naive_unigram::by_text(in_order, probabilities));
  for (std::size_t i = 0; i < pieces.size(); ++i) CHECK(sums[i] == expected[in_order[i]]);
  const auto by_name = naive_unigram::by_text(in_order, scores);
  std::map<std::string, std::int64_t> counts;
  for (const auto& text : texts) {
    for (const auto& part : naive_unigram::best_path(text.text, by_name, "").second) {
      counts[part] += text.count;
    }
  }
  const auto in_paths = path_counts(pieces, scores, segments, 1);
  for (std::size_t i = 0; i < pieces.size(); ++i) CHECK(in_paths[i] == counts[in_order[i]]);
  const std::size_t desired = input.below(20);
  const std::size_t target = desired + input.below(20);
  const auto stay = prune({pieces, scores, in_paths, sums, desired, target, 1});
  const auto size_left = static_cast<std::size_t>(std::count(stay.begin(), stay.end(), 1));
  std::size_t characters = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) characters += pieces.is_character(i) ? 1 : 0;
  CHECK(size_left <= std::max(characters, target));
  CHECK(size_left >= std::min(pieces.size(), desired));
  CHECK(estimate(pieces, sums).scores.size() >= characters);
  return 0;
}
