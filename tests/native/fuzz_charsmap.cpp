// Charsmaps of anything: refused, or applied to any text within its bounds.
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "apply_step.hpp"
#include "fuzz_input.hpp"
#include "made_charsmap.hpp"
#include "normalize/precompiled.hpp"
#include "normalize/sentencepiece_normalizer.hpp"

using namespace bpe_beam;

namespace {

/// What `SentencePieceNormalizer` makes of a text without a dummy prefix, by a search at each
/// character.
std::string searched(const std::string& bytes, const TokenIds& symbols, SentencePieceRules rules,
                     std::string_view text) {
  std::optional<Charsmap> map;
  if (!bytes.empty()) map.emplace(bytes);
  const ByteTrie trie(symbols);
  std::string spaced;
  while (!text.empty()) {
    std::size_t size = trie.longest(text).size;
    std::string_view found = text.substr(0, size);
    if (const auto match = size == 0 && map ? map->find_longest(text) : Charsmap::Match{};
        match.size > 0) {
      size = match.size;
      found = match.replacement;
    } else if (size == 0) {
      const CodePoint point = decode_utf8(text.data(), text.data() + text.size());
      size = point.size;
      found = point.value == kMalformed ? "\uFFFD" : text.substr(0, size);
    }
    const bool is_after =
        rules.remove_extra_whitespaces && (spaced.empty() || (spaced.back() == ' '));
    while (is_after && found.starts_with(' ')) found.remove_prefix(1);
    spaced += found;
    text.remove_prefix(size);
  }
  const std::string_view space = rules.escape_whitespaces ? "\u2581" : " ";
  std::string out;
  for (const char& byte : spaced) out += byte == ' ' ? space : std::string_view(&byte, 1);
  while (rules.remove_extra_whitespaces && out.ends_with(space)) {
    out.resize(out.size() - space.size());
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  std::string bytes;
  if (input.below(2) == 0) {
    bytes = made_charsmap(
        {{"a", "b"}, {"é", ""}, {"e\u0301", "éé"}, {std::string(input.bytes(3)), "x"}});
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
  std::string text;
  if (flag()) {
    constexpr std::string_view kParts[] = {"a",      "b",  "e", "é",    "\u0301", " ",
                                           "\u2581", "語", "x", "\xE8", "😀"};
    while (!input.empty()) text += kParts[input.below(std::size(kParts))];
  } else {
    text = input.rest();
  }
  try {
    const SentencePieceNormalizer normalizer(bytes, symbols, rules);
    places_of(normalizer, text);
    if (!rules.add_dummy_prefix) {
      CHECK(text_of(normalizer, text) == searched(bytes, symbols, rules, text));
    }
    places_of(Precompiled(bytes), text);
  } catch (const std::invalid_argument&) {
  } catch (const TextGrowth&) {
  }
  return 0;
}
