// The patterns of cl100k and Qwen 2, case by case; every expected list was worked out by hand from
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
#include "scan/cl100k_scanner.hpp"
#include "words.hpp"

using namespace bpe_beam;

namespace {

void letters_and_numbers() {
  CHECK(gives<Cl100k>("Hello world", {"Hello", " world"}));
  CHECK(gives<Cl100k>("a\tb", {"a", "\tb"}));  // any sign or space may open a word
  CHECK(gives<Cl100k>("(a) !b", {"(a", ")", " !", "b"}));
  CHECK(gives<Cl100k>("\nb", {"\n", "b"}));  // but no line break
  CHECK(gives<Cl100k>("1234567 8", {"123", "456", "7", " ", "8"}));
  CHECK(gives<Qwen2>("12½ 8", {"1", "2", "½", " ", "8"}));
  CHECK(gives<Cl100k>("e\u0301a", {"e", "\u0301a"}));
  CHECK(gives<Cl100k>("日本，語", {"日本", "，語"}));
}

void contractions() {
  CHECK(gives<Cl100k>("it's IT'S", {"it", "'s", " IT", "'S"}));
  CHECK(gives<Cl100k>("'lly 'x'", {"'ll", "y", " '", "x", "'"}));
  CHECK(gives<Cl100k>("a'\u017Fb", {"a", "'\u017F", "b"}));
  CHECK(gives<Cl100k>("a'lb", {"a", "'lb"}));
  CHECK(gives<Cl100k>("!'s", {"!'", "s"}));
}

void signs_and_lines() {
  CHECK(gives<Cl100k>("a!!\r\n\nb", {"a", "!!\r\n\n", "b"}));
  CHECK(gives<Cl100k>("! \n", {"!", " \n"}));
  CHECK(gives<Cl100k>(" \n \n  a", {" \n \n", " ", " a"}));
  CHECK(gives<Cl100k>("a \n ", {"a", " \n", " "}));
  CHECK(gives<Cl100k>("  1", {" ", " ", "1"}));
  CHECK(gives<Cl100k>("  !", {" ", " !"}));
  CHECK(gives<Cl100k>("\t!", {"\t", "!"}));
  CHECK(gives<Cl100k>("a\u3000b\u3000\u3000 ", {"a", "\u3000b", "\u3000\u3000 "}));
}

/// Up to the text's end they are one word, but not those that belong to signs.
void spaces_at_the_end() {
  CHECK(gives<Cl100kEndSpaces>("a \n ", {"a", " \n "}));
  CHECK(gives<Cl100kEndSpaces>("a\n\u3000", {"a", "\n\u3000"}));
  CHECK(gives<Cl100kEndSpaces>("a!\n ", {"a", "!\n", " "}));
  CHECK(gives<Cl100kEndSpaces>("a\n  b", {"a", "\n", " ", " b"}));
  const std::string many(100, ' ');
  CHECK(gives<Cl100kEndSpaces>("a\n" + many, {"a", "\n" + many}));
  CHECK(gives<Cl100kEndSpaces>("a\n" + many + "b", {"a", "\n", many.substr(1), " b"}));
}

/// A byte that is not UTF-8 is neither letter, number nor space: it may open a word.
void malformed_bytes() {
  CHECK(
      gives<Cl100k>("a\xFF"
                    "b\xFF\xFF c",
                    {"a",
                     "\xFF"
                     "b",
                     "\xFF\xFF", " c"}));
  CHECK(gives<Cl100k>(" \xC3", {" \xC3"}));
  CHECK(gives<Cl100k>("'\xC5", {"'\xC5"}));
}

}  // namespace

int main() {
  letters_and_numbers();
  contractions();
  signs_and_lines();
  spaces_at_the_end();
  malformed_bytes();
}
