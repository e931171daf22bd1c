// Unigram against all ways tried piece by piece.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/unigram_model.hpp"
#include "encode_word.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint32_t kSame = ModelState::kSameBytes;

Encoded both(const NaiveUnigram& naive, std::string_view word) {
  const Encoded result = encoded(unigram_model(naive), word);
  CHECK(result == encoded(naive, word));
  return result;
}

NaiveUnigram unigram(std::vector<std::pair<std::string, double>> pieces, std::uint32_t unk = 0) {
  NaiveUnigram naive;
  naive.pieces = std::move(pieces);
  naive.unk = unk;
  return naive;
}

void worked() {
  const NaiveUnigram naive =
      unigram({{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -1.5}, {"ba", -3}});
  CHECK((both(naive, "ab").symbols == Symbols{{3, 2}}));
  CHECK((both(naive, "aba").symbols == Symbols{{3, 2}, {1, 1}}));  // -2.5, and a ba is -4
  CHECK((both(naive, "aéüb").symbols == Symbols{{1, 1}, {0, 4}, {2, 1}}));
  CHECK((both(naive,
              "\xFF"
              "a")
             .symbols == Symbols{{0, 1}, {1, 1}}));
}

void of_equal_sums_the_longer_last_piece() {
  const NaiveUnigram naive = unigram({{"<unk>", 0}, {"a", -1}, {"aa", -2}});
  CHECK((both(naive, "aa").symbols == Symbols{{2, 2}}));
  CHECK((both(naive, "aaa").symbols == Symbols{{1, 1}, {2, 2}}));
}

void unknown_characters_that_are_a_piece() {
  // Two unknown characters cost less than the piece of both.
  const NaiveUnigram naive = unigram({{"<unk>", 100}, {"xy", 100}, {"a", 100}});
  CHECK((both(naive, "xya").symbols == Symbols{{1, 2}, {2, 1}}));
  // The unknown piece in the text, and an unknown character beside it.
  CHECK((both(naive, "<unk>").symbols == Symbols{{0, 5}}));
  CHECK((both(naive, "<unk>é").symbols == Symbols{{0, 7}}));
}

void bytes_of_unknown_characters() {
  NaiveUnigram naive = unigram({{"<unk>", 0}, {"a", -1}, {"<0xC3>", -9}, {"<0xA9>", -9}});
  naive.byte_ids.assign(256, kNoId);
  naive.byte_ids[0xC3] = 2;
  naive.byte_ids[0xA9] = 3;
  CHECK((both(naive, "aé").symbols == Symbols{{1, 1}, {2, 2}, {3, kSame}}));
  CHECK((both(naive, "éé").symbols == Symbols{{2, 4}, {3, kSame}, {2, kSame}, {3, kSame}}));
  CHECK((both(naive, "éz").symbols == Symbols{{0, 3}}));  // z has no byte
}

void no_unknown_piece() {
  const NaiveUnigram naive = unigram({{"a", -1}, {"éa", -1}}, kNoId);
  CHECK((both(naive, "aa").symbols == Symbols{{0, 1}, {0, 1}}));
  CHECK((both(naive, "aé") == Encoded{{}, true, 1, 3}));
  CHECK((both(naive, "éa") == Encoded{{}, true, 0, 2}));  // before the piece is seen
}

void a_million_characters() {
  std::vector<std::pair<std::string, double>> pieces{{"<unk>", 0}};
  for (std::size_t size = 1; size <= 20; ++size) pieces.emplace_back(std::string(size, 'a'), -1);
  const UnigramModel model = unigram_model(unigram(pieces));
  CHECK(encoded(model, std::string(1'000'000, 'a')).symbols.size() == 50'000);
  CHECK(encoded(model, std::string(1'000'000, 'b')).symbols == Symbols{{0, 1'000'000}});
}

void random_words() {
  std::mt19937 random(3);
  const auto any = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  constexpr std::string_view kLetters[] = {"a", "b", "c", "é", "語"};
  const auto text = [&](std::uint32_t most) {
    std::string made;
    for (std::uint32_t size = any(most) + 1; size > 0; --size) made += kLetters[any(5)];
    return made;
  };
  for (int round = 0; round < 300; ++round) {
    NaiveUnigram naive = unigram({{"<unk>", 0}});
    for (std::uint32_t left = any(20); left > 0; --left) {
      naive.pieces.emplace_back(text(4), -0.5 * any(12));
    }
    if (any(5) == 0) naive.unk = kNoId;
    const UnigramModel model = unigram_model(naive);
    for (int i = 0; i < 20; ++i) {
      const std::string word = text(30);
      CHECK(encoded(model, word) == encoded(naive, word));
    }
  }
}

}  // namespace

int main() {
  worked();
  of_equal_sums_the_longer_last_piece();
  unknown_characters_that_are_a_piece();
  bytes_of_unknown_characters();
  no_unknown_piece();
  a_million_characters();
  random_words();
}
