// The classes of 64 bytes of text at once, as masks: bit i of a mask is about byte i.
//
// Processors with AVX-512 compare 64 bytes at a time, with AVX2 32, with NEON 16, others eight in a
// 64-bit integer.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"
#include "text/vectors.hpp"

namespace bpe_beam {

inline constexpr std::size_t kBlock = 64;

/// Each byte of a character beyond ASCII has the character's class. All other bytes that are not
/// letters, numbers or spaces have the class CharClass::kOther.
struct ClassMasks {
  std::uint64_t letters;
  std::uint64_t numbers;
  std::uint64_t spaces;
  std::uint64_t beyond;    // not ASCII
  std::uint64_t blanks;    // ' '
  std::uint64_t newlines;  // '\n' and '\r'
  std::uint64_t apostrophes;
  std::uint64_t slashes;
  std::uint64_t uppers;    // letters of kUpperLike only
  std::uint64_t both = 0;  // letters of kUpperLike and of kLowerLike
  // Among the bytes beyond ASCII:
  std::uint64_t continuations = 0;  // not the first byte of a character
  std::uint64_t wide_spaces = 0;
  std::uint64_t wide_numbers = 0;
  std::uint64_t marks = 0;
  std::uint64_t malformed = 0;
  std::uint64_t han = 0;  // \p{Han}, with MaskKinds::han
  std::uint64_t cjk = 0;  // characters of is_cjk, with MaskKinds::cjk
  // With MaskKinds::cjk: neither of it nor letters, marks, numbers, spaces or signs.
  std::uint64_t unknown = 0;
  std::uint64_t cut = 0;  // characters that begin after byte kLastWhole
};

/// A character that begins at or before this byte of a block is entirely in the block.
inline constexpr std::size_t kLastWhole = kBlock - 4;

/// The bytes beyond ASCII that decide the class of most characters without reading each.
struct LeadMasks {
  std::uint64_t continuations;  // 0x80 to 0xBF
  // Leads of two bytes that begin a letter: all of U+0100 to 02BF and U+0400 to 047F; and U+00C0 to
  // 00FF without the signs of multiplication and division, whose second bytes are 0x97 and 0xB7.
  std::uint64_t two;
  // Leads of three bytes that begin letters only:
  std::uint64_t han;       // U+5000 to 8FFF
  std::uint64_t last_han;  // U+9000 to 9FFF
  std::uint64_t hangul;    // U+B000 to CFFF
};

/// Leads of two bytes that begin letters of one case: U+00C0 to 00FF without the two signs, and
/// U+0400 to 045F.
struct CaseMasks {
  std::uint64_t upper;
  std::uint64_t lower;
};

/// The classes of characters beyond ASCII that the masks have.
struct MaskKinds {
  bool cased = false;  // `uppers` and `both`
  bool han = false;
  bool cjk = false;  // and `unknown`
};

/// [一-龥぀-ゟ゠-ヿ]
constexpr bool is_cjk(std::uint32_t code_point) {
  return (code_point >= 0x4E00 && code_point <= 0x9FA5) ||
         (code_point >= 0x3040 && code_point <= 0x30FF);
}

/// Eight bytes at a time.
struct ScalarClasses {
  static std::uint64_t in_range(const char* at, unsigned first, unsigned last) {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kBlock / 8; ++i) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, at + i * 8, 8);
      mask |= in_range(bytes, first, last) << (i * 8);
    }
    return mask;
  }

  static void ascii(const char* at, ClassMasks& masks) {
    masks.uppers = in_range(at, 'A', 'Z');
    masks.letters = masks.uppers | in_range(at, 'a', 'z');
    masks.numbers = in_range(at, '0', '9');
    masks.blanks = in_range(at, ' ', ' ');
    masks.spaces = masks.blanks | in_range(at, '\t', '\r');
    masks.newlines = in_range(at, '\n', '\n') | in_range(at, '\r', '\r');
    masks.apostrophes = in_range(at, '\'', '\'');
    masks.slashes = in_range(at, '/', '/');
    masks.beyond = in_range(at, 0x80, 0xFF);
  }

  static void leads(const char* at, LeadMasks& masks) {
    masks.continuations = in_range(at, 0x80, 0xBF);
    const std::uint64_t signs = in_range(at, 0x97, 0x97) | in_range(at, 0xB7, 0xB7);
    masks.two = in_range(at, 0xC4, 0xCA) | in_range(at, 0xD0, 0xD1) |
                (in_range(at, 0xC3, 0xC3) & ~(signs >> 1));
    masks.han = in_range(at, 0xE5, 0xE8);
    masks.last_han = in_range(at, 0xE9, 0xE9);
    masks.hangul = in_range(at, 0xEB, 0xEC);
  }

  static void cases(const char* at, CaseMasks& masks) {
    const auto second = [at](unsigned first, unsigned last) {
      return in_range(at, first, last) >> 1;
    };
    const std::uint64_t c3 = in_range(at, 0xC3, 0xC3);
    const std::uint64_t d0 = in_range(at, 0xD0, 0xD0);
    masks.upper = (c3 & second(0x80, 0x9E) & ~second(0x97, 0x97)) | (d0 & second(0x80, 0xAF));
    masks.lower = (c3 & second(0x9F, 0xBF) & ~second(0xB7, 0xB7)) | (d0 & second(0xB0, 0xBF)) |
                  (in_range(at, 0xD1, 0xD1) & second(0x80, 0x9F));
  }

  static std::uint64_t controls(const char* at) {
    return (in_range(at, 0, 0x1F) & ~in_range(at, '\t', '\r')) | in_range(at, 0x7F, 0x7F);
  }

 private:
  /// `first` and `last` are both ASCII or both beyond it.
  static std::uint64_t in_range(std::uint64_t bytes, unsigned first, unsigned last) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHigh = 0x80 * kOnes;
    // Within seven bits no sum carries into the next byte; its high bit is the comparison's result.
    const std::uint64_t low = bytes & ~kHigh;
    const std::uint64_t from_first = low + (0x80 - (first & 0x7F)) * kOnes;
    const std::uint64_t beyond_last = low + (0x80 - (last & 0x7F) - 1) * kOnes;
    const std::uint64_t half = first < 0x80 ? ~bytes : bytes;
    const std::uint64_t in_range = from_first & ~beyond_last & half & kHigh;
    return (in_range * 0x0002040810204081) >> 56;  // the eight high bits, side by side
  }
};

