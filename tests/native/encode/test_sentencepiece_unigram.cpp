// SentencePiece's Unigram: worked sums, and words of many characters.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/sentencepiece_unigram.hpp"
#include "encode_word.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint32_t kSame = ModelState::kSameBytes;
constexpr std::uint32_t kUnk = 99;

SentencePieceUnigram model_of(std::vector<ScoredPiece> pieces,
                              std::vector<std::uint32_t> byte_ids = {}) {
  return {std::move(pieces), kUnk, std::move(byte_ids)};
}

void worked() {
  const SentencePieceUnigram model =
      model_of({{"a", 1, -1, false}, {"b", 2, -1, false}, {"ab", 3, -1.5, false}});
  CHECK((encoded(model, "aba").symbols == Symbols{{3, 2}, {1, 1}}));
  // Of equal sums the one whose last piece begins first.
  const SentencePieceUnigram equal = model_of({{"a", 1, -1, false}, {"aa", 2, -2, false}});
  CHECK((encoded(equal, "aaa").symbols == Symbols{{1, 1}, {2, 2}}));
}

void sums_of_32_bits() {
  const SentencePieceUnigram model = model_of({{"x", 1, -99'999, false},
                                               {"y", 5, -60'000, false},
                                               {"a", 2, -1, false},
                                               {"b", 3, -1, false},
                                               {"ab", 4, -2.001F, false}});
  CHECK((encoded(model, "ab").symbols == Symbols{{2, 1}, {3, 1}}));
  // Behind a large sum the difference is lost, until the sum is taken off.
  CHECK((encoded(model, "xab").symbols == Symbols{{1, 1}, {4, 2}}));
  CHECK((encoded(model, "yyab").symbols == Symbols{{5, 1}, {5, 1}, {2, 1}, {3, 1}}));
}

void user_defined_pieces() {
  const SentencePieceUnigram model = model_of({{"a", 1, -0.04F, false},
                                               {"b", 2, -1, false},
                                               {"abc", 3, -0.01F, false},
                                               {"ab", 4, -9, true},
                                               {"c", 5, -0.2F, false}});
  CHECK((encoded(model, "ab").symbols == Symbols{{4, 2}}));
  CHECK((encoded(model, "abc").symbols == Symbols{{3, 3}}));  // -0.01, and ab c is 0.1 - 0.2
}

void unknown_characters() {
  std::vector<ScoredPiece> pieces{{"a", 1, -1, false}, {"éa", 2, -50, false}};
  CHECK((encoded(model_of(pieces), "aéüa").symbols == Symbols{{1, 1}, {kUnk, 4}, {1, 1}}));
  CHECK((encoded(model_of(pieces), "\xFF").symbols == Symbols{{kUnk, 1}}));
  CHECK((encoded(model_of(pieces), "éa").symbols == Symbols{{2, 3}}));
  std::vector<std::uint32_t> byte_ids(256);
  for (std::uint32_t byte = 0; byte < 256; ++byte) byte_ids[byte] = 1000 + byte;
  CHECK((encoded(model_of(pieces, byte_ids), "aé").symbols ==
         Symbols{{1, 1}, {1000 + 0xC3, 2}, {1000 + 0xA9, kSame}}));
}

void no_normal_piece() {
  const SentencePieceUnigram model = model_of({{"a", 1, 0, true}});
  CHECK((encoded(model, "aba").symbols == Symbols{{1, 1}, {kUnk, 1}, {1, 1}}));
}

/// Encodes several times, as what is cached depends on the sums before it. Returns the ids.
Ids cached(const SentencePieceUnigram& model, const std::string& text) {
  WordCache cache(1 << 12, 1 << 12);
  const Ids ids = ids_of(encoded(model, text).symbols);
  for (int round = 0; round < 3; ++round) CHECK(cached_ids(model, text, cache) == ids);
  return ids;
}

void cached_parts() {
  const SentencePieceUnigram model = model_of({{"▁", 1, -1, false},
                                               {"▁a", 2, -1.5F, false},
                                               {"a", 3, -1, false},
                                               {"b", 4, -3, false},
                                               {"ab", 5, -1.5F, false},
                                               {"▁▁", 6, -2, false}});
  CHECK((cached(model, "▁ab▁a▁ab▁▁a") == Ids{1, 5, 2, 1, 5, 1, 2}));
  // Unknown neighbours are one token, also of two parts, but not of two words.
  CHECK((cached(model, "▁aéé▁ü▁") == Ids{2, kUnk, 1, kUnk, 1}));
  CHECK((cached(model, "é" + std::string(40, 'c')) == Ids{kUnk}));
}

/// Sums that differ by less than what is lost behind a large one.
void cached_parts_behind_large_sums() {
  const SentencePieceUnigram model = model_of({{"▁x", 1, -49'999, false},
                                               {"▁a", 2, -1, false},
                                               {"b", 3, -1, false},
                                               {"▁ab", 4, -2.001F, false},
                                               {"▁", 5, -9, false}});
  CHECK((cached(model, "▁ab▁x▁ab▁x▁ab▁x▁ab▁ab") == Ids{2, 3, 1, 4, 1, 2, 3, 1, 4, 4}));
  // What is cached with a small sum does not count with a large one.
  const SentencePieceUnigram small = model_of({{"▁x", 1, -99, false},
                                               {"▁a", 2, -1, false},
                                               {"b", 3, -1, false},
                                               {"▁ab", 4, -2.001F, false},
                                               {"▁", 5, -9, false}});
  std::string text = "▁ab";
  for (int word = 0; word < 600; ++word) text += "▁x";
  const Ids ids = cached(small, text + "▁ab");
  CHECK(ids.size() == 603 && ids[1] == 3 && ids.back() == 4);
}

void a_million_characters() {
  std::vector<ScoredPiece> pieces;
  for (std::uint32_t size = 1; size <= 20; ++size) {
    pieces.push_back({std::string(size, 'a'), size, -1, false});
  }
  const SentencePieceUnigram model = model_of(pieces);
  CHECK(encoded(model, std::string(1'000'000, 'a')).symbols.size() == 50'000);
  CHECK((encoded(model, std::string(1'000'000, 'b')).symbols == Symbols{{kUnk, 1'000'000}}));
}

}  // namespace

int main() {
  worked();
  sums_of_32_bits();
  user_defined_pieces();
  unknown_characters();
  no_normal_piece();
  cached_parts();
  cached_parts_behind_large_sums();
  a_million_characters();
}
