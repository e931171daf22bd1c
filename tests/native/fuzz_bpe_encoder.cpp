// The encoder against one that follows the definition word for word.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fuzz_input.hpp"
#include "naive_encoder.hpp"

using namespace bpe_beam;

namespace {

struct Result {
  std::vector<std::uint32_t> ids;
  bool missing = false;
  std::size_t offset = 0;
  bool operator==(const Result&) const = default;
};

template <typename Encode>
Result result_of(Encode encode) {
  Result result;
  try {
    encode(result.ids);
  } catch (const MissingByte& missing) {
    result = {{}, true, missing.offset};
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 3000) return 0;  // the naive one is slow
  FuzzInput input(data, size);
  NaiveEncoder naive;
  for (std::uint32_t byte = 0; byte < 256; ++byte) naive.byte_ids.push_back(byte ^ 0x55);
  if (input.below(4) == 0) naive.byte_ids[input.byte()] = BpeModel::kNoId;
  // Any rows at all: pairs twice, ids made in several ways, tokens that become each other.
  std::vector<std::uint32_t> known;
  for (const char letter : {'a', 'b', ' ', '<'}) {
    known.push_back(static_cast<std::uint32_t>(letter) ^ 0x55);
  }
  for (std::uint32_t left = input.below(30); left > 0; --left) {
    const auto any = [&] { return known[input.below(static_cast<std::uint32_t>(known.size()))]; };
    const std::uint32_t joined =
        input.below(4) == 0 ? any() : 1000 + static_cast<std::uint32_t>(known.size());
    const MergeRow row{any(), any(), joined};
    naive.merges.push_back(row);
    known.push_back(joined);
  }
  std::vector<std::uint32_t> allowed;
  for (std::uint32_t left = input.below(4), id = 5000; left > 0; --left, ++id) {
    const std::string special = input.word(input.below(4) + 1, "ab <");
    if (special.empty()) continue;
    naive.specials.emplace_back(special, id);
    if (input.below(2) == 0) allowed.push_back(id);
  }
  const BpeModel model(naive.merges, std::span<const std::uint32_t, 256>(naive.byte_ids),
                       SpecialTokens(naive.specials));
  BpeEncodingState state(input.below(4) * 100);
  while (!input.empty()) {
    const std::uint32_t kind = input.below(4);
    const std::size_t length = input.byte();
    // Any bytes, one long word, or words and special tokens.
    const std::string text = kind == 0   ? std::string(input.bytes(length))
                             : kind == 1 ? input.word(length, "ab")
                                         : input.word(length, "aabb ab<");
    const Result expected =
        result_of([&](std::vector<std::uint32_t>& ids) { ids = naive.encode(text, allowed); });
    // Twice: the second time the words come out of the cache.
    for (int round = 0; round < 2; ++round) {
      CHECK(result_of([&](std::vector<std::uint32_t>& ids) {
              model.encode(text, allowed, state, ids);
            }) == expected);
    }
  }
  return 0;
}
