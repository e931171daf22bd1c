// The byte-level alphabet: each of the 256 bytes as one printable character.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "text/utf8.hpp"

namespace bpe_beam {

/// Bytes 33-126, 161-172 and 174-255 are themselves as code points, the other 68 are U+0100 upward
/// in the order of the bytes.
class ByteLevelAlphabet {
 public:
  ByteLevelAlphabet() {
    std::uint32_t other = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool itself =
          (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      points_[byte] = itself ? byte : other++;
    }
    bytes_.fill(kNoByte);
    for (std::uint32_t byte = 0; byte < 256; ++byte) bytes_[points_[byte]] = byte;
  }

  [[nodiscard]] std::uint32_t point_of(std::uint8_t byte) const { return points_[byte]; }

  /// Turns UTF-8 into the bytes that its characters are written for; false, and no change, if one
  /// of them is not of the alphabet.
  [[nodiscard]] bool to_bytes(std::string& text) const {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = decode_utf8(text.data() + at, text.data() + text.size());
      if (point.value >= bytes_.size() || bytes_[point.value] == kNoByte) return false;
      bytes += static_cast<char>(bytes_[point.value]);
      at += point.size;
    }
    text = std::move(bytes);
    return true;
  }

 private:
  static constexpr std::uint32_t kNoByte = 256;

  std::array<std::uint32_t, 256> points_{};
  std::array<std::uint32_t, 256 + 68> bytes_{};  // by code point
};

}  // namespace bpe_beam
