// A fuzzer's bytes, taken one choice at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size)
      : at_(reinterpret_cast<const char*>(data)), end_(at_ + size) {}

  [[nodiscard]] bool empty() const { return at_ == end_; }

  /// The next byte; 0 at the end.
  std::uint8_t byte() { return empty() ? 0 : static_cast<std::uint8_t>(*at_++); }

  /// A number below `limit` <= 256.
  std::uint32_t below(std::uint32_t limit) { return byte() % limit; }

  /// The next `size` bytes, or as many as there are.
  std::string_view bytes(std::size_t size) {
    const std::size_t taken = std::min(size, static_cast<std::size_t>(end_ - at_));
    at_ += taken;
    return {at_ - taken, taken};
  }

  std::string_view rest() { return bytes(static_cast<std::size_t>(end_ - at_)); }

  /// `size` letters of an alphabet, or as many as there are bytes.
  std::string word(std::size_t size, std::string_view alphabet) {
    std::string word;
    for (const char byte : bytes(size)) {
      word += alphabet[static_cast<unsigned char>(byte) % alphabet.size()];
    }
    return word;
  }

 private:
  const char* at_;
  const char* end_;
};
