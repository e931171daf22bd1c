// The scanners by name: each finds the next word at or after a position.
//
// A word is never empty, so begin == end == text.size() means that no word remains. The scanners of
// the byte-level patterns, and Digits, Punctuation and WholeText, skip no text: each word begins
// where the previous one ended. A byte that is not UTF-8 is neither letter, number, space nor
// punctuation. All take linear time on any text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "scan/char_runs.hpp"
#include "scan/cl100k_scanner.hpp"
#include "scan/deepseek_scanner.hpp"
#include "scan/gemma_scanner.hpp"
#include "scan/gpt2_scanner.hpp"
#include "scan/o200k_scanner.hpp"
#include "scan/word_starts.hpp"
#include "text/unicode_scripts.hpp"

namespace bpe_beam {

struct Word {
  std::size_t begin;
  std::size_t end;
};

/// Makes a scanner from a function that returns the end of the word that begins at a position.
template <typename Scanner>
struct Contiguous {
  static Word next(std::string_view text, std::size_t from) {
    if (from >= text.size()) return {text.size(), text.size()};
    return {from, Scanner::next(text, from)};
  }

  static WordStarts starts(const char* at, const BlockClasses& classes) {
    return Scanner::starts(at, classes);
  }
};

using Gpt2 = Contiguous<Gpt2Scanner>;
using DigitsGpt2 = Contiguous<DigitsGpt2Scanner>;
using Cl100k = Contiguous<Cl100kScanner>;
using Cl100kRight = Contiguous<Cl100kRightScanner>;
using Cl100kEndSpaces = Contiguous<Cl100kEndSpacesScanner>;
using Qwen2 = Contiguous<Qwen2Scanner>;
using Nanochat = Contiguous<NanochatScanner>;
using Qwen35 = Contiguous<Qwen35Scanner>;
using O200k = Contiguous<O200kScanner>;
using O200kRight = Contiguous<O200kRightScanner>;
using Tekken = Contiguous<TekkenScanner>;
using Kimi = Contiguous<KimiScanner>;
using DeepSeek = Contiguous<DeepSeekScanner>;
using Gemma = Contiguous<GemmaScanner>;

/// The role of a character for a scanner of runs.
enum class Part : std::uint8_t {
  kGap,     // between words
  kSingle,  // a word of its own
  kRun,     // of a word as long as the run
  kOtherRun,
  kNotAscii
};

/// Words are runs of characters of one part; `Rule` maps the properties of a character to its part.
template <typename Rule>
struct RunScanner {
  static Word next(std::string_view text, std::size_t from) {
    const char* const end = text.data() + text.size();
    const char* at = skip(text.data() + from, end, Part::kGap);
    const char* const begin = at;
    if (at < end) {
      const Scripted first = part_at(at, end);
      at += first.size;
      if (first.part != Part::kSingle) at = skip(at, end, first.part);
    }
    return {static_cast<std::size_t>(begin - text.data()),
            static_cast<std::size_t>(at - text.data())};
  }

 private:
  struct Scripted {
    Part part;
    std::uint32_t size;
  };

  static constexpr std::array<Part, 256> kPartOfByte = [] {
    std::array<Part, 256> parts{};
    for (std::uint32_t c = 0; c < 256; ++c) {
      parts[c] = c < 0x80 ? Rule::part(kAsciiBits[c]) : Part::kNotAscii;
    }
    return parts;
  }();

  static_assert([] {
    for (unsigned char c = 'A'; c <= 'z'; ++c) {
      if ((c <= 'Z' || c >= 'a') && kPartOfByte[c] != kPartOfByte['a']) return false;
    }
    return true;
  }());

  static Scripted part_at(const char* at, const char* end) {
    const Part part = kPartOfByte[static_cast<unsigned char>(*at)];
    if (part != Part::kNotAscii) [[likely]]
      return {part, 1};
    const CharBits here = bits_at(at, end);
    return {Rule::part(here.bits), here.size};
  }

