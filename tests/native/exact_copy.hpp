// Bytes on the heap without a byte to spare, so that AddressSanitizer sees whoever reads past them.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>

class ExactCopy {
 public:
  explicit ExactCopy(std::string_view bytes) : bytes_(new char[bytes.size()]), size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }
  [[nodiscard]] std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};
