// The scanners of cl100k's and o200k's families against their patterns, taken literally:
// alternatives in order, backtracking and all. Of the others, that they find every word and stay in
// the text.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_input.hpp"
#include "words.hpp"

using namespace bpe_beam;

namespace {

struct Character {
  std::uint32_t value;  // kMalformed for a byte that is not UTF-8
  std::uint16_t bits;
  std::size_t end;  // in bytes
};

using Text = std::vector<Character>;

Text characters_of(std::string_view text) {
  Text characters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    at += point.size;
    const bool malformed = point.value == kMalformed;
    characters.push_back({point.value, malformed ? std::uint16_t{0} : char_bits(point.value), at});
  }
  return characters;
}

/// How many characters from `at` on satisfy `is`.
template <typename Is>
std::size_t run(const Text& text, std::size_t at, Is is) {
  const std::size_t begin = at;
  while (at < text.size() && is(text[at])) ++at;
  return at - begin;
}

bool letter(const Character& c) { return has_class(c.bits, CharClass::kLetter); }
bool number(const Character& c) { return has_class(c.bits, CharClass::kNumber); }
bool space(const Character& c) { return has_class(c.bits, CharClass::kSpace); }
bool sign(const Character& c) { return has_class(c.bits, CharClass::kOther); }
bool newline(const Character& c) { return c.value == '\n' || c.value == '\r'; }
bool newline_or_slash(const Character& c) { return newline(c) || c.value == '/'; }
bool upper(const Character& c) { return (c.bits & kUpperLike) != 0; }
bool lower(const Character& c) { return (c.bits & kLowerLike) != 0; }
bool opens(const Character& c) { return (space(c) || sign(c)) && !newline(c); }
bool han(const Character& c) { return (c.bits & kHan) != 0; }
bool mark(const Character& c) { return (c.bits & kMark) != 0; }

/// What the patterns of both families differ in.
struct Rules {
  std::size_t numbers = 3;
  bool from_right = false;
  bool end_spaces = false;
  bool marks_are_letters = false;
  bool contractions = true;
  bool slash = false;
  bool han = false;
};

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)
std::size_t contraction(const Text& text, std::size_t at) {
  for (const std::string_view letters : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    if (at + letters.size() >= text.size() || text[at].value != '\'') continue;
    const bool same = std::equal(
        letters.begin(), letters.end(), text.begin() + at + 1, [](char a, const Character& b) {
          const auto c = static_cast<std::uint32_t>(a);
          return b.value == c || b.value == c - 32 || (a == 's' && b.value == 0x17F);
        });
    if (same) return 1 + letters.size();
  }
  return 0;
}

/// The alternatives after the words: numbers, signs, spaces. How many characters match.
std::size_t rest(const Text& text, std::size_t at, const Rules& rules) {
  if (const std::size_t size = run(text, at, number)) {
    if (!rules.from_right) return std::min(size, rules.numbers);
    for (std::size_t taken = std::min(size, rules.numbers);; --taken) {
      if ((size - taken) % rules.numbers == 0) return taken;
    }
  }
  const auto sign_here = [&](const Character& c) {
    return sign(c) && !(rules.marks_are_letters && mark(c));
  };
  for (const std::size_t blank : {1, 0}) {
    if (blank == 1 && text[at].value != ' ') continue;
    if (const std::size_t size = run(text, at + blank, sign_here)) {
      const auto after = rules.slash ? newline_or_slash : newline;
      return blank + size + run(text, at + blank + size, after);
    }
  }
  const std::size_t spaces = run(text, at, space);
  if (rules.end_spaces && at + spaces == text.size()) return spaces;  // \s++$
  for (std::size_t size = spaces + 1; size-- > 0;) {                  // \s*[\r\n]+
    if (const std::size_t lines = run(text, at + size, newline)) return size + lines;
  }
  for (std::size_t size = spaces; size > 0; --size) {  // \s+(?!\S)
    if (at + size == text.size() || space(text[at + size])) return size;
  }
  return spaces;
}

