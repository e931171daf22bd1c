// Numbers as the JSON reader of Hugging Face's tokenizers reads them, which is not always exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace bpe_beam {

namespace detail {

constexpr int kMostPower = 308;

/// 10 to the power of `exponent`, 0 to kMostPower, to the nearest double.
inline double power_of_ten(int exponent) {
  static const auto powers = [] {
    std::array<double, kMostPower + 1> computed{};
    for (int power = 0; power <= kMostPower; ++power) {
      computed[static_cast<std::size_t>(power)] =
          std::strtod(("1e" + std::to_string(power)).c_str(), nullptr);
    }
    return computed;
  }();
  return powers[static_cast<std::size_t>(exponent)];
}

}  // namespace detail

/// The double that this reader reads from the shortest text of a double, such as "-12.5" or
/// "1e-05". The reader makes an integer of all digits, which is rounded to a double if it has more
/// than 53 bits, and divides or multiplies it by a power of ten, which is rounded again. So some
/// numbers get a different last bit.
inline double reread_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::uint64_t digits = 0;
  int exponent = 0;
  bool in_fraction = false;
  for (; !text.empty() && text.front() != 'e'; text.remove_prefix(1)) {
    if (text.front() == '.') {
      in_fraction = true;
      continue;
    }
    digits = 10 * digits + static_cast<std::uint64_t>(text.front() - '0');
    if (in_fraction) --exponent;
  }
  if (!text.empty()) exponent += std::atoi(std::string(text.substr(1)).c_str());
  auto value = static_cast<double>(digits);
  for (; exponent < -detail::kMostPower; exponent += detail::kMostPower) {
    value /= detail::power_of_ten(detail::kMostPower);
  }
  value = exponent < 0 ? value / detail::power_of_ten(-exponent)
                       : value * detail::power_of_ten(exponent);
  return negative ? -value : value;
}

}  // namespace bpe_beam
