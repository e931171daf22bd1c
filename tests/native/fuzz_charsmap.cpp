// Charsmaps of anything: refused, or applied to any text within its bounds.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "apply_step.hpp"
#include "fuzz_input.hpp"
#include "made_charsmap.hpp"
#include "normalize/precompiled.hpp"
#include "normalize/sentencepiece_normalizer.hpp"

using namespace bpe_beam;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  std::string bytes;
  if (input.below(2) == 0) {
    bytes = made_charsmap({{"a", "b"}, {"é", ""}, {"e\u0301", "éé"}, {std::string(input.bytes(3)), "x"}});
    for (std::uint32_t left = input.below(4); left > 0 && !bytes.empty(); --left) {
      const std::size_t at = (input.byte() << 8 | input.byte()) * std::size_t{31} % bytes.size();
      bytes[at] = static_cast<char>(input.byte());
    }
  } else {
    bytes = std::string(input.bytes(input.byte()));
  }
  const auto flag = [&] { return input.below(2) == 0; };
  const SentencePieceRules rules{flag(), flag(), flag(), flag()};
  const TokenIds symbols{{std::string(input.bytes(2)), 0}, {"a b", 0}};
  const std::string text(input.rest());
  try {
    places_of(SentencePieceNormalizer(bytes, symbols, rules), text);
    places_of(Precompiled(bytes), text);
  } catch (const std::invalid_argument&) {
  } catch (const TextGrowth&) {
  }
  return 0;
}
