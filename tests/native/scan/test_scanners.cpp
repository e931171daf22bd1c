// The scanners of runs, case by case; names; and that all of them take linear time.
#include <chrono>

#include "scan/scanners.hpp"
#include "words.hpp"

using namespace bpe_beam;

namespace {

void bert() {
  CHECK(gives<Bert>(" Hello, world!! ", {"Hello", ",", "world", "!", "!"}));
  CHECK(gives<Bert>("it's\u3000$5。a_b", {"it", "'", "s", "$", "5", "。", "a", "_", "b"}));
  CHECK(
      gives<Bert>("a\xFF"
                  "b €",
                  {"a\xFF"
                   "b",
                   "€"}));
  CHECK(gives<Bert>("", {}));
  CHECK(gives<Bert>(" \n ", {}));
}

void whitespace() {
  CHECK(gives<Whitespace>("it's a_b, €!1", {"it", "'", "s", "a_b", ",", "€!", "1"}));
  CHECK(gives<Whitespace>("e\u0301\u200Da\xFF\xFF", {"e\u0301\u200Da", "\xFF\xFF"}));
  CHECK(gives<WhitespaceSplit>(" it's\n\u00A0a,b ", {"it's", "a,b"}));
}

void digits_and_punctuation() {
  CHECK(gives<Digits>("a 12½b", {"a ", "12½", "b"}));
  CHECK(gives<DigitsIndividual>("a 12½b", {"a ", "1", "2", "½", "b"}));
  CHECK(gives<Punctuation>("a, b!! ", {"a", ",", " b", "!", "!", " "}));
  CHECK(gives<WholeText>("a b", {"a b"}));
  CHECK(gives<WholeText>("", {}));
}

/// Letters are looked at eight at a time, unless a run of something else is looked for.
void words_of_every_length() {
  for (std::size_t length = 1; length <= 25; ++length) {
    const std::string word(length, 'q');
    CHECK(gives<Bert>(word + "," + word + "é" + word, {word, ",", word + "é" + word}));
    CHECK(gives<Whitespace>(word + "1_ " + word, {word + "1_", word}));
    CHECK(gives<Digits>("1" + word + "1", {"1", word, "1"}));
    CHECK(gives<Whitespace>(",;" + word, {",;", word}));
  }
}

void names() {
  for (const std::string_view name : kScannerNames) {
    bool used = false;
    CHECK(with_scanner(name, [&](auto scanner) {
      const Word word = scanner.next("word", 0);
      used = word.begin == 0 && word.end == 4;
    }));
    CHECK(used);
  }
  CHECK(!with_scanner("gpt3", [](auto) {}));
}

/// What a scan that looks far ahead, and then again, would take hours for.
void linear_time() {
  constexpr std::size_t kRepeats = 100'000;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string_view piece :
       {" ",  "\n", " \n", "\n ",  "a ",     "A",    "語A",      "\u0301A", "'",  "'l",
        "A'", "1",  "!",   "!/\n", "\u3000", "\xFF", "\xF0\x9F", "A\u3000", "Aa", "\t!"}) {
    std::string text;
    for (std::size_t i = 0; i < kRepeats; ++i) text += piece;
    for (const std::string_view tail : {"", "a", "語", "\n", "A"}) {
      const std::string whole = "語" + text + std::string(tail);
      for (const std::string_view name : kScannerNames) {
        with_scanner(name, [&](auto scanner) {
          for (std::size_t at = 0; at < whole.size();) at = scanner.next(whole, at).end;
        });
      }
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  CHECK(taken.count() < 60);
}

}  // namespace

int main() {
  bert();
  whitespace();
  digits_and_punctuation();
  words_of_every_length();
  names();
  linear_time();
}
