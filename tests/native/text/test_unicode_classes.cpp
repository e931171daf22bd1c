// The table of classes: characters whose class no Unicode version will change.
// tests/native/scan/test_gpt2_scanner.py compares every code point with the `regex` package.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "text/unicode_classes.hpp"

using namespace bpe_beam;

namespace {

bool all_are(CharClass kind, const std::vector<std::uint32_t>& code_points) {
  for (const std::uint32_t code_point : code_points) {
    if (char_class(code_point) != kind) {
      std::fprintf(stderr, "U+%04X\n", code_point);
      return false;
    }
  }
  return true;
}

void ascii() {
  for (std::uint32_t c = 0; c < 0x80; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const CharClass expected = letter                                 ? CharClass::kLetter
                               : c >= '0' && c <= '9'                 ? CharClass::kNumber
                               : c == ' ' || (c >= '\t' && c <= '\r') ? CharClass::kSpace
                                                                      : CharClass::kOther;
    CHECK(char_class(c) == expected);
  }
}

/// White_Space has these 25 members, and none of the look-alikes.
void spaces() {
  const std::vector<std::uint32_t> spaces = {0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x20,   0x85,
                                             0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                             0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200A, 0x2028,
                                             0x2029, 0x202F, 0x205F, 0x3000};
  CHECK(all_are(CharClass::kSpace, spaces));
  std::size_t number = 0;
  for (std::uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (char_class(code_point) == CharClass::kSpace) ++number;
  }
  CHECK(number == spaces.size());
  // FS to US (spaces to Python), Mongolian vowel separator, zero-width space and joiners, BOM.
  CHECK(all_are(CharClass::kOther,
                {0x1C, 0x1D, 0x1E, 0x1F, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF}));
}

void letters() {
  // Latin, Greek, Cyrillic, Hebrew, Arabic, Thai, kana, Hangul, Han and its extensions' first,
  // modifier letters, and the ordinal indicators (Lo, not numbers).
  CHECK(all_are(CharClass::kLetter,
                {0xE9, 0xDF, 0x3B1, 0x436, 0x5D0, 0x627, 0xE01, 0x3042, 0xAC00, 0xD7A3, 0x4E00,
                 0x9FA5, 0x3400, 0x20000, 0x2A700, 0x30000, 0x2B0, 0xAA, 0xBA}));
}

void numbers() {
  // Nd, Nl, No: Arabic-Indic, Devanagari, superscript, fraction, Roman, circled, mathematical.
  CHECK(all_are(CharClass::kNumber,
                {0x660, 0x969, 0xB2, 0xBD, 0x2167, 0x2460, 0x3007, 0x1D7CE, 0x1F100}));
}

void others() {
  // Combining marks are no letters; symbols, surrogates, private use, what is never assigned.
  CHECK(all_are(CharClass::kOther, {0x300, 0x93E, 0x20AC, 0x3001, 0x1F600, 0xD800, 0xDFFF, 0xE000,
                                    0xF8FF, 0xFFFE, 0xFFFF, 0xF0000, 0x10FFFD, 0x10FFFF}));
}

bool all_have(std::uint16_t bits, const std::vector<std::uint32_t>& code_points) {
  for (const std::uint32_t code_point : code_points) {
    if ((char_bits(code_point) & ~kClassBits) != bits) {
      std::fprintf(stderr, "U+%04X has %d\n", code_point, char_bits(code_point));
      return false;
    }
  }
  return true;
}

/// All the bits above the class, of characters of each sort.
void properties() {
  static_assert(kAsciiBits['A'] == (kUpperLike | kWordChar | 1));
  CHECK(all_have(kUpperLike | kWordChar, {'A', 'Z', 0xC9, 0x416, 0x1C5}));  // Lu, Lt
  CHECK(all_have(kLowerLike | kWordChar, {'a', 'z', 0xE9, 0x436, 0x17F}));  // Ll
  CHECK(all_have(kUpperLike | kLowerLike | kWordChar, {0x2B0, 0x5D0}));     // Lm, Lo
  CHECK(all_have(kUpperLike | kLowerLike | kWordChar | kHan, {0x3005, 0x4E00}));
  constexpr std::uint16_t kAnyMark = kUpperLike | kLowerLike | kMark | kWordChar;
  CHECK(all_have(kAnyMark | kNonspacingMark, {0x300, 0x5B0, 0xE31}));  // Mn
  CHECK(all_have(kAnyMark, {0x903, 0x20DD}));                          // Mc, Me
  CHECK(all_have(kWordChar, {'0', 0x663, 0x1D7CE}));                   // Nd
  CHECK(all_have(kWordChar | kPunctuation | kSign, {'_', 0x203F}));    // Pc
  for (const char c : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~")) {
    CHECK(all_have(kPunctuation | kSign, {static_cast<std::uint32_t>(c)}));
  }
  CHECK(all_have(kPunctuation | kSign, {0x3001, 0x2019, 0xBF}));
  CHECK(all_have(kSign, {0x20AC, 0x1F600}));
  CHECK(all_have(kSign | kHan, {0x2E80, 0x2F00}));
  CHECK(all_have(kWordChar | kHan, {0x3007}));
  CHECK(all_have(0, {' ', 0xA0, 0xBD}));
  // Cc, Cf, Cs, Co, Cn; the joiners are word characters to `regex`.
  CHECK(all_have(kControl, {0, '\t', '\n', 0x7F, 0xAD, 0xFEFF, 0xD800, 0xE000, 0xFFFF, 0x10FFFF}));
  CHECK(all_have(kControl | kWordChar, {0x200C, 0x200D}));
}

/// The class is the low two bits of the properties, everywhere.
void class_and_bits_agree() {
  bool agree = true;
  for (std::uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    agree &= static_cast<int>(char_class(code_point)) == (char_bits(code_point) & kClassBits);
  }
  CHECK(agree);
}

}  // namespace

int main() {
  ascii();
  spaces();
  letters();
  numbers();
  others();
  properties();
  class_and_bits_agree();
}