#if defined(__x86_64__)
/// The bytes of a block in two registers.
struct BlockVectors {
  BPE_BEAM_AVX2 static BlockVectors load(const char* at) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32))};
  }

  /// The block with these bits set in each byte.
  [[nodiscard]] BPE_BEAM_AVX2 BlockVectors with(std::uint8_t bits) const {
    const __m256i all = _mm256_set1_epi8(static_cast<char>(bits));
    return {_mm256_or_si256(low, all), _mm256_or_si256(high, all)};
  }

  /// The bytes beyond ASCII.
  [[nodiscard]] BPE_BEAM_AVX2 std::uint64_t beyond() const { return high_bits(low, high); }

  [[nodiscard]] BPE_BEAM_AVX2 std::uint64_t equal(std::uint8_t value) const {
    const __m256i wanted = _mm256_set1_epi8(static_cast<char>(value));
    return high_bits(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted));
  }

  [[nodiscard]] BPE_BEAM_AVX2 std::uint64_t in_range(int first, int last) const {
    const __m256i offset = _mm256_set1_epi8(static_cast<char>(first));
    const __m256i most = _mm256_set1_epi8(static_cast<char>(last - first));
    const __m256i from_low = _mm256_sub_epi8(low, offset);
    const __m256i from_high = _mm256_sub_epi8(high, offset);
    return high_bits(_mm256_cmpeq_epi8(_mm256_min_epu8(from_low, most), from_low),
                     _mm256_cmpeq_epi8(_mm256_min_epu8(from_high, most), from_high));
  }

  BPE_BEAM_AVX2 static std::uint64_t high_bits(__m256i low, __m256i high) {
    const auto half = [](int bits) { return static_cast<std::uint32_t>(bits); };
    return half(_mm256_movemask_epi8(low)) |
           (static_cast<std::uint64_t>(half(_mm256_movemask_epi8(high))) << 32);
  }

  __m256i low;
  __m256i high;
};
#elif defined(__aarch64__)
/// The bytes of a block in four registers.
struct BlockVectors {
  static BlockVectors load(const char* at) {
    return {vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(at))};
  }

  /// The block with these bits set in each byte.
  [[nodiscard]] BlockVectors with(std::uint8_t bits) const {
    const auto part = [&](int i) { return vorrq_u8(bytes.val[i], vdupq_n_u8(bits)); };
    return {{part(0), part(1), part(2), part(3)}};
  }

  /// The bytes beyond ASCII.
  [[nodiscard]] std::uint64_t beyond() const {
    return bits_where([](uint8x16_t part) { return vcltzq_s8(vreinterpretq_s8_u8(part)); });
  }

  [[nodiscard]] std::uint64_t equal(std::uint8_t value) const {
    return bits_where([=](uint8x16_t part) { return vceqq_u8(part, vdupq_n_u8(value)); });
  }

  [[nodiscard]] std::uint64_t in_range(std::uint8_t first, std::uint8_t last) const {
    const uint8x16_t most = vdupq_n_u8(static_cast<std::uint8_t>(last - first));
    return bits_where(
        [=](uint8x16_t part) { return vcleq_u8(vsubq_u8(part, vdupq_n_u8(first)), most); });
  }

  template <class Holds>
  [[nodiscard]] std::uint64_t bits_where(Holds holds) const {
    // A bit of each byte remains; sums of neighbours collect eight of them, and then all.
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const auto part = [&](int i) { return vandq_u8(holds(bytes.val[i]), bits); };
    const uint8x16_t sums = vpaddq_u8(vpaddq_u8(part(0), part(1)), vpaddq_u8(part(2), part(3)));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
  }

  uint8x16x4_t bytes;
};
#endif

