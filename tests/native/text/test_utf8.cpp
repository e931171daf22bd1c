// Decoding UTF-8: every code point, and everything that is none.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "exact_copy.hpp"
#include "text/utf8.hpp"

using namespace bpe_beam;

namespace {

CodePoint decode(std::string_view bytes) {
  const ExactCopy copy(bytes);
  return decode_utf8(copy.view().data(), copy.view().data() + copy.view().size());
}

/// By the definition's table, also for what it forbids (surrogates, more than U+10FFFF).
std::string encode(std::uint32_t value, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = size; i-- > 1; value >>= 6) {
    bytes[i] = static_cast<char>(0x80 | (value & 0x3F));
  }
  const unsigned lead = size == 1 ? 0 : size == 2 ? 0xC0 : size == 3 ? 0xE0 : 0xF0;
  bytes[0] = static_cast<char>(lead | value);
  return bytes;
}

std::size_t size_of(std::uint32_t value) {
  return value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
}

bool is_malformed(std::string_view bytes) {
  const CodePoint point = decode(bytes);
  return point.value == kMalformed && point.size == 1;
}

void every_code_point() {
  char buffer[5] = {};
  for (std::uint32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    const std::string bytes = encode(value, size_of(value));
    std::copy(bytes.begin(), bytes.end(), buffer);
    const CodePoint point = decode_utf8(buffer, buffer + bytes.size());
    CHECK(point.value == value);
    CHECK(point.size == bytes.size());
  }
}

void what_follows_does_not_matter() {
  for (const std::string_view character : {"a", "é", "語", "😀"}) {
    for (const std::string_view after : {"", "b", "\x80", "\xBF\xBF\xBF"}) {
      const CodePoint point = decode(std::string(character) + std::string(after));
      CHECK(point.size == character.size());
      CHECK(point.value == decode(character).value);
    }
  }
}

void cut_off_characters() {
  for (const std::string_view character : {"é", "語", "😀"}) {
    for (std::size_t size = 1; size < character.size(); ++size) {
      CHECK(is_malformed(character.substr(0, size)));
      // Nor may a letter stand where a continuation is due.
      CHECK(is_malformed(std::string(character.substr(0, size)) + "aaa"));
    }
  }
}

void bytes_that_begin_nothing() {
  for (int byte = 0x80; byte < 0x100; ++byte) {
    const bool lead = byte >= 0xC2 && byte < 0xF5;
    if (!lead) CHECK(is_malformed(std::string(1, static_cast<char>(byte)) + "\x80\x80\x80"));
  }
}

void overlong_forms() {
  for (std::uint32_t value = 0; value < 0x80; ++value) CHECK(is_malformed(encode(value, 2)));
  for (std::uint32_t value = 0; value < 0x800; ++value) CHECK(is_malformed(encode(value, 3)));
  for (std::uint32_t value = 0; value < 0x10000; ++value) CHECK(is_malformed(encode(value, 4)));
}

void surrogates_and_what_lies_beyond_the_last() {
  for (std::uint32_t value = 0xD800; value < 0xE000; ++value) CHECK(is_malformed(encode(value, 3)));
  for (std::uint32_t value = 0x110000; value < 0x140000; ++value) {
    CHECK(is_malformed(encode(value, 4)));
  }
  CHECK(!is_malformed(encode(0xD7FF, 3)));
  CHECK(!is_malformed(encode(0xE000, 3)));
  CHECK(!is_malformed(encode(0x10FFFF, 4)));
}

}  // namespace

int main() {
  every_code_point();
  what_follows_does_not_matter();
  cut_off_characters();
  bytes_that_begin_nothing();
  overlong_forms();
  surrogates_and_what_lies_beyond_the_last();
}
