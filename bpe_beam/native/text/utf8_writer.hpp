// UTF-8 from strings whose characters have one, two or four bytes each, like Python's strings.
//
// Processors with AVX2 or NEON write eight characters at once, others one by one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "text/vectors.hpp"

namespace bpe_beam {

namespace utf8_writer_detail {

/// Shuffles that move the bytes of characters together: indexed by the characters of eight that
/// have two bytes; and by the characters of four that have two bytes or more (lower half) and
/// three (upper half).
using Shuffles = std::array<std::array<std::uint8_t, 16>, 256>;

constexpr Shuffles shuffles(std::size_t lanes) {
  const std::size_t width = 16 / lanes;
  Shuffles shuffles{};
  for (std::size_t index = 0; index < 256; ++index) {
    std::size_t to = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t size = 1 + (index >> lane & 1) + (lanes == 4 ? index >> (lane + 4) & 1 : 0);
      for (std::size_t byte = 0; byte < size; ++byte) {
        shuffles[index][to++] = static_cast<std::uint8_t>(lane * width + byte);
      }
    }
  }
  return shuffles;
}

inline constexpr Shuffles kOfEight = shuffles(8);
inline constexpr Shuffles kOfFour = shuffles(4);

}  // namespace utf8_writer_detail

#if defined(__x86_64__)
/// The UTF-8 of eight code points below 0x10000.
class Utf8Vectors {
 public:
  using Points = __m128i;

  /// Loads eight units as 16-bit lanes. Returns false if one is 0x10000 or more.
  BPE_BEAM_AVX2 static bool load(const std::uint8_t* at, Points& points) {
    points = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
    return true;
  }
  BPE_BEAM_AVX2 static bool load(const std::uint16_t* at, Points& points) {
    points = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return true;
  }
  BPE_BEAM_AVX2 static bool load(const std::uint32_t* at, Points& points) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 4));
    points = _mm_packus_epi32(low, high);
    return _mm_testz_si128(_mm_or_si128(low, high), _mm_set1_epi32(~0xFFFF)) != 0;
  }

  /// Writes eight code points, and up to 16 more bytes without meaning. Returns the end of their
  /// UTF-8.
  BPE_BEAM_AVX2 static char* put(Points points, char* out, bool& surrogate) {
    if (_mm_testz_si128(points, _mm_set1_epi16(~0x7F)) != 0) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(points, points));
      return out + 8;
    }
    if (_mm_testz_si128(points, _mm_set1_epi16(~0x7FF)) != 0) return put_two(points, out);
    return put_three(points, out, surrogate);
  }

 private:
  BPE_BEAM_AVX2 static void store(__m128i lanes, const std::array<std::uint8_t, 16>& shuffle,
                                  char* out) {
    const __m128i order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shuffle.data()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(lanes, order));
  }

  /// For code points below 0x800.
  BPE_BEAM_AVX2 static char* put_two(__m128i points, char* out) {
    const __m128i last = _mm_and_si128(points, _mm_set1_epi16(0x3F));
    const __m128i both = _mm_or_si128(_mm_srli_epi16(points, 6), _mm_slli_epi16(last, 8));
    const __m128i two = _mm_or_si128(both, _mm_set1_epi16(static_cast<short>(0x80C0)));
    const __m128i long_ones = _mm_cmpgt_epi16(points, _mm_set1_epi16(0x7F));
    const auto index =
        static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(long_ones, _mm_setzero_si128())));
    store(_mm_blendv_epi8(points, two, long_ones), utf8_writer_detail::kOfEight[index], out);
    return out + 8 + std::popcount(index);
  }

  BPE_BEAM_AVX2 static char* put_three(__m128i points, char* out, bool& surrogate) {
    const __m128i top = _mm_and_si128(points, _mm_set1_epi16(static_cast<short>(0xF800)));
    const __m128i matches = _mm_cmpeq_epi16(top, _mm_set1_epi16(static_cast<short>(0xD800)));
    surrogate |= _mm_movemask_epi8(matches) != 0;
    const __m256i point = _mm256_cvtepu16_epi32(points);
    const __m256i six = _mm256_set1_epi32(0x3F);
    const __m256i last = _mm256_and_si256(point, six);
    const __m256i upper = _mm256_srli_epi32(point, 6);
    const __m256i two = _mm256_or_si256(_mm256_or_si256(upper, _mm256_slli_epi32(last, 8)),
                                        _mm256_set1_epi32(0x80C0));
    const __m256i middle = _mm256_slli_epi32(_mm256_and_si256(upper, six), 8);
    const __m256i three =
        _mm256_or_si256(_mm256_or_si256(_mm256_srli_epi32(point, 12), _mm256_set1_epi32(0x8080E0)),
                        _mm256_or_si256(middle, _mm256_slli_epi32(last, 16)));
    const __m256i from_two = _mm256_cmpgt_epi32(point, _mm256_set1_epi32(0x7F));
    const __m256i from_three = _mm256_cmpgt_epi32(point, _mm256_set1_epi32(0x7FF));
    const __m256i lanes =
        _mm256_blendv_epi8(_mm256_blendv_epi8(point, two, from_two), three, from_three);
    const auto twos = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(from_two)));
    const auto threes = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(from_three)));
    const unsigned first = (twos & 0xF) | (threes & 0xF) << 4;
    const unsigned second = twos >> 4 | (threes & 0xF0);
    store(_mm256_castsi256_si128(lanes), utf8_writer_detail::kOfFour[first], out);
    out += 4 + std::popcount(first);
    store(_mm256_extracti128_si256(lanes, 1), utf8_writer_detail::kOfFour[second], out);
    return out + 4 + std::popcount(second);
  }
};
#elif defined(__aarch64__)
/// The UTF-8 of eight code points below 0x10000.
class Utf8Vectors {
 public:
  using Points = uint16x8_t;