#ifdef BPE_BEAM_VECTORS
/// By vectors.
struct VectorClasses {
  BPE_BEAM_AVX2 static void ascii(const char* at, ClassMasks& masks) {
    const auto block = BlockVectors::load(at);
    // Only letters become lower letters by this bit.
    masks.letters = block.with(0x20).in_range('a', 'z');
    masks.uppers = block.in_range('A', 'Z');
    masks.numbers = block.in_range('0', '9');
    masks.blanks = block.equal(' ');
    masks.spaces = masks.blanks | block.in_range('\t', '\r');
    masks.newlines = block.equal('\n') | block.equal('\r');
    masks.apostrophes = block.equal('\'');
    masks.slashes = block.equal('/');
    masks.beyond = block.beyond();
  }

  BPE_BEAM_AVX2 static void leads(const char* at, LeadMasks& masks) {
    const auto block = BlockVectors::load(at);
    masks.continuations = block.in_range(0x80, 0xBF);
    const std::uint64_t signs = block.equal(0x97) | block.equal(0xB7);
    masks.two = block.in_range(0xC4, 0xCA) | block.in_range(0xD0, 0xD1) |
                (block.equal(0xC3) & ~(signs >> 1));
    masks.han = block.in_range(0xE5, 0xE8);
    masks.last_han = block.equal(0xE9);
    masks.hangul = block.in_range(0xEB, 0xEC);
  }

