// The characters that replacements do not change, so that a normalizer copies runs of them without
// a search for keys.
#pragma once

#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "normalize/precompiled.hpp"
#include "text/text.hpp"
#include "text/utf8.hpp"

namespace bpe_beam {

/// Two sets of characters of the basic plane, *kept* and *joining*; all other characters are not
/// kept and are treated as joining. A kept character has no key of its own. A joining character may
/// be the second character of a key whose first is kept.
class KeptCharacters {
 public:
  /// `map`: null if there are no replacements. `is_other(bytes)` returns whether a character must
  /// not be kept for another reason.
  template <class IsOther>
  KeptCharacters(const Charsmap* map, IsOther&& is_other) {
    std::string first;
    for (std::uint32_t point = 0; point < kPoints; ++point) {
      if (point >= 0xD800 && point < 0xE000) continue;
      first.clear();
      append_utf8(point, first);
      if (is_other(first) || (map != nullptr && map->find_longest(first).size > 0)) continue;
      const bool joins_others = map != nullptr && map->begins_key(first);
      if (!joins_others || add_joining(*map, first, 1)) kept_.set(point);
    }
    runs_ = kept_ & ~joining_;
    for (char byte = '!'; byte <= '~'; ++byte)
      runs_of_ascii_ &= runs_[static_cast<std::size_t>(byte)];
  }

  /// The number of bytes, of the 8 from `at` on, that are visible ASCII, kept and not joining, up
  /// to the first other byte; possibly fewer.
  [[nodiscard, gnu::always_inline]] std::size_t ascii_in_run(const char* at) const {
    static_assert(std::endian::native == std::endian::little);
    if (!runs_of_ascii_) return 0;
    constexpr std::uint64_t kEach = 0x0101010101010101;
    std::uint64_t bytes;
    std::memcpy(&bytes, at, sizeof(bytes));
    const std::uint64_t low = bytes & 0x7F * kEach;
    // The top bit of a byte: it is at least '!'; it is at most '~'; it is ASCII.
    const std::uint64_t visible = (low + (0x80 - '!') * kEach) & ~(low + kEach) & ~bytes;
    const std::uint64_t others = ~visible & 0x80 * kEach;
    return others == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(others)) / 8;
  }

  /// The size of the character at `at` if it is kept and not joining; 0 for any other character or
  /// for bytes that are not a character. at < end.
  [[nodiscard, gnu::always_inline]] std::size_t size_in_run(const char* at, const char* end) const {
    const auto byte = [at](int i) { return std::uint32_t{static_cast<unsigned char>(at[i])}; };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return runs_[lead];
    if (end - at < 3) [[unlikely]]
      return size_of_last(at, end);
    const std::uint32_t second = byte(1) ^ 0x80;
    if ((lead & 0xE0) == 0xC0) {
      return lead >= 0xC2 && second < 0x40 && runs_[(lead & 0x1F) << 6 | second] ? 2 : 0;
    }
    const std::uint32_t third = byte(2) ^ 0x80;
    const bool is_three = (lead & 0xF0) == 0xE0 && (second | third) < 0x40;
    const std::uint32_t point = (lead & 0x0F) << 12 | second << 6 | third;
    return is_three && point >= 0x800 && runs_[point] ? 3 : 0;
  }

  /// Returns whether a character at `at` may join the previous character.
  [[nodiscard]] bool joins(const char* at, const char* end) const {
    if (at == end) return false;
    const CodePoint point = decode_utf8(at, end);
    return point.value >= kPoints || joining_[point.value];
  }

 private:
  static constexpr std::uint32_t kPoints = 0x10000;
  static constexpr std::size_t kMostSearches = 1 << 22;

  /// As size_in_run, for any number of bytes.
  [[nodiscard]] std::size_t size_of_last(const char* at, const char* end) const {
    const CodePoint point = decode_utf8(at, end);
    return point.value < kPoints && runs_[point.value] ? point.size : 0;
  }

  /// Adds the second characters of the keys that begin with the character and the bytes after it:
  /// `key`, which is changed and restored. Returns false if a key ends within a character, or if
  /// the map has too many keys.
  bool add_joining(const Charsmap& map, std::string& key, std::size_t size) {
    const std::size_t first = decode_utf8(key.data(), key.data() + key.size()).size;
    const bool begins = size == 1;
    const unsigned from = begins ? 0x01 : 0x80;
    const unsigned to = begins ? 0xF4 : 0xBF;
    for (unsigned byte = from; byte <= to; ++byte) {
      if (begins && byte == 0x80) byte = 0xC2;
      if (++searches_ > kMostSearches) return false;
      key.push_back(static_cast<char>(byte));
      const bool is_begin = map.begins_key(key);
      bool complete = true;
      if (is_begin) {
        const CodePoint second = decode_utf8(key.data() + first, key.data() + key.size());
        if (second.value != kMalformed) {
          if (second.value < kPoints) joining_.set(second.value);
        } else {
          complete = size < 4 && map.find_longest(key).size < key.size() &&
                     add_joining(map, key, size + 1);
        }
      }
      key.pop_back();
      if (!complete) return false;
    }
    return true;
  }

  std::bitset<kPoints> kept_;
  std::bitset<kPoints> joining_;
  std::bitset<kPoints> runs_;  // kept, and joining none
  bool runs_of_ascii_ = true;  // whether all of visible ASCII is in runs_
  std::size_t searches_ = 0;
};

}  // namespace bpe_beam
