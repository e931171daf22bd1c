// Strings of JSON: their ends and their texts.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "read/records.hpp"
#include "text/vectors.hpp"

namespace bpe_beam {

#ifdef BPE_BEAM_VECTORS
/// The `byte_bits` of the bytes that end a plain run.
inline std::uint64_t ends_of_plain(Bytes16 bytes) {
  return byte_bits(reinterpret_cast<Bytes16>((bytes < 0x20) | (bytes == '"') | (bytes == '\\')));
}
#endif

/// The first byte of [at, end) that ends a plain run inside a JSON string: a quote, a backslash, or
/// a control character.
inline const char* end_of_plain(const char* at, const char* end) {
#ifdef BPE_BEAM_VECTORS
  for (; end - at >= 16; at += 16) {
    const std::uint64_t ends = ends_of_plain(load_vector<Bytes16>(at));
    if (ends != 0) return at + first_byte(ends);
  }
#endif
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHighBits = 0x80 * kOnes;
    for (; end - at >= 8; at += 8) {
      const std::uint64_t word = load_word(at);
      const std::uint64_t quote = word ^ (kOnes * '"');
      const std::uint64_t backslash = word ^ (kOnes * '\\');
      // (x - 1) & ~x has its high bit set if a byte x is zero. Borrows make false hits only above a
      // true hit, so the lowest hit is true.
      const std::uint64_t hits = (((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
                                  ((word - kOnes * 0x20) & ~word)) &
                                 kHighBits;
      if (hits != 0) return at + std::countr_zero(hits) / 8;
    }
  }
  while (at < end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

/// The values of hex digits; -1 for other bytes.
inline constexpr std::array<std::int8_t, 256> kHexValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < 10; ++i) values['0' + i] = static_cast<std::int8_t>(i);
  for (std::size_t i = 0; i < 6; ++i) {
    values['a' + i] = values['A' + i] = static_cast<std::int8_t>(10 + i);
  }
  return values;
}();

/// The characters of escapes of two bytes, by the second; NUL for other bytes.
inline constexpr std::array<char, 256> kShortEscapes = [] {
  std::array<char, 256> characters{};
  for (const char c : {'"', '\\', '/'}) characters[static_cast<unsigned char>(c)] = c;
  characters['b'] = '\b';
  characters['f'] = '\f';
  characters['n'] = '\n';
  characters['r'] = '\r';
  characters['t'] = '\t';
  return characters;
}();

/// The number of four hex digits; negative if one of the bytes is not a hex digit.
inline std::int32_t hex_number(const char* digits) {
  const auto value = [digits](int i) {
    return std::int32_t{kHexValues[static_cast<unsigned char>(digits[i])]};
  };
  return value(0) << 12 | value(1) << 8 | value(2) << 4 | value(3);
}

/// A string of a JSON text: the bytes between the quotes, escapes checked but not resolved.
struct JsonString {
  std::string_view raw;
  bool escaped = false;
};

/// Writes the character of the escape whose backslash is at `at` < `end`, and moves `at` and `to`
/// past it. Returns false, without moving, if it is not an escape or is half of a surrogate pair.
/// `to` has room for as many bytes as the escape has.
inline bool resolve_escape(const char*& at, const char* end, char*& to) {
  if (end - at < 2) return false;
  if (const char c = kShortEscapes[static_cast<unsigned char>(at[1])]; c != '\0') {
    *to++ = c;
    at += 2;
    return true;
  }
  if (at[1] != 'u' || end - at < 6) return false;
  const std::int32_t unit = hex_number(at + 2);
  if (unit < 0 || (unit >= 0xDC00 && unit < 0xE000)) return false;
  auto code = static_cast<std::uint32_t>(unit);
  std::ptrdiff_t size = 6;
  if (unit >= 0xD800 && unit < 0xDC00) {
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u') return false;
    const std::int32_t low = hex_number(at + 8);
    if (low < 0xDC00 || low >= 0xE000) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<std::uint32_t>(low) - 0xDC00);
    size = 12;
  }
  at += size;
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
  return true;
}

/// Copies [at, end) up to the byte that ends a plain run (see `end_of_plain`); returns the position
/// of this byte, or `end`. `to` has room for all bytes.
inline const char* copy_plain(const char* at, const char* end, char* to) {
#ifdef BPE_BEAM_VECTORS
  for (; end - at >= 16; at += 16, to += 16) {
    const auto bytes = load_vector<Bytes16>(at);
    // The bytes after the run are within the room, and are overwritten later.
    store_vector(bytes, to);
    const std::uint64_t ends = ends_of_plain(bytes);
    if (ends != 0) return at + first_byte(ends);
  }
#endif
  const char* const stop = end_of_plain(at, end);
  std::copy(at, stop, to);
  return stop;
}

/// Copies the string whose first byte is at `at`, with its escapes resolved, in one pass. `to` has
/// room for all of [at, end). Returns the closing quote and the end of the text at `to`; null if
/// there is no such string, or if an escape is half of a surrogate pair.
inline std::pair<const char*, char*> copy_string(const char* at, const char* end, char* to) {
  for (;;) {
    const char* const stop = copy_plain(at, end, to);
    to += stop - at;
    at = stop;
    if (at == end) return {nullptr, to};
    if (*at == '"') return {at, to};
    do {  // escapes often follow each other
      if (*at != '\\' || !resolve_escape(at, end, to)) return {nullptr, to};
    } while (at < end && *at == '\\');
  }
}

/// Appends the text of `string` to `out`; the caller finishes it. Returns false, and adds nothing,
/// if an escape is half of a surrogate pair.
inline bool append_unescaped(const JsonString& string, Strings& out) {
  char* const begin = out.room(string.raw.size());  // no escape is shorter than its character
  char* to = begin;
  const char* at = string.raw.data();
  const char* const end = at + string.raw.size();
  while (at < end) {
    const char* const stop = copy_plain(at, end, to);
    to += stop - at;
    at = stop;
    if (at < end && !resolve_escape(at, end, to)) return false;
  }
  out.add(static_cast<std::size_t>(to - begin));
  return true;
}

}  // namespace bpe_beam
