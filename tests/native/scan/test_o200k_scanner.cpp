// The pattern of o200k, case by case; every expected list was worked out by hand from the pattern
// in the header.
#include "scan/o200k_scanner.hpp"
#include "words.hpp"

using namespace bpe_beam;

namespace {

void cases_of_letters() {
  CHECK(gives<O200k>("HelloWorld HELLO", {"Hello", "World", " HELLO"}));
  CHECK(gives<O200k>("HTMLFile aB", {"HTMLFile", " a", "B"}));
  CHECK(gives<O200k>("ÉCOLE École éÉ", {"ÉCOLE", " École", " é", "É"}));
  CHECK(gives<O200k>("aéB Aéa", {"aé", "B", " Aéa"}));
  CHECK(gives<O200k>("日本語 ABC語 語ABC 語ABCd", {"日本語", " ABC語", " 語", "ABC", " 語ABCd"}));
  CHECK(gives<O200k>("AʰB", {"Aʰ", "B"}));
  CHECK(gives<O200k>("ǅa ǅ", {"ǅa", " ǅ"}));
}

/// A mark is a letter of both cases and a sign.
void marks() {
  CHECK(gives<O200k>("e\u0301a", {"e\u0301a"}));
  CHECK(gives<O200k>("E\u0301A", {"E\u0301", "A"}));
  CHECK(gives<O200k>("\u0301ABC", {"\u0301", "ABC"}));  // U+ comes after U*L+
  CHECK(gives<O200k>("\u0301Ab", {"\u0301Ab"}));
  CHECK(gives<O200k>("\u0301's", {"\u0301's"}));
  CHECK(gives<O200k>("!\u0301 \u0301", {"!\u0301", " \u0301"}));
  CHECK(gives<O200k>("!!\u0301a", {"!!\u0301", "a"}));
  CHECK(gives<O200k>("1\u0301", {"1", "\u0301"}));
}

void contractions() {
  CHECK(gives<O200k>("it's IT'LL a've'd", {"it's", " IT'LL", " a've", "'d"}));
  CHECK(gives<O200k>("it'lx 'sx", {"it", "'lx", " '", "sx"}));
  CHECK(gives<O200k>("it'sx", {"it's", "x"}));
  CHECK(gives<O200k>("語's a'\u017F", {"語's", " a'\u017F"}));
  CHECK(gives<O200k>("1's", {"1", "'s"}));
}

void the_rest() {
  CHECK(gives<O200k>("1234 5", {"123", "4", " ", "5"}));
  CHECK(gives<O200k>("a//\n/\r!/", {"a", "//\n/\r", "!/"}));
  CHECK(gives<O200k>(" \n \n  a", {" \n \n", " ", " a"}));
  CHECK(gives<O200k>("\t!\n\nA", {"\t", "!\n\n", "A"}));
  CHECK(gives<O200k>("\nA\tA", {"\n", "A", "\tA"}));
  CHECK(
      gives<O200k>("a\xFF"
                   "B\xFF\xFF",
                   {"a",
                    "\xFF"
                    "B",
                    "\xFF\xFF"}));
  CHECK(gives<O200k>("A\xC3", {"A", "\xC3"}));
}

/// Letters are looked at eight at a time: any length, any byte after them.
void words_of_every_length() {
  for (std::size_t length = 1; length <= 20; ++length) {
    for (const std::string& word : {std::string(length, 'q'), "Q" + std::string(length, 'q')}) {
      for (int byte = 1; byte < 0x80; ++byte) {
        const char c = static_cast<char>(byte);
        if (c == '\'') continue;
        const bool lower = c >= 'a' && c <= 'z';
        CHECK(words_of<O200k>(word + c + "..........")[0].size() == word.size() + (lower ? 1 : 0));
      }
      CHECK(gives<O200k>(word + "éQ語", {word + "é", "Q語"}));
      CHECK(gives<O200k>(word + "É", {word, "É"}));
    }
  }
}

}  // namespace

int main() {
  cases_of_letters();
  marks();
  contractions();
  the_rest();
  words_of_every_length();
}
