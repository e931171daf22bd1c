// UTF-8 is checked as decode_utf8 reads it, whatever the size of the text and the processor.
#include "text/utf8_check.hpp"

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "exact_copy.hpp"

using namespace bpe_beam;

namespace {

bool is_utf8(std::string_view text) {
  const ExactCopy copy(text);
  return valid_utf8_prefix(copy.view()) == text.size();
}

void test_utf8() {
  using namespace std::string_view_literals;
  for (const std::string_view good :
       {""sv, "\0"sv, "\x7f"sv, "\u0080"sv, "\u07ff"sv, "\u0800"sv, "\ud7ff"sv, "\ue000"sv,
        "\uffff"sv, "\U00010000"sv, "\U0010ffff"sv}) {
    for (std::size_t before = 0; before < 70; ++before) {
      CHECK(is_utf8(std::string(before, 'x') + std::string(good) + "y"));
      CHECK(is_utf8(std::string(before, 'x') + std::string(good)));
    }
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xbf"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc2"sv, "\xc2\x41"sv, "\xe0\x9f\xbf"sv,
        "\xe2\x82"sv, "\xe2\x41\x80"sv, "\xed\xa0\x80"sv, "\xed\xbf\xbf"sv, "\xf0\x8f\xbf\xbf"sv,
        "\xf0\x9f\x98"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv}) {
    for (std::size_t before = 0; before < 70; ++before) {
      const std::string text = std::string(before, 'x') + std::string(bad);
      const ExactCopy copy(text);
      CHECK(valid_utf8_prefix(copy.view()) == before);
      CHECK(valid_utf8_prefix(text + "yyyy") == before);
    }
  }
}

void test_utf8_of_records() {
  std::mt19937 random(5);
  const std::vector<std::string> parts = {"a", "\n", "\u00e9", "\u20ac", "\U0001f600"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 60; i > 0; --i) text += parts[random() % parts.size()];
    if (random() % 2 == 0 && !text.empty()) {
      text[random() % text.size()] = "\xff\x80\xe2"[random() % 3];
    }
    const ExactCopy copy(text);
    Utf8Check utf8(copy.view(), 0, 5 + random() % 9);
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const auto record = copy.view().substr(begin, end - begin);
      if (random() % 4 != 0) CHECK(utf8.prefix(begin, end) == valid_utf8_prefix(record));
      begin = end + 1;
    }
  }
}

/// The longest well-formed prefix, one code point at a time.
std::size_t decoded_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    if (point.value == kMalformed) break;
    at += point.size;
  }
  return at;
}

void test_long_texts() {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a",          "plain ASCII of some length, ",
                                          "\u00e9",     "\u20ac",
                                          "\ud7ff",     "\ue000",
                                          "\U0001f600", "\U0010ffff"};
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const std::size_t size = random() % 300;
    while (text.size() < size) text += parts[random() % parts.size()];
    for (std::size_t flaws = random() % 3; flaws > 0 && !text.empty(); --flaws) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    const ExactCopy copy(text);
    CHECK(valid_utf8_prefix(copy.view()) == decoded_prefix(text));
  }
}

/// Every first two bytes of a character, with each kind of byte after them.
void test_all_beginnings() {
  for (unsigned first = 0x80; first < 0x100; ++first) {
    for (unsigned second = 0; second < 0x100; ++second) {
      for (const std::string_view rest : {"", "\x80", "\x80\x80", "\xbf\xbf\xbf"}) {
        std::string text(40, 'x');
        text += static_cast<char>(first);
        text += static_cast<char>(second);
        text += rest;
        text += std::string(40, 'y');
        CHECK(valid_utf8_prefix(text) == decoded_prefix(text));
      }
    }
  }
}

void test_texts() {
  using Offsets = std::vector<std::int64_t>;
  const std::string text = "a\u00e9\u20ac";
  CHECK(texts_are_utf8(text, Offsets{0}) && texts_are_utf8(text, Offsets{6}));
  CHECK(texts_are_utf8(text, Offsets{0, 1, 1, 3, 6, 6}));
  for (const std::int64_t inside : {2, 4, 5}) {
    CHECK(!texts_are_utf8(text, Offsets{0, inside, 6}));
    CHECK(!texts_are_utf8(text, Offsets{0, inside}) && !texts_are_utf8(text, Offsets{inside, 6}));
  }
  // What lies before the first text and after the last does not matter.
  CHECK(
      texts_are_utf8("\x80"
                     "ab\xff",
                     Offsets{1, 2, 3}));
  CHECK(
      !texts_are_utf8("\x80"
                      "ab\xff",
                      Offsets{1, 2, 4}));
}

}  // namespace

int main() {
  test_texts();
  test_utf8();
  test_utf8_of_records();
  test_long_texts();
  test_all_beginnings();
}
