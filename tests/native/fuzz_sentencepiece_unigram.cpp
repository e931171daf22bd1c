// SentencePiece's Unigram with any pieces and scores: the ids of cached parts are those of the
// whole text, whose sums are added one by one.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/sentencepiece_unigram.hpp"
#include "encode_word.hpp"
#include "fuzz_input.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint32_t kUnk = 99;

std::string any_characters(FuzzInput& input, std::size_t count) {
  constexpr std::string_view kCharacters[] = {"a", "b", "c", "▁", "▁", "é", "語", "\xFF", "\xE2"};
  std::string text;
  while (count-- > 0 && !input.empty()) text += kCharacters[input.below(std::size(kCharacters))];
  return text;
}

SentencePieceUnigram own_unigram(FuzzInput& input) {
  // Equal sums, sums that differ by less than rounding, and sums that are taken off.
  constexpr float kScores[] = {0,     -1,      -1.5F,  -2,      -2.001F,  -3.0000005F, -7,
                               -0.1F, -30'000, -1e30F, -12.25F, -6.0001F, 4,           -9};
  constexpr float kCommon[] = {-1, -2, -3, -2.0001F};
  const bool is_common = input.below(2) == 0;
  std::vector<ScoredPiece> pieces;
  Vocabulary known;
  for (std::uint32_t left = input.below(40); left > 0; --left) {
    const std::string text = any_characters(input, 1 + input.below(5));
    if (text.empty() || !known.emplace(text, left).second) continue;
    const float score = is_common ? kCommon[input.below(std::size(kCommon))]
                                  : kScores[input.below(std::size(kScores))];
    pieces.push_back({text, left, score, input.below(16) == 0});
  }
  std::vector<std::uint32_t> byte_ids;
  if (input.below(3) == 0) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) byte_ids.push_back(1000 + byte);
  }
  return {pieces, kUnk, std::move(byte_ids)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const SentencePieceUnigram model = own_unigram(input);
  const std::size_t cache_bytes = input.below(4) * std::size_t{500};
  WordCache cache(cache_bytes, cache_bytes);
  while (!input.empty()) {
    std::string text = any_characters(input, input.byte());
    if (text.empty()) continue;
    // Large sums need long texts.
    const std::string once = text;
    std::size_t times = input.below(8) == 0 ? input.byte() : 0;
    for (; times > 0 && text.size() < 3000; --times) text += once;
    const Ids expected = ids_of(encoded(model, text).symbols);
    for (int round = 0; round < 2; ++round) CHECK(cached_ids(model, text, cache) == expected);
  }
  return 0;
}