  BPE_BEAM_AVX2 static void cases(const char* at, CaseMasks& masks) {
    const auto block = BlockVectors::load(at);
    const std::uint64_t c3 = block.equal(0xC3);
    const std::uint64_t d0 = block.equal(0xD0);
    const std::uint64_t signs = block.equal(0x97) | block.equal(0xB7);
    const std::uint64_t until_9e = block.in_range(0x80, 0x9E);
    const std::uint64_t until_9f = until_9e | block.equal(0x9F);
    const std::uint64_t until_af = block.in_range(0x80, 0xAF);
    const std::uint64_t all = block.in_range(0x80, 0xBF);
    masks.upper = (c3 & ((until_9e & ~signs) >> 1)) | (d0 & (until_af >> 1));
    masks.lower = (c3 & ((all & ~until_9e & ~signs) >> 1)) | (d0 & ((all & ~until_af) >> 1)) |
                  (block.equal(0xD1) & (until_9f >> 1));
  }

  BPE_BEAM_AVX2 static std::uint64_t controls(const char* at) {
    const auto block = BlockVectors::load(at);
    return (block.in_range(0, 0x1F) & ~block.in_range('\t', '\r')) | block.equal(0x7F);
  }
};
#endif

#if defined(__x86_64__)
/// What most blocks need, by registers of 64 bytes.
struct WideClasses {
  BPE_BEAM_AVX512 static void ascii(const char* at, ClassMasks& masks) {
    const __m512i block = _mm512_loadu_si512(at);
    // Only letters become lower letters by this bit.
    masks.letters = in_range(_mm512_or_si512(block, _mm512_set1_epi8(0x20)), 'a', 'z');
    masks.uppers = in_range(block, 'A', 'Z');
    masks.numbers = in_range(block, '0', '9');
    masks.blanks = equal(block, ' ');
    masks.spaces = masks.blanks | in_range(block, '\t', '\r');
    masks.newlines = equal(block, '\n') | equal(block, '\r');
    masks.apostrophes = equal(block, '\'');
    masks.slashes = equal(block, '/');
    masks.beyond = _mm512_movepi8_mask(block);
  }

  BPE_BEAM_AVX512 static void leads(const char* at, LeadMasks& masks) {
    const __m512i block = _mm512_loadu_si512(at);
    masks.continuations = in_range(block, 0x80, 0xBF);
    const std::uint64_t signs = equal(block, 0x97) | equal(block, 0xB7);
    masks.two = in_range(block, 0xC4, 0xCA) | in_range(block, 0xD0, 0xD1) |
                (equal(block, 0xC3) & ~(signs >> 1));
    masks.han = in_range(block, 0xE5, 0xE8);
    masks.last_han = equal(block, 0xE9);
    masks.hangul = in_range(block, 0xEB, 0xEC);
  }

 private:
  BPE_BEAM_AVX512 static std::uint64_t equal(__m512i block, int value) {
    return _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(static_cast<char>(value)));
  }

  BPE_BEAM_AVX512 static std::uint64_t in_range(__m512i block, int first, int last) {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(first));
    const __m512i most = _mm512_set1_epi8(static_cast<char>(last - first));
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(block, offset), most);
  }
};
#endif

/// The implementation for this machine's processor.
struct BlockClasses {
  void (*ascii)(const char* at, ClassMasks& masks) = ScalarClasses::ascii;
  void (*leads)(const char* at, LeadMasks& masks) = ScalarClasses::leads;
  void (*cases)(const char* at, CaseMasks& masks) = ScalarClasses::cases;
  // ASCII that is neither letter, number, space nor sign.
  std::uint64_t (*controls)(const char* at) = ScalarClasses::controls;

  static BlockClasses best() {
#if defined(__x86_64__)
    if (has_widest_vectors()) {
      return {WideClasses::ascii, WideClasses::leads, VectorClasses::cases,
              VectorClasses::controls};
    }
#endif
#ifdef BPE_BEAM_VECTORS
    if (has_wide_vectors()) {
      return {VectorClasses::ascii, VectorClasses::leads, VectorClasses::cases,
              VectorClasses::controls};
    }
#endif
    return {};
  }
};

