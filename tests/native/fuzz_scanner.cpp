// The scanner against the pattern, taken literally: alternatives in order, backtracking and all.
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "fuzz_input.hpp"
#include "scan/gpt2_scanner.hpp"

using namespace bpe_beam;

namespace {

struct Character {
  std::uint32_t value;  // kMalformed for a byte that is not UTF-8
  CharClass kind;
  std::size_t end;  // in bytes
};

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> characters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    at += point.size;
    const CharClass kind = point.value == kMalformed ? CharClass::kOther : char_class(point.value);
    characters.push_back({point.value, kind, at});
  }
  return characters;
}

/// Where the match of the pattern that begins at character `at` ends.
std::size_t match(const std::vector<Character>& text, std::size_t at) {
  const auto is = [&](std::size_t i, char c) {
    return i < text.size() && text[i].value == static_cast<std::uint32_t>(c);
  };
  const auto run = [&](std::size_t i, CharClass kind) {
    while (i < text.size() && text[i].kind == kind) ++i;
    return i;
  };
  if (is(at, '\'')) {
    for (const char c : {'s', 'd', 'm', 't'}) {
      if (is(at + 1, c)) return at + 2;
    }
    if (is(at + 1, 'l') && is(at + 2, 'l')) return at + 3;
    if (is(at + 1, 'v') && is(at + 2, 'e')) return at + 3;
    if (is(at + 1, 'r') && is(at + 2, 'e')) return at + 3;
  }
  for (const CharClass kind : {CharClass::kLetter, CharClass::kNumber, CharClass::kOther}) {
    // ` ?` takes the blank if there is one, and gives it back if nothing follows.
    if (is(at, ' ') && run(at + 1, kind) > at + 1) return run(at + 1, kind);
    if (run(at, kind) > at) return run(at, kind);
  }
  const std::size_t spaces = run(at, CharClass::kSpace);
  for (std::size_t end = spaces; end > at; --end) {
    if (end == text.size() || text[end].kind == CharClass::kSpace) return end;  // (?!\S)
  }
  return spaces;
}

void check(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::string_view text = copy.view();
  const std::vector<Character> characters = characters_of(text);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < characters.size();) {
    at = match(characters, at);
    const std::size_t end = Gpt2Scanner::next(text, begin);
    CHECK(end > begin);
    CHECK(end == characters[at - 1].end);
    begin = end;
  }
  CHECK(begin == text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  if (input.below(2) == 0) {
    check(input.rest());
    return 0;
  }
  // A text of what the pattern makes something of.
  constexpr std::string_view kPieces[] = {
      "'",  "l", "v", "r",    "e",       "s",   " ",   "\n",     "\u3000", "é",
      "語", "7", "!", "\xE3", "abcdefg", "'ll", "'re", "\u0085", "\u0301", "ſ"};
  std::string text;
  while (!input.empty()) text += kPieces[input.below(std::size(kPieces))];
  check(text);
  return 0;
}
