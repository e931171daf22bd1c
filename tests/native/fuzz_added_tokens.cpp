// Added tokens of any flags against trying every token at every place.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "fuzz_input.hpp"
#include "naive_added_tokens.hpp"
#include "scan/added_tokens.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 3000) return 0;  // the naive one is slow
  FuzzInput input(data, size);
  std::vector<AddedToken> tokens;
  std::vector<std::uint32_t> allowed;
  for (std::uint32_t left = input.below(8), id = 0; left > 0; --left, ++id) {
    const std::uint32_t flags = input.byte();
    const std::size_t length = input.below(6) + 1;
    // UTF-8, as all that comes from Python is; where no flag looks at characters, any bytes.
    std::string content = input.word(length, "ab< \n");
    const bool any = (flags & 7) == 0 && input.below(2) == 0;
    if (any) content = std::string(input.bytes(length));
    if (!any && input.below(4) == 0) content += "\u3000é";
    if (content.empty()) continue;
    tokens.push_back(
        {content, id, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0});
    if ((flags & 16) != 0) allowed.push_back(id);
  }
  const AddedTokens added(tokens);
  CHECK(added.empty() == tokens.empty());
  std::string text;
  if (input.below(2) == 0) {
    text = input.rest();
  } else {
    constexpr std::string_view kPieces[] = {"a", "b", "<", " ", "\n", "\u3000", "é", "\xE3\x80"};
    while (!input.empty()) text += kPieces[input.below(8)];
  }
  std::vector<NaiveCut> cuts;
  const auto add = [&](std::uint32_t id, const TextView& view) {
    const auto begin = static_cast<std::size_t>(view.bytes.data() - text.data());
    cuts.push_back({id, begin, begin + view.bytes.size()});
  };
  added.extract(
      {text, nullptr}, allowed, [&](const TextView& view) { add(NaiveCut::kPlain, view); }, add);
  CHECK(cuts == naive_segments(tokens, text, allowed));
  return 0;
}
