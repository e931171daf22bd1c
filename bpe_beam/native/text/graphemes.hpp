// The ends of graphemes, which readers see as one character: the extended grapheme clusters of
// Unicode's standard annex 29.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/grapheme_classes.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// The state of a grapheme that decides whether the next character joins it.
class GraphemeState {
 public:
  explicit GraphemeState(GraphemeClass first) : last_(first) { count(first); }

  /// Returns whether a character of class `next` belongs to the grapheme; if so, adds it.
  bool take(GraphemeClass next) {
    if (!joins(next)) return false;
    if (last_ == GraphemeClass::kZwj) pictographic_ = false;
    last_ = next;
    count(next);
    return true;
  }

 private:
  using Class = GraphemeClass;

  static bool breaks(Class one) {
    return one == Class::kCr || one == Class::kLf || one == Class::kControl;
  }

  static bool extends(Class one) {
    return one == Class::kExtend || one == Class::kExtendOutside || one == Class::kLinker ||
           one == Class::kZwj;
  }

  static bool is_syllable(Class left, Class right) {
    switch (left) {
      case Class::kL:
        return right == Class::kL || right == Class::kV || right == Class::kLv ||
               right == Class::kLvt;
      case Class::kLv:
      case Class::kV: return right == Class::kV || right == Class::kT;
      case Class::kLvt:
      case Class::kT: return right == Class::kT;
      default: return false;
    }
  }

  [[nodiscard]] bool joins(Class next) const {
    if (last_ == Class::kCr && next == Class::kLf) return true;
    if (breaks(last_) || breaks(next)) return false;
    return extends(next) || next == Class::kSpacingMark || last_ == Class::kPrepend ||
           is_syllable(last_, next) || (linked_ && next == Class::kConsonant) ||
           (pictographic_ && last_ == Class::kZwj && next == Class::kPictographic) ||
           (odd_regional_ && next == Class::kRegional);
  }

  void count(Class one) {
    odd_regional_ = one == Class::kRegional && !odd_regional_;
    if (one == Class::kPictographic) {
      pictographic_ = true;
    } else if (!extends(one)) {
      pictographic_ = false;
    }
    if (one == Class::kConsonant) {
      consonant_ = true;
      linked_ = false;
    } else if (one == Class::kLinker) {
      linked_ = consonant_;
    } else if (one != Class::kExtend && one != Class::kZwj) {
      consonant_ = linked_ = false;
    }
  }

  Class last_;
  bool pictographic_ = false;  // an emoji, and only characters that extend it
  bool odd_regional_ = false;
  bool consonant_ =
      false;  // a consonant, and only characters that a conjunct may have before the next consonant
  bool linked_ = false;  // a linker after the consonant
};

/// The end of the grapheme that begins at `at` < text.size(). A malformed byte is one.
inline std::size_t grapheme_end(std::string_view text, std::size_t at) {
  const char* const end = text.data() + text.size();
  CodePoint point = decode_utf8(text.data() + at, end);
  if (point.value == kMalformed) return at + 1;
  GraphemeState state(grapheme_class(point.value));
  at += point.size;
  while (at < text.size()) {
    point = decode_utf8(text.data() + at, end);
    if (point.value == kMalformed || !state.take(grapheme_class(point.value))) break;
    at += point.size;
  }
  return at;
}

}  // namespace bpe_beam