  /// Loads eight units as 16-bit lanes. Returns false if one is 0x10000 or more.
  static bool load(const std::uint8_t* at, Points& points) {
    points = vmovl_u8(vld1_u8(at));
    return true;
  }
  static bool load(const std::uint16_t* at, Points& points) {
    points = vld1q_u16(at);
    return true;
  }
  static bool load(const std::uint32_t* at, Points& points) {
    const uint32x4_t low = vld1q_u32(at);
    const uint32x4_t high = vld1q_u32(at + 4);
    points = vcombine_u16(vmovn_u32(low), vmovn_u32(high));
    return vmaxvq_u32(vorrq_u32(low, high)) < 0x10000;
  }

  /// Writes eight code points, and up to 16 more bytes without meaning. Returns the end of their
  /// UTF-8.
  static char* put(Points points, char* out, bool& surrogate) {
    const std::uint16_t largest = vmaxvq_u16(points);
    if (largest >= 0x800) return put_three(points, out, surrogate);
    if (largest >= 0x80) return put_two(points, out);
    vst1_u8(reinterpret_cast<std::uint8_t*>(out), vmovn_u16(points));
    return out + 8;
  }

 private:
  static void store(uint8x16_t lanes, const std::array<std::uint8_t, 16>& shuffle, char* out) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(out), vqtbl1q_u8(lanes, vld1q_u8(shuffle.data())));
  }

  /// For code points below 0x800.
  static char* put_two(Points points, char* out) {
    const uint16x8_t last = vshlq_n_u16(vandq_u16(points, vdupq_n_u16(0x3F)), 8);
    const uint16x8_t both = vorrq_u16(vshrq_n_u16(points, 6), last);
    const uint16x8_t two = vorrq_u16(both, vdupq_n_u16(0x80C0));
    const uint16x8_t long_ones = vcgtq_u16(points, vdupq_n_u16(0x7F));
    const uint16x8_t bits = {1, 2, 4, 8, 16, 32, 64, 128};
    const unsigned index = vaddvq_u16(vandq_u16(long_ones, bits));
    store(vreinterpretq_u8_u16(vbslq_u16(long_ones, two, points)),
          utf8_writer_detail::kOfEight[index], out);
    return out + 8 + std::popcount(index);
  }

  static char* put_three(Points points, char* out, bool& surrogate) {
    const uint16x8_t top = vandq_u16(points, vdupq_n_u16(0xF800));
    surrogate |= vmaxvq_u16(vceqq_u16(top, vdupq_n_u16(0xD800))) != 0;
    out = put_four(vmovl_u16(vget_low_u16(points)), out);
    return put_four(vmovl_high_u16(points), out);
  }

  static char* put_four(uint32x4_t point, char* out) {
    const uint32x4_t six = vdupq_n_u32(0x3F);
    const uint32x4_t last = vandq_u32(point, six);
    const uint32x4_t upper = vshrq_n_u32(point, 6);
    const uint32x4_t two = vorrq_u32(vorrq_u32(upper, vshlq_n_u32(last, 8)), vdupq_n_u32(0x80C0));
    const uint32x4_t middle = vshlq_n_u32(vandq_u32(upper, six), 8);
    const uint32x4_t three = vorrq_u32(vorrq_u32(vshrq_n_u32(point, 12), vdupq_n_u32(0x8080E0)),
                                       vorrq_u32(middle, vshlq_n_u32(last, 16)));
    const uint32x4_t from_two = vcgtq_u32(point, vdupq_n_u32(0x7F));
    const uint32x4_t from_three = vcgtq_u32(point, vdupq_n_u32(0x7FF));
    const uint32x4_t lanes = vbslq_u32(from_three, three, vbslq_u32(from_two, two, point));
    const uint32x4_t low_bits = {1, 2, 4, 8};
    const uint32x4_t high_bits = {16, 32, 64, 128};
    const unsigned index =
        vaddvq_u32(vorrq_u32(vandq_u32(from_two, low_bits), vandq_u32(from_three, high_bits)));
    store(vreinterpretq_u8_u32(lanes), utf8_writer_detail::kOfFour[index], out);
    return out + 4 + std::popcount(index);
  }
};
#endif

