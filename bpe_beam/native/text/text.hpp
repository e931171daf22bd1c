// Text between the steps of normalizers and pre-tokenizers: bytes, and, on request, the origin of
// each byte in the original text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bpe_beam {

/// Bytes [begin, end) of the original text.
struct Origin {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Origin&) const = default;
};

/// A view of UTF-8 text. `origins` has one entry per byte (all bytes of a character have the same),
/// or is null if no offsets are needed.
struct TextView {
  std::string_view bytes;
  const Origin* origins = nullptr;

  [[nodiscard]] TextView sub(std::size_t begin, std::size_t end) const {
    return {bytes.substr(begin, end - begin), origins == nullptr ? nullptr : origins + begin};
  }
};

/// Appends the UTF-8 of a code point (a scalar value) to `out`; returns how many bytes.
inline std::size_t append_utf8(std::uint32_t point, std::string& out) {
  char bytes[4];
  std::size_t size = 0;
  if (point < 0x80) {
    bytes[size++] = static_cast<char>(point);
  } else {
    const std::size_t more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
    bytes[size++] = static_cast<char>(kLead[more] | (point >> (6 * more)));
    for (std::size_t i = more; i-- > 0;) {
      bytes[size++] = static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3F));
    }
  }
  out.append(bytes, size);
  return size;
}

/// Thrown if a tokenizer's normalizer or pre-tokenizer makes a text too long, see check_growth.
struct TextGrowth {};

/// Throws TextGrowth if one or more steps turned `before` bytes into over 32 times as many and over
/// 1 MiB. Without this limit, a few replacements in a row could fill the memory.
inline void check_growth(std::size_t before, std::size_t after) {
  if (after > (std::size_t{1} << 20) && after / 32 > before) throw TextGrowth{};
}

/// The text that a step writes while it reads another text.
class TextBuffer {
 public:
  void clear(bool with_origins) {
    bytes_.clear();
    origins_.clear();
    with_origins_ = with_origins;
  }

  [[nodiscard]] bool with_origins() const { return with_origins_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return bytes_.capacity() + origins_.capacity() * sizeof(Origin);
  }
  [[nodiscard]] TextView view() const {
    return {bytes_, with_origins_ ? origins_.data() : nullptr};
  }

  /// Drops all bytes after the first `size`.
  void cut(std::size_t size) {
    bytes_.resize(size);
    if (with_origins_) origins_.resize(size);
  }

  /// Appends bytes; only without origins.
  void append(std::string_view bytes) { bytes_.append(bytes); }

  /// Copies bytes [begin, end) of `in` as they are.
  void copy(const TextView& in, std::size_t begin, std::size_t end) {
    bytes_.append(in.bytes.data() + begin, end - begin);
    if (with_origins_) origins_.insert(origins_.end(), in.origins + begin, in.origins + end);
  }

  /// Writes a code point that replaces the character at byte `at` of `in`.
  void put(std::uint32_t point, const TextView& in, std::size_t at) {
    put(point, with_origins_ ? in.origins[at] : Origin{});
  }

  void put(std::uint32_t point, const Origin& origin) {
    const std::size_t size = append_utf8(point, bytes_);
    if (with_origins_) origins_.insert(origins_.end(), size, origin);
  }

  /// Writes bytes of UTF-8 that all have one origin.
  void put(std::string_view bytes, const Origin& origin) {
    bytes_.append(bytes);
    if (with_origins_) origins_.insert(origins_.end(), bytes.size(), origin);
  }

  /// Writes bytes that replace the same number of bytes of `in` from `at` on; each gets the origin
  /// of the byte that it replaces.
  void put_bytewise(std::string_view bytes, const TextView& in, std::size_t at) {
    bytes_.append(bytes);
    if (with_origins_) {
      origins_.insert(origins_.end(), in.origins + at, in.origins + at + bytes.size());
    }
  }

 private:
  std::string bytes_;
  std::vector<Origin> origins_;
  bool with_origins_ = false;
};

}  // namespace bpe_beam
