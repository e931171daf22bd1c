// Special tokens against trying every token at every place.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fuzz_input.hpp"
#include "special_tokens.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  std::vector<std::pair<std::string, std::uint32_t>> tokens;
  const bool any_bytes = input.below(2) == 0;
  for (std::uint32_t left = input.below(8), id = 0; left > 0; --left, ++id) {
    const std::size_t length = input.below(6) + 1;
    std::string token = any_bytes ? std::string(input.bytes(length)) : input.word(length, "ab<");
    if (!token.empty()) tokens.emplace_back(std::move(token), id);
  }
  const SpecialTokens specials(tokens);
  const std::string text = any_bytes ? std::string(input.rest()) : input.word(1000, "ab<");
  CHECK(specials.empty() == tokens.empty());
  for (std::size_t from = 0; from <= text.size(); from += 1 + from / 16) {
    std::size_t begin = text.size();
    std::size_t longest = 0;
    std::uint32_t id = 0;
    for (std::size_t at = from; at < text.size() && longest == 0; ++at) {
      for (const auto& token : tokens) {
        if (text.compare(at, token.first.size(), token.first) == 0 &&
            token.first.size() > longest) {
          begin = at;
          longest = token.first.size();
          id = token.second;
        }
      }
    }
    const SpecialTokens::Match match = specials.find(text, from);
    CHECK(match.begin == begin);
    CHECK(match.end == begin + longest);
    CHECK(match.id == id);
  }
  return 0;
}
