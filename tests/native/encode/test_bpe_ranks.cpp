// Merges found for ranks: a list of them does what merging by rank does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "encode/bpe_ranks.hpp"
#include "naive_ranks.hpp"

using namespace bpe_beam;

namespace {

using Tokens = std::vector<std::string>;

/// All words of up to `longest` letters of an alphabet.
Tokens all_words(std::string_view alphabet, std::size_t longest) {
  Tokens words = {""};
  for (std::size_t done = 0; words[done].size() < longest; ++done) {
    for (const char letter : alphabet) words.push_back(words[done] + letter);
  }
  return words;
}

/// All pairs of tokens that make a token, in the order of what they make, otherwise in any order.
std::vector<MergeRow> all_pairs(const Tokens& tokens, std::mt19937& random) {
  std::vector<MergeRow> rows;
  const auto number = [&](const std::string& token) {
    return static_cast<std::uint32_t>(std::find(tokens.begin(), tokens.end(), token) -
                                      tokens.begin());
  };
  for (std::uint32_t joined = 0; joined < tokens.size(); ++joined) {
    const auto first = static_cast<std::ptrdiff_t>(rows.size());
    for (std::size_t cut = 1; cut < tokens[joined].size(); ++cut) {
      const std::uint32_t left = number(tokens[joined].substr(0, cut));
      const std::uint32_t right = number(tokens[joined].substr(cut));
      if (left < tokens.size() && right < tokens.size()) rows.push_back({left, right, joined});
    }
    std::shuffle(rows.begin() + first, rows.end(), random);
  }
  return rows;
}

/// Checks the merges of some tokens on words; returns whether a token is made of a later one.
bool check(const Tokens& tokens, const Tokens& words, std::mt19937& random) {
  const std::vector<MergeRow> found = merges_of_ranks(tokens);
  bool later = false;
  for (const MergeRow& row : found) {
    CHECK(tokens.at(row.left) + tokens.at(row.right) == tokens.at(row.joined));
    later = later || row.left > row.joined || row.right > row.joined;
  }
  CHECK(std::adjacent_find(found.begin(), found.end(), [](const MergeRow& a, const MergeRow& b) {
          return a.joined >= b.joined;
        }) == found.end());
  const BpeMerges merges(found, false);
  const BpeMerges all(all_pairs(tokens, random), false);
  for (const std::string& word : words) {
    const Tokens expected = naive_by_rank(tokens, word);
    CHECK(by_merges(tokens, merges, word) == expected);
    CHECK(by_merges(tokens, all, word) == expected);
  }
  return later;
}

bool same(const std::vector<MergeRow>& a, const std::vector<MergeRow>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.left == y.left && x.right == y.right && x.joined == y.joined;
  });
}

void worked() {
  const Tokens words = all_words("abc", 6);
  std::mt19937 random(1);
  for (const Tokens& tokens : std::vector<Tokens>{{}, {"a", "b"}, {"ab", "a"}}) {
    CHECK(!check(tokens, words, random));
    CHECK(merges_of_ranks(tokens).empty());
  }
  CHECK(same(merges_of_ranks({"a", "b", "ab", "aba"}), {{0, 1, 2}, {2, 0, 3}}));
  // Two ways to make a token, of which one is gone.
  CHECK(same(merges_of_ranks({"a", "b", "bb", "ab", "abb"}), {{1, 1, 2}, {0, 1, 3}, {0, 2, 4}}));
  // "ba" is never left of "aba": nothing makes it, and no merge stands for it.
  CHECK(!check({"a", "b", "ab", "ba", "abab"}, words, random));
  // A token that is made of one of higher rank.
  const Tokens odd = {"a", "b", "abb", "ab"};
  CHECK(check(odd, words, random));
  CHECK(same(merges_of_ranks(odd), {{3, 1, 2}, {0, 1, 3}}));
  CHECK(naive_by_rank(odd, "abb") == Tokens{"abb"});
  CHECK(naive_by_rank(odd, "abab") == (Tokens{"ab", "ab"}));
  // A byte that is no token.
  CHECK(!check({"a", "ab", "aa"}, words, random));
}

/// Tokens as learning makes them: each of two that were there, in a text's words or anywhere.
Tokens learned(std::mt19937& random, std::string_view alphabet) {
  Tokens tokens;
  for (const char letter : alphabet) tokens.emplace_back(1, letter);
  for (std::size_t left = random() % 10; left > 0; --left) {
    std::string token = tokens[random() % tokens.size()] + tokens[random() % tokens.size()];
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

/// Any words at all.
Tokens arbitrary(std::mt19937& random, std::string_view alphabet) {
  Tokens tokens;
  for (std::size_t left = random() % 14; left > 0; --left) {
    std::string token;
    for (std::size_t size = random() % 6 + 1; size > 0; --size) {
      token += alphabet[random() % alphabet.size()];
    }
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(token);
  }
  for (const char letter : alphabet) {
    const std::string byte(1, letter);
    if (random() % 10 == 0) continue;  // sometimes one is missing
    if (std::find(tokens.begin(), tokens.end(), byte) == tokens.end()) {
      tokens.insert(tokens.begin(), byte);
    }
  }
  return tokens;
}

void random_vocabularies() {
  std::mt19937 random(12);
  const Tokens words_of_two = all_words("ab", 7);
  const Tokens words_of_three = all_words("abc", 4);
  std::size_t made_of_later = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const bool two = round % 2 == 0;
    const std::string_view alphabet = two ? "ab" : "abc";
    Tokens tokens = round % 4 < 2 ? learned(random, alphabet) : arbitrary(random, alphabet);
    if (round % 8 >= 4) std::shuffle(tokens.begin(), tokens.end(), random);
    Tokens words;
    for (const std::string& word : two ? words_of_two : words_of_three) {
      if (random() % 4 == 0) words.push_back(word);
    }
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (std::size_t size = random() % 60; size > 0; --size) {
        word += alphabet[random() % alphabet.size()];
      }
      words.push_back(word);
    }
    made_of_later += check(tokens, words, random);
  }
  CHECK(made_of_later > kRounds / 20);
}

/// Time and memory that do not grow with the square of a token.
void long_tokens() {
  Tokens tokens = {"a", "b"};
  for (std::size_t size = 2; size <= 500'000; size *= 2) tokens.emplace_back(size, 'a');
  tokens.push_back(std::string(1'000'000, 'a') + "b");
  CHECK(merges_of_ranks(tokens).size() == tokens.size() - 3);
}

}  // namespace

int main() {
  worked();
  random_vocabularies();
  long_tokens();
}
