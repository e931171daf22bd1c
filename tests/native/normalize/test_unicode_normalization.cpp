// The tables: what no Unicode version will change, and that they agree with one another.
// tests/tokenizer/test_native_normalizers.py compares every code point with other packages.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "check.hpp"
#include "normalize/unicode_normalization.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint8_t kInert = kInertInNfc | kInertInNfd | kInertInNfkc | kInertInNfkd;

void ascii_is_inert() {
  for (std::uint32_t c = 0; c < 0x80; ++c) {
    const NormalizationRecord& record = normalization_record(c);
    CHECK((record.flags & kInert) == kInert && record.canonical_size == 0);
    CHECK(((record.flags & kAssignedControl) != 0) == (c < 0x20 || c == 0x7F));
    CHECK(lower_case(c) == (c >= 'A' && c <= 'Z' ? c + 32 : c));
  }
}

/// Parts of decompositions decompose no further, and what is inert has none.
void decompositions_are_full() {
  std::size_t canonical = 0;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const NormalizationRecord& record = normalization_record(point);
    if ((record.flags & kInertInNfd) != 0) CHECK(record.canonical_size == 0);
    if ((record.flags & kInertInNfkd) != 0) CHECK(record.compatible_size == 0);
    if (record.combining_class != 0) CHECK((record.flags & kInert) == 0);
    if (record.canonical_size != 0) ++canonical;
    for (std::size_t i = 0; i < record.canonical_size; ++i) {
      CHECK(record.canonical + i < std::size(kDecompositions));
      CHECK(normalization_record(kDecompositions[record.canonical + i]).canonical_size == 0);
    }
    for (std::size_t i = 0; i < record.compatible_size; ++i) {
      CHECK(record.compatible + i < std::size(kDecompositions));
      CHECK(normalization_record(kDecompositions[record.compatible + i]).compatible_size == 0);
    }
  }
  CHECK(canonical > 2000);
}

void compositions_are_sorted_and_flagged() {
  CHECK(std::is_sorted(std::begin(kCompositions), std::end(kCompositions),
                       [](const Composition& a, const Composition& b) {
                         return a.first != b.first ? a.first < b.first : a.second < b.second;
                       }));
  for (const Composition& row : kCompositions) {
    CHECK((normalization_record(row.second).flags & kComposesAsSecond) != 0);
    CHECK((normalization_record(row.second).flags & kInertInNfc) == 0);
    CHECK(normalization_record(row.composed).canonical_size >= 2);
  }
}

void known_characters() {
  CHECK(normalization_record(0x301).combining_class == 230);
  CHECK(normalization_record(0x323).combining_class == 220);
  CHECK(normalization_record(0x345).combining_class == 240);
  // é is composed, ﬁ has a compatibility decomposition only, U+0340 is no longer used.
  CHECK(normalization_record(0xE9).canonical_size == 2);
  CHECK((normalization_record(0xE9).flags & kInert) == (kInertInNfc | kInertInNfkc));
  CHECK(normalization_record(0xFB01).canonical_size == 0);
  CHECK(normalization_record(0xFB01).compatible_size == 2);
  CHECK(normalization_record(0x340).canonical_size == 1);
  // Hangul: a syllable, a vowel, a tail.
  CHECK((normalization_record(0xAC01).flags & kHangulSyllable) != 0);
  CHECK((normalization_record(0x1161).flags & kComposesAsSecond) != 0);
  CHECK((normalization_record(0x11A8).flags & kInertInNfc) == 0);
  // Controls: Cc, Cf, Co; what is unassigned is none.
  for (const std::uint32_t control : {0x85, 0xAD, 0x200B, 0xFEFF, 0xE000, 0x10FFFD}) {
    CHECK((normalization_record(control).flags & kAssignedControl) != 0);
  }
  CHECK((normalization_record(0x10FFFF).flags & kAssignedControl) == 0);
}

void lower_case_of_others() {
  CHECK(lower_case(0xC9) == 0xE9);
  CHECK(lower_case(0x3A3) == 0x3C3);
  CHECK(lower_case(0x1C5) == 0x1C6);  // a title-case letter
  CHECK(lower_case(0x130) == 'i');
  CHECK(lower_case(0x1E9E) == 0xDF);
  CHECK(lower_case(0x2126) == 0x3C9);  // the ohm sign
  CHECK(lower_case(0x10400) == 0x10428);
  CHECK(lower_case(0x1F12) == 0x1F12 && lower_case(0x4E00) == 0x4E00);
  CHECK(lower_case(0x10FFFF) == 0x10FFFF);
}

}  // namespace

int main() {
  ascii_is_inert();
  decompositions_are_full();
  compositions_are_sorted_and_flagged();
  known_characters();
  lower_case_of_others();
}
