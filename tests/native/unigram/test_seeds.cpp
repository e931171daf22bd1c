// Seeds, against all substrings.
#include "unigram/seeds.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"

using namespace bpe_beam;
using namespace naive_unigram;

namespace {

void equals_all_substrings() {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const auto texts = random_texts(random, random() % 20, random() % 12 + 1, random() % 6 + 1);
    const std::size_t longest = random() % 7 + 1;
    std::vector<std::pair<std::string, Wide>> expected;
    for (const auto& seed : naive_unigram::seeds(texts, longest)) expected.push_back(seed);
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 8;
    if (expected.size() > limit) expected.resize(limit);
    std::sort(expected.begin(), expected.end());
    const auto segments = segments_of(texts);
    const auto seeds = find_seeds(segments, longest, limit, random() % 4);
    CHECK(seeds.size() == expected.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      CHECK(seeds[i].text() == expected[i].first);
      CHECK(seeds[i].weight() == expected[i].second);
    }
  }
}

void a_text_is_no_other_one_that_zeros_follow() {
  std::vector<std::string> texts;
  for (char letter = 'c'; letter <= 'z'; ++letter) texts.emplace_back(2, letter);
  std::vector<Segment> segments;
  const auto add = [&segments](const std::string& text, std::int64_t count) {
    segments.push_back({text.data(), static_cast<std::uint32_t>(text.size()), kNoFollower, count});
  };
  for (const std::string& text : texts) add(text, 1000);
  const std::string zeros = std::string("ab") + std::string(6, '\0');
  const std::string other = {'a', 'b', '\0', 'c'};
  const std::string shorter = "ab";
  add(zeros, 1);
  add(shorter, 3);
  add(other, 10000);
  const auto seeds = find_seeds(segments, 16, 10, 1);
  CHECK(seeds[2].text() == zeros.substr(0, 3));
  CHECK(seeds[2].weight() == 3 * 10001);
}

void weights_exceed_64_bits() {
  const std::string text(40, 'a');
  const std::vector<Segment> segments = {{text.data(), 40, kNoFollower, INT64_MAX / 40}};
  for (const Seed& seed : find_seeds(segments, 16, 100, 1)) {
    CHECK(seed.weight() == static_cast<Wide>(INT64_MAX / 40) * (41 - seed.size) * seed.size);
  }
}

void takes_linear_time() {
  const std::string text(4096, 'a');
  const std::vector<Segment> segments(200, {text.data(), 4096, kNoFollower, 1});
  CHECK(find_seeds(segments, 512, 1000, 1).size() == 511);
}

}  // namespace

int main() {
  equals_all_substrings();
  a_text_is_no_other_one_that_zeros_follow();
  weights_exceed_64_bits();
  takes_linear_time();
}
