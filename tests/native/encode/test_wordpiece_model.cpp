// WordPiece against the longest match tried from long to short; word level.
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "check.hpp"
#include "encode/wordpiece_model.hpp"
#include "encode_word.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

NaiveWordPiece wordpiece(Vocabulary tokens, std::string prefix = "##", std::uint32_t unk = 0,
                         std::size_t max_characters = 100) {
  NaiveWordPiece naive;
  naive.tokens = std::move(tokens);
  naive.prefix = std::move(prefix);
  naive.unk = unk;
  naive.max_characters = max_characters;
  return naive;
}

WordPieceModel model_of(const NaiveWordPiece& naive) {
  return {token_ids(naive.tokens), naive.prefix, naive.unk, naive.max_characters};
}

Encoded both(const NaiveWordPiece& naive, std::string_view word) {
  const Encoded result = encoded(model_of(naive), word);
  CHECK(result == encoded(naive, word));
  return result;
}

void worked() {
  const NaiveWordPiece naive = wordpiece(
      {{"ty", 1}, {"##m", 2}, {"ProtonX", 3}, {"n", 4}, {"##à", 5}, {"##o", 6}, {"Proton", 7}});
  CHECK((both(naive, "Thả").symbols == Symbols{{0, 5}}));
  CHECK((both(naive, "tym").symbols == Symbols{{1, 2}, {2, 1}}));
  CHECK((both(naive, "ProtonX").symbols == Symbols{{3, 7}}));
  CHECK((both(naive, "nào").symbols == Symbols{{4, 1}, {5, 2}, {6, 1}}));
  // One place without a match, and the whole word is unknown.
  CHECK((both(naive, "ProtonY").symbols == Symbols{{0, 7}}));
  CHECK((both(naive, "\xFF").symbols == Symbols{{0, 1}}));
}

void no_unknown_token() {
  const NaiveWordPiece naive = wordpiece({{"a", 1}}, "##", kNoId);
  CHECK((both(naive, "a").symbols == Symbols{{1, 1}}));
  CHECK((both(naive, "aé") == Encoded{{}, true, 0, 3}));
}

/// Characters, not bytes.
void long_words_are_unknown() {
  const NaiveWordPiece naive = wordpiece({{"é", 1}, {"##é", 2}}, "##", 0, 3);
  CHECK(both(naive, "ééé").symbols.size() == 3);
  CHECK((both(naive, "éééé").symbols == Symbols{{0, 8}}));
  CHECK((both(wordpiece({{"a", 1}}, "##", 0, 0), "a").symbols == Symbols{{0, 1}}));
}

/// A token may be the prefix alone, begin with it, or be empty: nothing matches without a byte.
void prefixes() {
  const NaiveWordPiece odd = wordpiece({{"##", 1}, {"", 2}, {"#", 3}, {"###", 4}, {"##a", 5}});
  CHECK((both(odd, "##").symbols == Symbols{{1, 2}}));
  CHECK((both(odd, "###").symbols == Symbols{{4, 3}}));
  CHECK((both(odd, "##a").symbols == Symbols{{5, 3}}));
  CHECK((both(odd, "#a").symbols == Symbols{{3, 1}, {5, 1}}));
  CHECK((both(odd, "##aa").symbols == Symbols{{5, 3}, {5, 1}}));
  CHECK((both(odd, "a").symbols == Symbols{{0, 1}}));
  const NaiveWordPiece empty = wordpiece({{"a", 1}, {"ab", 2}, {"", 3}}, "");
  CHECK((both(empty, "aaba").symbols == Symbols{{1, 1}, {2, 2}, {1, 1}}));
  // No token begins with it.
  CHECK((both(wordpiece({{"a", 1}}, "@@"), "aa").symbols == Symbols{{0, 2}}));
}

void random_words() {
  std::mt19937 random(10);
  constexpr std::string_view kCharacters[] = {"a", "b", "#", "é", "語", "\x80", "\xC3", "\xA9"};
  std::size_t known = 0;
  for (int round = 0; round < 3000; ++round) {
    NaiveWordPiece naive = wordpiece({}, "##", random() % 8 == 0 ? kNoId : 0, random() % 12 + 1);
    if (random() % 3 == 0) naive.prefix = random() % 2 == 0 ? "" : "é";
    for (std::uint32_t id = random() % 40 + 1; id > 0; --id) {
      std::string token = random() % 2 == 0 ? naive.prefix : "";
      for (std::size_t left = random() % 4; left > 0; --left) token += kCharacters[random() % 5];
      naive.tokens.emplace(token, id);
    }
    const WordPieceModel model = model_of(naive);
    for (int i = 0; i < 20; ++i) {
      std::string word;
      const std::size_t kinds = i < 15 ? 4 : std::size(kCharacters);
      for (std::size_t left = random() % 8 + 1; left > 0; --left) {
        word += kCharacters[random() % kinds];
      }
      const Encoded result = encoded(model, word);
      CHECK(result == encoded(naive, word));
      known += result.symbols.size() > 1;
    }
  }
  CHECK(known > 3000);
}

void a_million_characters() {
  Vocabulary tokens;
  for (std::uint32_t size = 1; size <= 20; ++size) {
    tokens.emplace("##" + std::string(size, 'a'), size);
    tokens.emplace(std::string(size, 'a'), 100 + size);
  }
  const NaiveWordPiece naive = wordpiece(tokens, "##", 0, 10'000'000);
  const WordPieceModel model = model_of(naive);
  CHECK(encoded(model, std::string(1'000'000, 'a')).symbols.size() == 50'000);
  CHECK(encoded(model, std::string(1'000'000, 'a') + "b").symbols.size() == 1);
}

void word_level() {
  NaiveWordLevel naive;
  naive.tokens = {{"word", 1}, {"é", 2}};
  for (const std::uint32_t unk : {0U, kNoId}) {
    naive.unk = unk;
    const WordLevelModel model(token_ids(naive.tokens), unk);
    for (const std::string_view word : {"word", "é", "wor", "words", "\xFF"}) {
      CHECK(encoded(model, word) == encoded(naive, word));
    }
    CHECK(encoded(model, "é") == (Encoded{{{2, 2}}}));
    CHECK(encoded(model, "no").missing == (unk == kNoId));
  }
}

}  // namespace

int main() {
  worked();
  no_unknown_token();
  long_words_are_unknown();
  prefixes();
  random_words();
  a_million_characters();
  word_level();
}
