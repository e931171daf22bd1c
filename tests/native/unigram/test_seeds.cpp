// Seeds, against all substrings.
#include "unigram/seeds.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_unigram.hpp"
#include "text/text.hpp"

using namespace bpe_beam;
using namespace naive_unigram;

namespace {

void check_seeds(const std::vector<Text>& texts, std::size_t longest, std::size_t limit,
                 std::size_t threads) {
  std::vector<std::pair<std::string, Wide>> expected;
  for (const auto& seed : naive_unigram::seeds(texts, longest)) expected.push_back(seed);
  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (expected.size() > limit) expected.resize(limit);
  std::sort(expected.begin(), expected.end());
  const auto segments = segments_of(texts);
  const auto seeds = find_seeds(segments, longest, limit, threads);
  CHECK(seeds.size() == expected.size());
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    CHECK(seeds[i].text() == expected[i].first);
    CHECK(seeds[i].weight() == expected[i].second);
  }
}

void equals_all_substrings() {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    const auto texts = random_texts(random, random() % 20, random() % 12 + 1, random() % 6 + 1);
    const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 8;
    check_seeds(texts, random() % 10 + 1, limit, random() % 4);
  }
}

void equals_all_substrings_of_texts_that_begin_alike() {
  // Eight bytes are compared at once: they end in a character whose first bytes others have too.
  static const std::vector<std::uint32_t> kLetters = {0x5E73, 0x5E74, 0x416, 0x418, 0xE9, 0xE8};
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string start;
    for (std::size_t left = 5 + random() % 3; left > 0; --left) start += "12"[random() % 2];
    const std::size_t pair = random() % 3 * 2;
    const std::uint32_t after = kLetters[pair + random() % 2];
    std::vector<Text> texts;
    for (int i = 0; i < 30; ++i) {
      Text text{start, static_cast<std::int64_t>(random() % 6 + 1), kNoFollower};
      if (i % 3 == 0) {
        text = {std::string(2, static_cast<char>('c' + i / 3)), 2000, kNoFollower};
      } else if (i % 3 == 1) {
        text = {(random() % 2 == 0 ? "x" : "") + start, 1500, after};
      } else {
        append_utf8(kLetters[pair + random() % 2], text.text);
        if (random() % 2 == 0) append_utf8(kLetters[random() % 6], text.text);
      }
      texts.push_back(std::move(text));
    }
    check_seeds(texts, 8 + random() % 3, random() % 8, 1 + random() % 3);
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
  equals_all_substrings_of_texts_that_begin_alike();
  a_text_is_no_other_one_that_zeros_follow();
  weights_exceed_64_bits();
  takes_linear_time();
}
