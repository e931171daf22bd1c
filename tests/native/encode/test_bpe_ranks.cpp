// Merges found for ranks: a list of them does what merging by rank does, or they are doubtful.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "encode/bpe_ranks.hpp"
#include "check.hpp"
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

/// Checks the merges of some tokens on words; whether one token is doubtful.
bool doubtful(const Tokens& tokens, const Tokens& words) {
  const RankMerges found = merges_of_ranks(tokens);
  CHECK(found.doubtful <= tokens.size());
  for (const MergeRow& row : found.rows) {
    CHECK(tokens.at(row.left) + tokens.at(row.right) == tokens.at(row.joined));
  }
  CHECK(std::is_sorted(found.rows.begin(), found.rows.end(),
                       [](const MergeRow& a, const MergeRow& b) { return a.joined < b.joined; }));
  const bool by_token = found.doubtful < tokens.size();
  const BpeMerges merges(found.rows, by_token);
  for (const std::string& word : words) {
    CHECK(by_merges(tokens, merges, word) == naive_by_rank(tokens, word));
  }
  return by_token;
}

bool same(const std::vector<MergeRow>& a, const std::vector<MergeRow>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.left == y.left && x.right == y.right && x.joined == y.joined;
  });
}

void worked() {
  const Tokens words = all_words("abc", 6);
  CHECK(!doubtful({}, words) && !doubtful({"a", "b"}, words) && !doubtful({"ab", "a"}, words));
  CHECK(same(merges_of_ranks({"a", "b", "ab", "aba"}).rows, {{0, 1, 2}, {2, 0, 3}}));
  // Two ways to make a token, of which one is gone.
  CHECK(same(merges_of_ranks({"a", "b", "bb", "ab", "abb"}).rows,
             {{1, 1, 2}, {0, 1, 3}, {0, 2, 4}}));
  // "ba" is never left of "aba": nothing makes it, and no merge stands for it.
  CHECK(!doubtful({"a", "b", "ab", "ba", "abab"}, words));
  // A token that is made of one of higher rank.
  const Tokens odd = {"a", "b", "abb", "ab"};
  CHECK(doubtful(odd, words));
  CHECK(merges_of_ranks(odd).doubtful == 2);
  CHECK(naive_by_rank(odd, "abb") == Tokens{"abb"});
  CHECK(naive_by_rank(odd, "abab") == (Tokens{"ab", "ab"}));
  // A byte that is no token.
  CHECK(!doubtful({"a", "ab", "aa"}, words));
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
  std::size_t doubtful_ones = 0;
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
    doubtful_ones += doubtful(tokens, words);
  }
  CHECK(doubtful_ones > kRounds / 20 && doubtful_ones < kRounds / 2);
}

/// Time and memory that do not grow with the square of a token.
void long_tokens() {
  Tokens tokens = {"a", "b"};
  for (std::size_t size = 2; size <= 500'000; size *= 2) tokens.emplace_back(size, 'a');
  tokens.push_back(std::string(1'000'000, 'a') + "b");
  const RankMerges found = merges_of_ranks(tokens);
  CHECK(found.doubtful == tokens.size() && found.rows.size() == tokens.size() - 3);
}

}  // namespace

int main() {
  worked();
  random_vocabularies();
  long_tokens();
}
