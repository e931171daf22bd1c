// Where words begin in a block, against the scanners that go character by character.
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/scanners.hpp"
#include "scan/word_starts.hpp"

using namespace bpe_beam;

namespace {

/// Checks a text of a block or more. Returns how much of the block is decided.
template <class Scanner>
std::size_t check(std::string_view text) {
  const ExactCopy block(text.substr(0, kBlock));
  std::size_t decided = 0;
  for (const BlockClasses& classes : {BlockClasses{}, BlockClasses::best()}) {
    const WordStarts found = Scanner::starts(block.view().data(), classes);
    decided = found.decided;
    CHECK(decided <= kMostDecided);
    std::size_t start = Scanner::next(text, 0).end;
    for (std::size_t at = 1; at < decided; ++at) {
      CHECK((found.starts >> at & 1) == (at == start));
      if (at == start) start = Scanner::next(text, at).end;
    }
  }
  return decided;
}

void check_all(const std::string& text) {
  check<Gpt2>(text);
  check<DigitsGpt2>(text);
  check<Cl100k>(text);
  check<Cl100kRight>(text);
  check<Qwen2>(text);
  check<Nanochat>(text);
  check<Qwen35>(text);
  check<O200k>(text);
  check<O200kRight>(text);
  check<Tekken>(text);
  check<Kimi>(text);
  check<DeepSeek>(text);
  check<Gemma>(text);
}

/// Calls `use` with all strings of `length` of the characters.
template <class Use>
void all_strings(const std::vector<std::string>& characters, std::size_t length, Use use) {
  std::vector<std::size_t> which(length, 0);
  while (true) {
    std::string text;
    for (const std::size_t i : which) text += characters[i];
    use(text);
    std::size_t at = 0;
    while (at < length && ++which[at] == characters.size()) which[at++] = 0;
    if (at == length) return;
  }
}

/// All short strings at the beginning of a block and at its end.
void all_short_strings() {
  const std::vector<std::string> critical = {"'", "s", "L", " ", "\n", "\t",
                                             "1", "!", "/", "é", "語"};
  const std::vector<std::string> odd = {"'", "l", "É",  "ǅ", "ʰ", "\u0301", "\u3000",    "½",
                                        "—", "ſ", "\r", " ", "x", "\xC5",   "\U0001F600"};
  for (const auto& [characters, length] : {std::pair{critical, 4}, std::pair{odd, 3}}) {
    all_strings(characters, static_cast<std::size_t>(length), [](const std::string& text) {
      check_all(text + " abc def " + std::string(80, 'q'));
      check_all(text + "\n" + std::string(80, ' ') + "x");
      check_all(std::string(60 - text.size(), 'q') + text + text + text);
      check_all(std::string(58 - text.size(), ' ') + text + text + text + text);
    });
  }
}

void random_texts() {
  constexpr std::string_view kPieces[] = {
      "'",  "l", "V",  "r",    "e",      "S",    "  ",   " ",  "\n",  "\u3000", "é",  "\r",
      "/",  "A", "語", "7",    "123",    "!",    "\xC5", "ab", "'ll", "'RE",    "—",  "\u0085",
      "\t", "ſ", "ǅ",  "\xFF", "\u0301", "中文", "да",   "(",  "'s",  "\n    ", "Ab", "0000000"};
  std::mt19937 random(3);
  std::size_t decided = 0;
  for (int round = 0; round < 40'000; ++round) {
    // Few kinds at a time: else hardly any block is decided as a whole.
    const std::size_t kinds = 2 + random() % 6;
    std::string_view pieces[8];
    for (std::size_t i = 0; i < kinds; ++i) pieces[i] = kPieces[random() % std::size(kPieces)];
    std::string text;
    while (text.size() < 70) text += pieces[random() % kinds];
    check_all(text);
    decided += check<Gpt2>(text);
  }
  CHECK(decided > 1'000'000);
}

/// Where a rule needs no help.
void what_is_decided() {
  const std::string english =
      "It's 12,345 words,\n\n    \"isn't\" it? don't (x) y/z 100% of the\ttime";
  CHECK(check<Gpt2>(english) == kMostDecided);
  CHECK(check<Cl100k>(english) == kMostDecided);
  CHECK(check<O200k>(english) == kMostDecided);
  CHECK(check<O200kRight>(english) == kMostDecided);
  CHECK(check<DeepSeek>(english) == kMostDecided);
  std::string chinese;
  for (int i = 0; i < 10; ++i) chinese += "春眠不觉晓，";
  CHECK(check<Gpt2>(chinese) == kMostDecided);
  CHECK(check<Cl100k>(chinese) == kMostDecided);
  CHECK(check<O200k>(chinese) == kMostDecided);
  CHECK(check<Kimi>(chinese) == kMostDecided);
  CHECK(check<DeepSeek>(chinese) == kMostDecided);
}

}  // namespace

int main() {
  all_short_strings();
  random_texts();
  what_is_decided();
}
