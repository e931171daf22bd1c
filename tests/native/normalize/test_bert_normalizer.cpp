// BERT's steps one by one and together.
#include <string>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "normalize/bert_normalizer.hpp"

using namespace bpe_beam;

namespace {

constexpr bool kOn = true, kOff = false;

void cleaning() {
  const BertNormalizer step({kOn, kOff, kOff, kOff});
  CHECK(text_of(step, "") == "");
  CHECK(text_of(step, std::string("a\0b\x01\x7F", 5) + "c\u200B\uFFFD\uE000\u0085d") == "abcd");
  CHECK(text_of(step, "\t\n\r\u00A0\u3000\u2028x") == "      x");
  CHECK(text_of(step, "É\u0301\u0378") == "É\u0301\u0378");  // what is unassigned stays
  CHECK(places_of(step,
                  "\x01"
                  "a\u2003b\n") ==
        std::vector<Placed>{{"a", 1, 2}, {" ", 2, 5}, {"b", 5, 6}, {" ", 6, 7}});
}

void ideographs() {
  const BertNormalizer step({kOff, kOn, kOff, kOff});
  CHECK(text_of(step, "a中b") == "a 中 b");
  CHECK(places_of(step, "中") == std::vector<Placed>{{" ", 0, 3}, {"中", 0, 3}, {" ", 0, 3}});
  // Kana and Hangul are none; a compatibility ideograph is.
  CHECK(text_of(step, "あ가\uF900\U00020000") == "あ가 \uF900  \U00020000 ");
  CHECK(text_of(step, "\u4DFF\uFB00\U0002A6E0") == "\u4DFF\uFB00\U0002A6E0");
}

void accents() {
  const BertNormalizer step({kOff, kOff, kOn, kOff});
  CHECK(text_of(step, "Éa\u0301\u0303\u0903") == "Ea\u0903");
  CHECK(text_of(step, "각") == "\u1100\u1161\u11A8");
  CHECK(text_of(step, "\uF900") == "\u8C48");
  CHECK(places_of(step, "é\u0301x") == std::vector<Placed>{{"e", 0, 2}, {"x", 4, 5}});
}

void lower() {
  const BertNormalizer step({kOff, kOff, kOff, kOn});
  CHECK(text_of(step, "AÉİ\x01") == "aéi\u0307\x01");
  CHECK(text_of(BertNormalizer({kOff, kOff, kOff, kOff}), "AÉ\x01中") == "AÉ\x01中");
}

void together() {
  const BertNormalizer step({kOn, kOn, kOn, kOn});
  CHECK(text_of(step, "Ünïcödé中\uF900\tİ\u200B!") == "unicode 中  \u8C48  i!");
  CHECK(text_of(step, "\xFF\xC3É\xE4\xB8") ==
        "\xFF\xC3"
        "e\xE4\xB8");
  // A dropped control is gone before marks that stay (of class 224 and 216) are sorted.
  for (const char* control : {"\x01", "\u200B"}) {
    const std::string text = std::string("a\u302E") + control + "\U0001D165";
    CHECK(text_of(step, text) == "a\U0001D165\u302E");
  }
  CHECK(text_of(step, "a\u302E \U0001D165") == "a\u302E \U0001D165");
}

}  // namespace

int main() {
  cleaning();
  ideographs();
  accents();
  lower();
  together();
}
