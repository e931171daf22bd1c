// Strings of JSON: where they end, and their text.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/records.hpp"

namespace bpe_beam {

/// The first byte of [at, end) that ends a plain run inside a JSON string: a quote, a backslash, or
/// a control character.
inline const char* end_of_plain(const char* at, const char* end) {
#if defined(__SSE2__)  // every x86-64 has it
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1F);
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
    const __m128i special =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
    const auto hits = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(control, special)));
    if (hits != 0) return at + std::countr_zero(hits);
  }
#endif
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHighBits = 0x80 * kOnes;
    for (; end - at >= 8; at += 8) {
      const std::uint64_t word = load_word(at);
      const std::uint64_t quote = word ^ (kOnes * '"');
      const std::uint64_t backslash = word ^ (kOnes * '\\');
      // (x - 1) & ~x has its high bit where a byte x is zero. Borrows make false hits above a
      // true one only, so the lowest hit is true.
      const std::uint64_t hits = (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
                                  ((word - kOnes * 0x20) & ~word)) &
                                 kHighBits;
      if (hits != 0) return at + std::countr_zero(hits) / 8;
    }
  }
  while (at < end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// A string of a JSON text: the bytes between the quotes, escapes checked but not resolved.
struct JsonString {
  std::string_view raw;
  bool escaped = false;
};

/// Copies [at, end) up to its first backslash; returns that, or `end`. At `to` there is room for
/// all.
inline const char* copy_to_backslash(const char* at, const char* end, char* to) {
#if defined(__SSE2__)
  const __m128i backslash = _mm_set1_epi8('\\');
  for (; end - at >= 16; at += 16, to += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // The bytes after the backslash are within the room and overwritten later.
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    const auto hits = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, backslash)));
    if (hits != 0) return at + std::countr_zero(hits);
  }
#endif
  while (at < end && *at != '\\') *to++ = *at++;
  return at;
}

/// Appends the text of `string` to `out`; the caller finishes it. False, and
/// nothing added, if an escape is half of a surrogate pair.
inline bool append_unescaped(const JsonString& string, Strings& out) {
  char* const begin = out.room(string.raw.size());  // no escape is shorter than its character
  char* to = begin;
  const char* at = string.raw.data();
  const char* const end = at + string.raw.size();
  const auto code_unit = [](const char* digits) {
    return static_cast<std::uint32_t>(hex_value(digits[0]) << 12 | hex_value(digits[1]) << 8 |
                                      hex_value(digits[2]) << 4 | hex_value(digits[3]));
  };
  while (at < end) {
    const std::size_t plain = static_cast<std::size_t>(copy_to_backslash(at, end, to) - at);
    to += plain;
    at += plain;
    if (at == end) break;
    const char kind = at[1];
    at += 2;
    switch (kind) {
      case 'b':
        *to++ = '\b';
        continue;
      case 'f':
        *to++ = '\f';
        continue;
      case 'n':
        *to++ = '\n';
        continue;
      case 'r':
        *to++ = '\r';
        continue;
      case 't':
        *to++ = '\t';
        continue;
      case 'u':
        break;
      default:
        *to++ = kind;
        continue;
    }
    std::uint32_t code = code_unit(at);
    at += 4;
    if (code >= 0xDC00 && code < 0xE000) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return false;
      const std::uint32_t low = code_unit(at + 2);
      if (low < 0xDC00 || low >= 0xE000) return false;
      at += 6;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    const auto put = [&](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | code >> 6);
      put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3F));
      put(0x80 | (code & 0x3F));
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
      put(0x80 | (code >> 6 & 0x3F));
      put(0x80 | (code & 0x3F));
    }
  }
  out.add(static_cast<std::size_t>(to - begin));
  return true;
}

}  // namespace bpe_beam
