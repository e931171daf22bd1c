// Models of all kinds on any words, against their definitions; merges found for ranks, too.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "any_model.hpp"
#include "check.hpp"
#include "encode_word.hpp"
#include "fuzz_input.hpp"
#include "naive_pipeline.hpp"
#include "naive_ranks.hpp"

using namespace bpe_beam;

namespace {

void check_ranks(FuzzInput& input) {
  std::vector<std::string> tokens;
  for (std::uint32_t left = input.below(16); left > 0; --left) {
    std::string token = input.word(input.below(6) + 1, "aabc");
    if (token.empty() || std::find(tokens.begin(), tokens.end(), token) != tokens.end()) continue;
    tokens.push_back(std::move(token));
  }
  const BpeMerges merges(merges_of_ranks(tokens), false);
  while (!input.empty()) {
    const std::string word = input.word(input.below(100), "aabc");
    CHECK(by_merges(tokens, merges, word) == naive_by_rank(tokens, word));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 3000) return 0;  // the naive ones are slow
  FuzzInput input(data, size);
  if (input.below(4) == 0) {
    check_ranks(input);
    return 0;
  }
  const AnyModel model = any_model(input);
  while (!input.empty()) {
    const std::string word = any_text(input, input.byte());
    if (!word.empty()) CHECK(encoded(*model.model, word) == encoded(*model.naive, word));
  }
  return 0;
}
