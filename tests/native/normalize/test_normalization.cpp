// The four forms: known texts, the laws that tie the forms together, places, hostile texts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apply_step.hpp"
#include "check.hpp"
#include "normalize/normalization.hpp"

using namespace bpe_beam;

namespace {

const FormNormalizer kNfc(NormalizationForm::kNfc);
const FormNormalizer kNfd(NormalizationForm::kNfd);
const FormNormalizer kNfkc(NormalizationForm::kNfkc);
const FormNormalizer kNfkd(NormalizationForm::kNfkd);

void known_texts() {
  CHECK(text_of(kNfc, "") == "");
  CHECK(text_of(kNfd, "aéb") == "ae\u0301b");
  CHECK(text_of(kNfc, "ae\u0301b") == "aéb");
  CHECK(text_of(kNfc, "ﬁ①") == "ﬁ①");
  CHECK(text_of(kNfkc, "ﬁ①") == "fi1");
  CHECK(text_of(kNfkd, "ẛ\u0323") == "s\u0323\u0307");
  CHECK(text_of(kNfkc, "ẛ\u0323") == "ṩ");
  // Marks are sorted by class, equal classes stay in order and block one another.
  CHECK(text_of(kNfd, "a\u0301\u0323") == "a\u0323\u0301");
  CHECK(text_of(kNfd, "a\u0301\u0300") == "a\u0301\u0300");
  CHECK(text_of(kNfc, "a\u0301\u0300") == "á\u0300");
  // Excluded from composition; a lone mark; two starters that compose.
  CHECK(text_of(kNfc, "\u0958") == "\u0915\u093C");
  CHECK(text_of(kNfc, "\u0301e") == "\u0301e");
  CHECK(text_of(kNfc, "\u09C7\u09BE") == "\u09CB");
}

void hangul_syllables() {
  CHECK(text_of(kNfd, "각가") == "\u1100\u1161\u11A8\u1100\u1161");
  CHECK(text_of(kNfc, "\u1100\u1161\u11A8") == "각");
  CHECK(text_of(kNfc, "가\u11A8") == "각");
  CHECK(text_of(kNfc, "각\u11A8") == "각\u11A8");
  CHECK(text_of(kNfc, "\u1100\u11A8") == "\u1100\u11A8");
  CHECK(text_of(kNfc, "가\u11A7") == "가\u11A7");  // U+11A7 is no tail
  CHECK(text_of(kNfc, "x\u1161") == "x\u1161");
}

/// Every code point: each form twice is the form, and each is reached from the others.
void laws() {
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    const bool lively = (normalization_record(point).flags & 15) != 15;
    if (!lively && point % 97 != 0) continue;
    std::string text = "a";
    append_utf8(point, text);
    text += "\u0301";
    const std::string nfc = text_of(kNfc, text), nfd = text_of(kNfd, text);
    const std::string nfkc = text_of(kNfkc, text), nfkd = text_of(kNfkd, text);
    CHECK(text_of(kNfc, nfc) == nfc && text_of(kNfd, nfd) == nfd);
    CHECK(text_of(kNfkc, nfkc) == nfkc && text_of(kNfkd, nfkd) == nfkd);
    CHECK(text_of(kNfc, nfd) == nfc && text_of(kNfd, nfc) == nfd);
    CHECK(text_of(kNfkc, nfd) == nfkc && text_of(kNfkd, nfkc) == nfkd);
  }
}

void places() {
  CHECK(places_of(kNfd, "xé") == std::vector<Placed>{{"x", 0, 1}, {"e", 1, 3}, {"\u0301", 1, 3}});
  CHECK(places_of(kNfc, "xe\u0301y") == std::vector<Placed>{{"x", 0, 1}, {"é", 1, 2}, {"y", 4, 5}});
  CHECK(places_of(kNfkd, "ﬁx") == std::vector<Placed>{{"f", 0, 3}, {"i", 0, 3}, {"x", 3, 4}});
  // Marks that change places: the places stay in the text's order. The inserted acute comes out
  // after the dot below, so it has the dot's.
  CHECK(places_of(kNfd, "á\u0323") ==
        std::vector<Placed>{{"a", 0, 2}, {"\u0323", 2, 4}, {"\u0301", 2, 4}});
  CHECK(places_of(kNfd, "a\u0301\u0323") ==
        std::vector<Placed>{{"a", 0, 1}, {"\u0323", 1, 3}, {"\u0301", 3, 5}});
  // The i of the ligature was inserted; joined with a mark it replaces the mark.
  CHECK(places_of(kNfkc, "ﬁ\u0301") == std::vector<Placed>{{"f", 0, 3}, {"í", 3, 5}});
}

void malformed_bytes_stay() {
  for (const std::string_view text :
       {"\xFF", "e\xCC", "\xCC\x81\xCC", "\xE4\xB8", "\x80\xCC\x81"}) {
    CHECK(text_of(kNfc, text) == text);
    CHECK(text_of(kNfkd, text) == text);
  }
  // A mark joins nothing over a malformed byte.
  CHECK(text_of(kNfc, "e\xFF\u0301") == "e\xFF\u0301");
  CHECK(text_of(kNfc, "\u0301\xFFoe\u0301") == "\u0301\xFFoé");
}

/// Anything quadratic would not come back.
void hostile_texts() {
  constexpr std::size_t kMany = 300'000;
  std::string marks = "a";
  for (std::size_t i = 0; i < kMany; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string sorted = text_of(kNfd, marks);
  CHECK(sorted.size() == marks.size());
  CHECK(sorted.substr(1, 4) == "\u0323\u0323" && sorted.ends_with("\u0301\u0301"));
  CHECK(text_of(kNfc, marks).starts_with("ạ"));
  std::string longest;
  for (std::size_t i = 0; i < kMany / 100; ++i) longest += "\uFDFA";
  CHECK(text_of(kNfkc, longest).size() == 33 * longest.size() / 3);
}

}  // namespace

int main() {
  known_texts();
  hangul_syllables();
  laws();
  places();
  malformed_bytes_stay();
  hostile_texts();
}