  static const char* skip(const char* at, const char* end, Part part) {
    // ASCII letters, the most frequent characters, eight at a time.
    if (part == kPartOfByte['a']) {
      while (end - at >= 8) {
        const std::size_t letters = ascii_letters(at);
        at += letters;
        if (letters < 8) break;
      }
    }
    while (at < end) {
      const Scripted here = part_at(at, end);
      if (here.part != part) break;
      at += here.size;
    }
    return at;
  }
};

constexpr bool has_class(std::uint16_t bits, CharClass kind) {
  return static_cast<CharClass>(bits & kClassBits) == kind;
}

struct BertRule {
  static constexpr Part part(std::uint16_t bits) {
    if (has_class(bits, CharClass::kSpace)) return Part::kGap;
    return (bits & kPunctuation) != 0 ? Part::kSingle : Part::kRun;
  }
};

struct WhitespaceRule {
  static constexpr Part part(std::uint16_t bits) {
    if (has_class(bits, CharClass::kSpace)) return Part::kGap;
    return (bits & kWordChar) != 0 ? Part::kRun : Part::kOtherRun;
  }
};

struct WhitespaceSplitRule {
  static constexpr Part part(std::uint16_t bits) {
    return has_class(bits, CharClass::kSpace) ? Part::kGap : Part::kRun;
  }
};

template <Part kNumber>
struct DigitsRule {
  static constexpr Part part(std::uint16_t bits) {
    return has_class(bits, CharClass::kNumber) ? kNumber : Part::kOtherRun;
  }
};

struct PunctuationRule {
  static constexpr Part part(std::uint16_t bits) {
    return (bits & kPunctuation) != 0 ? Part::kSingle : Part::kRun;
  }
};

using Bert = RunScanner<BertRule>;
using Whitespace = RunScanner<WhitespaceRule>;
using WhitespaceSplit = RunScanner<WhitespaceSplitRule>;
using Digits = RunScanner<DigitsRule<Part::kRun>>;
using DigitsIndividual = RunScanner<DigitsRule<Part::kSingle>>;
using Punctuation = RunScanner<PunctuationRule>;

/// Words of one script; spaces, and characters without a script, belong to the word before them.
struct UnicodeScripts {
  static Word next(std::string_view text, std::size_t from) {
    std::size_t begin = from;
    while (begin < text.size()) {
      const Scripted first = scripted_at(text, begin);
      if (first.script != 0) break;
      begin += first.size;
    }
    if (begin == text.size()) return {begin, begin};
    const Scripted first = scripted_at(text, begin);
    std::size_t end = begin + first.size;
    while (end < text.size()) {
      const Scripted here = scripted_at(text, end);
      if (here.script != 0 && here.script != first.script) break;
      end += here.size;
    }
    return {begin, end};
  }

 private:
  struct Scripted {
    std::uint8_t script;
    std::uint32_t size;
  };

  static Scripted scripted_at(std::string_view text, std::size_t at) {
    const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
    return {point.value == kMalformed ? std::uint8_t{0} : script_of(point.value), point.size};
  }
};

/// The whole text as one word.
struct WholeText {
  static Word next(std::string_view text, std::size_t from) { return {from, text.size()}; }
};

template <typename Scanner>
struct NamedScanner {
  std::string_view name;
};

/// The one list of scanners.
inline constexpr std::tuple kScanners{
    NamedScanner<Gpt2>{"gpt2"},
    NamedScanner<DigitsGpt2>{"digits_gpt2"},
    NamedScanner<Cl100k>{"cl100k"},
    NamedScanner<Cl100kRight>{"cl100k_right"},
    NamedScanner<Cl100kEndSpaces>{"cl100k_end_spaces"},
    NamedScanner<Qwen2>{"qwen2"},
    NamedScanner<Nanochat>{"nanochat"},
    NamedScanner<Qwen35>{"qwen35"},
    NamedScanner<O200k>{"o200k"},
    NamedScanner<O200kRight>{"o200k_right"},
    NamedScanner<Tekken>{"tekken"},
    NamedScanner<Kimi>{"kimi"},
    NamedScanner<DeepSeek>{"deepseek_v3"},
    NamedScanner<Gemma>{"gemma"},
    NamedScanner<Bert>{"bert"},
    NamedScanner<Whitespace>{"whitespace"},
    NamedScanner<WhitespaceSplit>{"whitespace_split"},
    NamedScanner<Digits>{"digits"},
    NamedScanner<DigitsIndividual>{"digits_individual"},
    NamedScanner<Punctuation>{"punctuation"},
    NamedScanner<UnicodeScripts>{"unicode_scripts"},
    NamedScanner<WholeText>{"none"},
};

inline constexpr auto kScannerNames =
    std::apply([](auto... scanners) { return std::array{scanners.name...}; }, kScanners);

/// Calls `use` with the scanner (an empty object) of a name of kScannerNames; returns false if
/// there is no such name.
template <typename Use>
bool with_scanner(std::string_view name, Use&& use) {
  const auto use_if_named = [&]<typename Scanner>(NamedScanner<Scanner> scanner) {
    return scanner.name == name && (use(Scanner{}), true);
  };
  return std::apply([&](auto... scanners) { return (use_if_named(scanners) || ...); }, kScanners);
}

}  // namespace bpe_beam