/// Writes one string after another into the same memory.
class Utf8Writer {
 public:
  /// Returns whether this machine's processor can write many characters at once.
  static bool has_vectors() {
#ifdef BPE_BEAM_VECTORS
    return has_wide_vectors();
#else
    return false;
#endif
  }

  explicit Utf8Writer(bool with_vectors = has_vectors()) : with_vectors_(with_vectors) {}

  /// Returns the UTF-8 of `units`, the code points of a text, until the next call; nullopt if one
  /// is a surrogate.
  template <class Unit>
  std::optional<std::string_view> write(std::span<const Unit> units) {
    make_room(units.size() * kMostBytes<Unit> + kBehind);
    char* out = bytes_.get();
    const Unit* at = units.data();
    const Unit* const end = at + units.size();
    bool surrogate = false;
#ifdef BPE_BEAM_VECTORS
    if (with_vectors_) write_vectors(at, end, out, surrogate);
#endif
    while (end - at >= kRun) {
      if (is_ascii(at)) {
        for (int i = 0; i < kRun; ++i) out[i] = static_cast<char>(at[i]);
        out += kRun;
      } else {
        for (int i = 0; i < kRun; ++i) out = put(at[i], out, surrogate);
      }
      at += kRun;
    }
    for (; at < end; ++at) out = put(*at, out, surrogate);
    if (surrogate) return std::nullopt;
    return std::string_view(bytes_.get(), static_cast<std::size_t>(out - bytes_.get()));
  }

 private:
  static constexpr int kRun = 8;
  // Each character is written as four bytes, and eight at once as more.
  static constexpr std::size_t kBehind = 32;

  template <class Unit>
  static constexpr std::size_t kMostBytes = sizeof(Unit) == 1   ? 2
                                            : sizeof(Unit) == 2 ? 3
                                                                : 4;

  template <class Unit>
  static bool is_ascii(const Unit* at) {
    std::uint32_t all = 0;
    for (int i = 0; i < kRun; ++i) all |= at[i];
    return all < 0x80;
  }

#ifdef BPE_BEAM_VECTORS
  /// Writes all units but the last few.
  template <class Unit>
  BPE_BEAM_AVX2 static void write_vectors(const Unit*& at, const Unit* end, char*& out,
                                          bool& surrogate) {
    while (end - at >= kRun) {
      Utf8Vectors::Points points;
      if (Utf8Vectors::load(at, points)) [[likely]] {
        out = Utf8Vectors::put(points, out, surrogate);
      } else {
        for (int i = 0; i < kRun; ++i) out = put(at[i], out, surrogate);
      }
      at += kRun;
    }
  }
#endif

  /// Writes a character, and more bytes without meaning. Without a branch on its size, except for
  /// four bytes, because letters and spaces alternate.
  template <class Unit>
  static char* put(Unit unit, char* out, bool& surrogate) {
    const std::uint32_t point = unit;
    const std::uint32_t last = 0x80 | (point & 0x3F);
    const std::uint32_t two = 0xC0 | point >> 6 | last << 8;
    std::uint32_t bytes = point < 0x80 ? point : two;
    std::uint32_t size = 1 + (point >= 0x80);
    if constexpr (sizeof(Unit) > 1) {
      const std::uint32_t middle = 0x80 | (point >> 6 & 0x3F);
      bytes = point < 0x800 ? bytes : 0xE0 | (point >> 12 & 0x0F) | middle << 8 | last << 16;
      size += point >= 0x800;
      surrogate |= point >> 11 == 0xD800 >> 11;
      if constexpr (sizeof(Unit) > 2) {
        if (point >= 0x10000) {
          bytes =
              0xF0 | point >> 18 | (0x80 | (point >> 12 & 0x3F)) << 8 | middle << 16 | last << 24;
          size = 4;
        }
      }
    }
    std::memcpy(out, &bytes, sizeof(bytes));
    return out + size;
  }

  void make_room(std::size_t size) {
    if (size <= capacity_) return;
    bytes_.reset();
    bytes_ = std::make_unique_for_overwrite<char[]>(size);
    capacity_ = size;
  }

  bool with_vectors_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace bpe_beam
