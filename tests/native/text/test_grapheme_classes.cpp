// Classes of some code points, and the ends of the table.
#include "check.hpp"
#include "text/grapheme_classes.hpp"

using namespace bpe_beam;

int main() {
  using Class = GraphemeClass;
  CHECK(grapheme_class('a') == Class::kOther && grapheme_class(0x10FFFF) == Class::kOther);
  CHECK(grapheme_class('\r') == Class::kCr && grapheme_class('\n') == Class::kLf);
  CHECK(grapheme_class(0) == Class::kControl && grapheme_class(0xE0000) == Class::kControl);
  CHECK(grapheme_class(0x301) == Class::kExtend && grapheme_class(0x200D) == Class::kZwj);
  CHECK(grapheme_class(0x200C) == Class::kExtendOutside);
  CHECK(grapheme_class(0x94D) == Class::kLinker && grapheme_class(0x915) == Class::kConsonant);
  CHECK(grapheme_class(0x903) == Class::kSpacingMark && grapheme_class(0x600) == Class::kPrepend);
  CHECK(grapheme_class(0x1F1FB) == Class::kRegional &&
        grapheme_class(0xA9) == Class::kPictographic);
  CHECK(grapheme_class(0x1100) == Class::kL && grapheme_class(0x1161) == Class::kV);
  CHECK(grapheme_class(0x11A8) == Class::kT && grapheme_class(0xAC00) == Class::kLv);
  CHECK(grapheme_class(0xAC01) == Class::kLvt);
}
