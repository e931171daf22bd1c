// UTF-8 out of strings whose characters have one, two or four bytes each, as Python has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace bpe_beam {

/// Writes one string after another into the same memory.
class Utf8Writer {
 public:
  /// Returns the UTF-8 of `units`, the code points of a text, until the next call; nullopt if one is
  /// a surrogate.
  template <class Unit>
  std::optional<std::string_view> write(std::span<const Unit> units) {
    make_room(units.size() * kMostBytes<Unit> + kBehind);
    char* out = bytes_.get();
    const Unit* at = units.data();
    const Unit* const end = at + units.size();
    bool surrogate = false;
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
  static constexpr std::size_t kBehind = 4;  // each character is written as four bytes

  template <class Unit>
  static constexpr std::size_t kMostBytes = sizeof(Unit) == 1 ? 2 : sizeof(Unit) == 2 ? 3 : 4;

  template <class Unit>
  static bool is_ascii(const Unit* at) {
    std::uint32_t all = 0;
    for (int i = 0; i < kRun; ++i) all |= at[i];
    return all < 0x80;
  }

  /// Writes a character, and bytes that do not count. Without a branch on its size, except for four
  /// bytes: letters and spaces alternate.
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
          bytes = 0xF0 | point >> 18 | (0x80 | (point >> 12 & 0x3F)) << 8 | middle << 16 | last << 24;
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

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace bpe_beam
