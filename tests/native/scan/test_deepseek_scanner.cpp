// The pattern of DeepSeek V3, case by case; the expected words are those of its three patterns.
#include "scan/deepseek_scanner.hpp"
#include "words.hpp"

using namespace bpe_beam;

namespace {

void letters_and_signs() {
  CHECK(gives<DeepSeek>("Hello world", {"Hello", " world"}));
  CHECK(gives<DeepSeek>("it's (x) !!y", {"it", "'s", " (", "x", ")", " !!", "y"}));
  CHECK(gives<DeepSeek>("-abcé", {"-abc", "é"}));  // a sign takes ASCII letters only
  CHECK(gives<DeepSeek>("—abc", {"—", "abc"}));
  CHECK(gives<DeepSeek>("e\u0301a \u0301", {"e\u0301a", " \u0301"}));
  CHECK(gives<DeepSeek>("a!\r\n\nb", {"a", "!\r\n\n", "b"}));
}

void numbers_and_east_asia() {
  CHECK(gives<DeepSeek>("a  12345", {"a", "  ", "123", "45"}));  // the text ends before a number
  CHECK(gives<DeepSeek>("a  語かヽb", {"a", "  ", "語かヽ", "b"}));
  CHECK(gives<DeepSeek>("\u9FA5\u9FA6각 x", {"\u9FA5", "\u9FA6각", " x"}));
  CHECK(gives<DeepSeek>("  a \n 1", {" ", " a", " \n", " ", "1"}));
}

/// Characters that no pattern matches.
void the_rest() {
  CHECK(
      gives<DeepSeek>("a\x01\x02"
                      "b\x01",
                      {"a", "\x01",
                       "\x02"
                       "b",
                       "\x01"}));
  CHECK(gives<DeepSeek>("\x01\xFF\xFF 1\xFF", {"\x01\xFF\xFF", " ", "1", "\xFF"}));
}

}  // namespace

int main() {
  letters_and_signs();
  numbers_and_east_asia();
  the_rest();
}
