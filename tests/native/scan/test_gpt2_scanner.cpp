// The GPT-2 pattern, case by case; every expected list was worked out by hand from
//   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"
#include "scan/gpt2_scanner.hpp"

using namespace bpe_beam;
using namespace std::string_literals;

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view bytes) {
  const ExactCopy copy(bytes);
  const std::string_view text = copy.view();
  Words words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = Gpt2Scanner::next(text, begin);
    CHECK(end > begin && end <= text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool gives(std::string_view text, const Words& expected) {
  const Words found = words_of(text);
  if (found == expected) return true;
  for (const std::string& word : found) std::fprintf(stderr, "[%s]", word.c_str());
  std::fprintf(stderr, "\n");
  return false;
}

void letters_numbers_others() {
  CHECK(gives("Hello world", {"Hello", " world"}));
  CHECK(gives("abc123", {"abc", "123"}));
  CHECK(gives("a1!", {"a", "1", "!"}));
  CHECK(gives(" 12a !?b", {" 12", "a", " !?", "b"}));
  CHECK(gives("x_y", {"x", "_", "y"}));
  CHECK(gives("naïve café", {"naïve", " café"}));
  CHECK(gives("日本語 中", {"日本語", " 中"}));
  CHECK(gives("½²Ⅷ٣7", {"½²Ⅷ٣7"}));
  CHECK(gives("e\u0301a", {"e", "\u0301", "a"}));  // a combining mark is no letter
  CHECK(gives("😀😀 😀", {"😀😀", " 😀"}));
  CHECK(gives("ab\0cd"s, {"ab", "\0"s, "cd"}));
}

void contractions() {
  CHECK(gives("don't", {"don", "'t"}));
  CHECK(gives("it's he'd I'm", {"it", "'s", " he", "'d", " I", "'m"}));
  CHECK(gives("we'll I've they're", {"we", "'ll", " I", "'ve", " they", "'re"}));
  CHECK(gives("it'sa", {"it", "'s", "a"}));
  CHECK(gives("'s's", {"'s", "'s"}));
  CHECK(gives("'llama", {"'ll", "ama"}));
  // Upper case is none, nor is half of one, nor the typographer's apostrophe.
  CHECK(gives("it'S", {"it", "'", "S"}));
  CHECK(gives("'LL", {"'", "LL"}));
  CHECK(gives("'la", {"'", "la"}));
  CHECK(gives("'vi", {"'", "vi"}));
  CHECK(gives("'ra", {"'", "ra"}));
  CHECK(gives("it’s", {"it", "’", "s"}));
  // At the text's end.
  CHECK(gives("a'", {"a", "'"}));
  CHECK(gives("a'l", {"a", "'", "l"}));
  CHECK(gives("a'v", {"a", "'", "v"}));
  CHECK(gives("a'r", {"a", "'", "r"}));
  CHECK(gives("a'd", {"a", "'d"}));
  CHECK(gives("a've", {"a", "'ve"}));
  // Only where a word begins: a blank or another sign before it takes the apostrophe.
  CHECK(gives("a 's", {"a", " '", "s"}));
  CHECK(gives("!'s", {"!'", "s"}));
  CHECK(gives("''s", {"''", "s"}));
  CHECK(gives("'1", {"'", "1"}));
}

void runs_of_spaces() {
  CHECK(gives("a b", {"a", " b"}));
  CHECK(gives("a  b", {"a", " ", " b"}));
  CHECK(gives("a    b", {"a", "   ", " b"}));
  CHECK(gives("x  1  !", {"x", " ", " 1", " ", " !"}));
  CHECK(gives("\ta", {"\t", "a"}));  // only a blank joins the next word
  CHECK(gives("\t\ta", {"\t", "\t", "a"}));
  CHECK(gives(" \ta", {" ", "\t", "a"}));
  CHECK(gives("\t a", {"\t", " a"}));
  CHECK(gives("a\nb", {"a", "\n", "b"}));
  CHECK(gives("a \nb", {"a", " ", "\n", "b"}));
  CHECK(gives("a\n b", {"a", "\n", " b"}));
  CHECK(gives("a\n\n\nb", {"a", "\n\n", "\n", "b"}));
  CHECK(gives("a\r\nb", {"a", "\r", "\n", "b"}));
  CHECK(gives("  's", {" ", " '", "s"}));
  CHECK(gives("\n's", {"\n", "'s"}));
}

void spaces_at_the_end() {
  CHECK(gives("", {}));
  CHECK(gives(" ", {" "}));
  CHECK(gives("   ", {"   "}));
  CHECK(gives("a ", {"a", " "}));
  CHECK(gives("a  \n", {"a", "  \n"}));
  CHECK(gives("a\u3000", {"a", "\u3000"}));
}

/// Next line, no-break space and ideographic space are \s, but not the blank of ` ?`.
void spaces_beyond_ascii() {
  CHECK(gives("a\u0085b", {"a", "\u0085", "b"}));
  CHECK(gives("a\u00A0b", {"a", "\u00A0", "b"}));
  CHECK(gives("a\u3000b", {"a", "\u3000", "b"}));
  CHECK(gives("a \u00A0b", {"a", " ", "\u00A0", "b"}));
  CHECK(gives("a\u00A0 b", {"a", "\u00A0", " b"}));
  CHECK(gives("\u3000\u3000\u3000b", {"\u3000\u3000", "\u3000", "b"}));
  CHECK(gives(" \u0085 \u3000", {" \u0085 \u3000"}));
  // These are none.
  CHECK(gives("a\u200Bb", {"a", "\u200B", "b"}));
  CHECK(gives(" \u200B\u200B b", {" \u200B\u200B", " b"}));
  CHECK(gives("a\x1C\x1F b", {"a", "\x1C\x1F", " b"}));
}

/// A byte that is not UTF-8 is neither letter, number nor space.
void malformed_bytes() {
  CHECK(gives("\xFF", {"\xFF"}));
  CHECK(gives("a\xFF b", {"a", "\xFF", " b"}));
  CHECK(gives("\xFF!a", {"\xFF!", "a"}));
  CHECK(gives(" \xFF", {" \xFF"}));
  CHECK(gives("  \xFF", {" ", " \xFF"}));
  CHECK(gives("\n\xFF", {"\n", "\xFF"}));
  CHECK(gives("ab\x80zz", {"ab", "\x80", "zz"}));
  CHECK(gives("\xE4\xB8", {"\xE4\xB8"}));  // cut off
  CHECK(gives("a\xE4\xB8z", {"a", "\xE4\xB8", "z"}));
  CHECK(gives("\xF0\x9F\x98 a", {"\xF0\x9F\x98", " a"}));
  CHECK(gives("\xED\xA0\x80x", {"\xED\xA0\x80", "x"}));    // a surrogate
  CHECK(gives("\xF4\x90\x80\x80", {"\xF4\x90\x80\x80"}));  // beyond U+10FFFF
  CHECK(gives("\xC0\xA0x", {"\xC0\xA0", "x"}));            // an overlong blank
  CHECK(gives("\xC3\xA9\xC3", {"é", "\xC3"}));
}

/// Letters are looked at eight at a time: any length, any byte after them, any distance to the
/// text's end.
void words_of_every_length() {
  for (std::size_t length = 1; length <= 25; ++length) {
    const std::string word(length, 'q');
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      for (std::size_t after = 0; after <= 9; ++after) {
        const ExactCopy text(word + c + std::string(after, '.'));
        CHECK(Gpt2Scanner::next(text.view(), 0) == length + (letter ? 1 : 0));
      }
    }
    for (const std::string_view letter : {"é", "語", "𠀀"}) {
      const std::string joined = word + std::string(letter) + word;
      CHECK(gives(joined + "1", {joined, "1"}));
      CHECK(gives(joined, {joined}));
    }
    CHECK(gives(word + "'s" + word, {word, "'s", word}));
    CHECK(gives(word + " " + word + "  " + word, {word, " " + word, " ", " " + word}));
  }
}

/// The words from a place on are those of the rest alone: the pattern never looks back.
void from_the_middle() {
  const std::string_view text = "it's  so\u3000n\xFF'll 12";
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    const std::string_view rest = text.substr(begin);
    CHECK(Gpt2Scanner::next(text, begin) == begin + Gpt2Scanner::next(rest, 0));
  }
}

}  // namespace

int main() {
  letters_numbers_others();
  contractions();
  runs_of_spaces();
  spaces_at_the_end();
  spaces_beyond_ascii();
  malformed_bytes();
  words_of_every_length();
  from_the_middle();
}
