// The patterns of o200k's family over UTF-8, without a regular-expression engine. With U for
// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L for [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C for cl100k's contractions:
//   [^\r\n\p{L}\p{N}]?U*L+C?|[^\r\n\p{L}\p{N}]?U+L*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
// Tekken (Mistral) has no contractions, and \p{N} for \p{N}{1,3}. Kimi has [\p{Han}]+ before the
// rest, no \p{Han} in U and L, and no slash after signs. Groups of numbers may begin at the right
// of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scan/char_runs.hpp"
#include "scan/word_starts.hpp"

namespace bpe_beam {

struct CasedRules {
  NumberRule numbers = {3};
  bool contractions = true;
  bool slash = true;
  bool han = false;
};

template <CasedRules kRules>
class CasedScanner {
 public:
  /// The end of the word that begins at `begin` < text.size(). Every byte belongs to one word.
  /// A byte that is not UTF-8 counts as neither letter, number nor space.
  static std::size_t next(std::string_view text, std::size_t begin) {
    const char* const end = text.data() + text.size();
    const char* const start = text.data() + begin;
    return static_cast<std::size_t>(word_end(text.data(), start, end) - text.data());
  }

  /// The positions at which words begin in the 64 bytes at `at`, where a word begins.
  static WordStarts starts(const char* at, const BlockClasses& classes) {
    constexpr MaskKinds kKinds = {.cased = true, .han = kRules.han};
    return o200k_starts<kRules.numbers, kRules.contractions, kRules.slash>(
        at, class_masks<kKinds>(at, classes));
  }

 private:
  static const char* word_end(const char* begin, const char* start, const char* end) {
    const Char first = char_at(start, end);
    if constexpr (kRules.han) {
      if (const char* const han = run_of(start, end, kHan); han > start) return han;
    }
    if (first.kind == CharClass::kNumber) return group_end<kRules.numbers>(begin, start, end);
    if (const char* const letters = letters_end(start, end, first)) {
      return letters + (kRules.contractions ? any_case_contraction(letters, end) : 0);
    }
    const char* const after = start + first.size;
    if (first.kind == CharClass::kOther) return signs_end(start, end);
    if (*start == ' ' && after < end && char_at(after, end).kind == CharClass::kOther) {
      return signs_end(after, end);
    }
    return spaces_or_lines_end(start, end);
  }

  /// The end of the match of the first two alternatives before the contraction; null if they do not
  /// match.
  static const char* letters_end(const char* start, const char* end, Char first) {
    if (first.kind == CharClass::kLetter) {
      const Cased cased = cased_end(start, end);
      return cased.with_lower != nullptr ? cased.with_lower : cased.upper_only;
    }
    if (is_newline(*start)) return nullptr;
    // A space or sign before the letters. A mark is a sign, and also a letter of U and L: if no
    // letter of L follows it, it is the L of U*L+, and a word of its own.
    const char* const after = start + first.size;
    const Cased cased = cased_end(after, end);
    if (cased.with_lower != nullptr) return cased.with_lower;
    if (first.size > 1 && (cased_bits(start, end).bits & kMark) != 0) return after;
    return cased.upper_only;
  }

  /// The properties of a character that may be in U or L.
  static CharBits cased_bits(const char* at, const char* end) {
    CharBits here = bits_at(at, end);
    if constexpr (kRules.han) {
      if ((here.bits & kHan) != 0) here.bits &= kHan;
    }
    return here;
  }

  struct Cased {
    const char* with_lower;  // the end of U*L+, null if it does not match
    const char* upper_only;  // the end of U+ if U*L+ does not match, null if neither does
  };

  /// Without a letter of L only after the run of U, U* backtracks to the last letter that is also
  /// in L, and L+ matches this letter alone. The remaining letters are all in U only, and are one
  /// word: so each letter is read at most three times.
  static Cased cased_end(const char* start, const char* end) {
    const char* at = start;
    while (at < end && *at >= 'A' && *at <= 'Z') ++at;
    const char* const lower = at;
    at = ascii_lower_end(at, end);
    if (at == end || static_cast<unsigned char>(*at) < 0x80) {
      if (at > lower) return {at, nullptr};
      return {nullptr, at > start ? at : nullptr};
    }
    if (at > lower) return {run_of(at, end, kLowerLike), nullptr};
    const char* both_end = nullptr;
    while (at < end) {
      const CharBits here = cased_bits(at, end);
      if ((here.bits & kUpperLike) == 0) {
        if ((here.bits & kLowerLike) != 0) return {run_of(at, end, kLowerLike), nullptr};
        break;
      }
      at += here.size;
      if ((here.bits & kLowerLike) != 0) both_end = at;
    }
    return {both_end, at > start ? at : nullptr};
  }

  static const char* ascii_lower_end(const char* at, const char* end) {
    while (end - at >= 8) {
      const std::size_t letters = ascii_letters<false>(at);
      at += letters;
      if (letters < 8) return at;
    }
    while (at < end && *at >= 'a' && *at <= 'z') ++at;
    return at;
  }

  /// The end of the run of characters that have one of `bits`.
  static const char* run_of(const char* at, const char* end, std::uint16_t bits) {
    while (at < end) {
      const CharBits here = cased_bits(at, end);
      if ((here.bits & bits) == 0) break;
      at += here.size;
    }
    return at;
  }

  /// The end of the match of [^\s\p{L}\p{N}]+[\r\n/]*.
  static const char* signs_end(const char* at, const char* end) {
    at = run_end(at, end, CharClass::kOther);
    while (at < end && (is_newline(*at) || (kRules.slash && *at == '/'))) ++at;
    return at;
  }
};

using O200kScanner = CasedScanner<CasedRules{}>;
using O200kRightScanner = CasedScanner<CasedRules{.numbers = {3, true}}>;
using TekkenScanner = CasedScanner<CasedRules{.numbers = {1}, .contractions = false}>;
using KimiScanner = CasedScanner<CasedRules{.slash = false, .han = true}>;

}  // namespace bpe_beam