std::size_t match_cl100k(const Text& text, std::size_t at, const Rules& rules) {
  const auto letter_here = [&](const Character& c) {
    return letter(c) || (rules.marks_are_letters && mark(c));
  };
  if (const std::size_t size = contraction(text, at)) return size;
  for (const std::size_t before : {1, 0}) {
    if (before == 1 && !opens(text[at])) continue;
    if (const std::size_t size = run(text, at + before, letter_here)) return before + size;
  }
  return rest(text, at, rules);
}

std::size_t match_o200k(const Text& text, std::size_t at, const Rules& rules) {
  const auto upper_here = [&](const Character& c) { return upper(c) && !(rules.han && han(c)); };
  const auto lower_here = [&](const Character& c) { return lower(c) && !(rules.han && han(c)); };
  if (rules.han && han(text[at])) return run(text, at, han);
  for (const std::size_t least_lower : {1, 0}) {
    for (const std::size_t before : {1, 0}) {
      if (before == 1 && !opens(text[at])) continue;
      const std::size_t uppers = run(text, at + before, upper_here);
      for (std::size_t taken = uppers + 1; taken-- > 1 - least_lower;) {
        const std::size_t size = before + taken;
        const std::size_t lowers = run(text, at + size, lower_here);
        if (lowers < least_lower) continue;
        const std::size_t end = size + lowers;
        return end + (rules.contractions ? contraction(text, at + end) : 0);
      }
    }
  }
  return rest(text, at, rules);
}

using Match = std::size_t (*)(const Text& text, std::size_t at, const Rules& rules);

template <typename Scanner>
void compare(std::string_view bytes, Match match, const Rules& rules) {
  const Text text = characters_of(bytes);
  const Words found = words_of<Scanner>(bytes);
  std::size_t begin = 0;
  std::size_t word = 0;
  for (std::size_t at = 0; at < text.size(); ++word) {
    at += match(text, at, rules);
    CHECK(word < found.size());
    CHECK(found[word] == bytes.substr(begin, text[at - 1].end - begin));
    begin = text[at - 1].end;
  }
  CHECK(word == found.size());
}

void check(std::string_view bytes) {
  compare<Cl100k>(bytes, match_cl100k, {});
  compare<Cl100kRight>(bytes, match_cl100k, {.from_right = true});
  compare<Cl100kEndSpaces>(bytes, match_cl100k, {.end_spaces = true});
  compare<Qwen2>(bytes, match_cl100k, {.numbers = 1});
  compare<Nanochat>(bytes, match_cl100k, {.numbers = 2});
  compare<Qwen35>(bytes, match_cl100k, {.numbers = 1, .marks_are_letters = true});
  compare<O200k>(bytes, match_o200k, {.slash = true});
  compare<O200kRight>(bytes, match_o200k, {.from_right = true, .slash = true});
  compare<Tekken>(bytes, match_o200k, {.numbers = 1, .contractions = false, .slash = true});
  compare<Kimi>(bytes, match_o200k, {.han = true});
  for (const std::string_view name : kScannerNames) {
    with_scanner(name, [&](auto scanner) { words_of<decltype(scanner)>(bytes); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  if (input.below(2) == 0) {
    check(input.rest());
    return 0;
  }
  // A text of what the patterns make something of.
  constexpr std::string_view kPieces[] = {
      "'", "l",  "V",  "r",  "e",  "S",    " ",       "\n",  "\u3000", "é",      "\r",
      "/", "AB", "語", "7",  "!",  "\xC5", "abcdefg", "'ll", "'RE",    "\u0085", "\u0301",
      "ſ", "ǅ",  "ʰ",  "⺀", "〇", "½",    "12345",   "Ж",   "ж"};
  std::string text;
  while (!input.empty()) text += kPieces[input.below(std::size(kPieces))];
  check(text);
  return 0;
}