/// Adds the characters beyond ASCII to the masks of a block.
template <MaskKinds kKinds>
void add_beyond_ascii(const char* at, const BlockClasses& classes, ClassMasks& masks) {
  LeadMasks leads;
  classes.leads(at, leads);
  masks.continuations = leads.continuations;
  const std::uint64_t second = leads.continuations >> 1;
  const auto of_three = [&](std::uint64_t lead) {
    lead &= second & (leads.continuations >> 2);
    return lead | (lead << 1) | (lead << 2);
  };
  std::uint64_t letters = 0;
  if constexpr (kKinds.cjk) {
    masks.cjk = of_three(leads.han);  // not all of U+9000 to 9FFF
    letters = masks.cjk | of_three(leads.hangul);
  } else if constexpr (kKinds.han) {
    masks.han = of_three(leads.han | leads.last_han);
    letters = masks.han | of_three(leads.hangul);
  } else {
    letters = of_three(leads.han | leads.last_han | leads.hangul);
  }
  masks.letters |= letters;
  masks.both |= letters;  // of these scripts, letters have no case
  std::uint64_t left = masks.beyond & ~letters;
  if constexpr (kKinds.cased) {
    CaseMasks cases;
    classes.cases(at, cases);
    const std::uint64_t upper = cases.upper | (cases.upper << 1);
    const std::uint64_t cased = upper | cases.lower | (cases.lower << 1);
    masks.uppers |= upper;
    masks.letters |= cased;
    left &= ~cased;
  } else {
    const std::uint64_t two = leads.two & second;
    masks.letters |= two | (two << 1);
    left &= ~(two | (two << 1));
  }
  // By class, because a branch on the class of each character would often be mispredicted.
  std::uint64_t of_class[kClassBits + 1] = {};
  while (left != 0) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (i > kLastWhole) {
      masks.cut = left;
      break;
    }
    const CodePoint point = decode_utf8(at + i, at + kBlock);
    const std::uint64_t bytes = ((std::uint64_t{1} << point.size) - 1) << i;
    left &= ~bytes;
    if (point.value == kMalformed) {
      masks.malformed |= bytes;
      continue;
    }
    const std::uint16_t bits = char_bits(point.value);
    of_class[bits & kClassBits] |= bytes;
    masks.marks |= (bits & kMark) != 0 ? bytes : 0;
    if constexpr (kKinds.han) masks.han |= (bits & kHan) != 0 ? bytes : 0;
    if constexpr (kKinds.cjk) {
      constexpr std::uint16_t kKnown = kMark | kSign;
      const bool other = static_cast<CharClass>(bits & kClassBits) == CharClass::kOther;
      if (is_cjk(point.value)) {
        masks.cjk |= bytes;
      } else if (other && (bits & kKnown) == 0) {
        masks.unknown |= bytes;
      }
    }
    if constexpr (kKinds.cased) {
      const bool upper = (bits & kUpperLike) != 0 &&
                         static_cast<CharClass>(bits & kClassBits) == CharClass::kLetter;
      const bool lower = (bits & kLowerLike) != 0;
      if (upper) (lower ? masks.both : masks.uppers) |= bytes;
    }
  }
  const auto of = [&](CharClass kind) { return of_class[static_cast<std::size_t>(kind)]; };
  masks.letters |= of(CharClass::kLetter);
  masks.numbers |= masks.wide_numbers = of(CharClass::kNumber);
  masks.spaces |= masks.wide_spaces = of(CharClass::kSpace);
}

/// The masks of the 64 bytes at `at`.
template <MaskKinds kKinds>
ClassMasks class_masks(const char* at, const BlockClasses& classes) {
  ClassMasks masks;
  classes.ascii(at, masks);
  if (masks.beyond != 0) [[unlikely]]
    add_beyond_ascii<kKinds>(at, classes, masks);
  return masks;
}

}  // namespace bpe_beam
