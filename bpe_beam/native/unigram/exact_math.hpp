// Logarithm, exponential and digamma of doubles, with the same bits on every machine: additions,
// multiplications and divisions in one order. Compilers must not fuse them (-ffp-contract=off).
#pragma once

#include <array>
#include <cmath>

namespace bpe_beam {

#ifdef __FAST_MATH__
#error "doubles must follow IEEE 754: compile without -ffast-math"
#endif

/// Counts, and sums of them, that may exceed 64 bits.
using Wide = unsigned __int128;

namespace exact_math {

inline constexpr double kLn2High = 0x1.62e42feep-1;  // the first 32 bits of ln 2
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace exact_math

/// The natural logarithm of x > 0, within 2 units in the last place.
inline double exact_log(double x) {
  constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kRootHalf) {
    m = m * 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 2.0 / 21.0;
  for (int k = 9; k >= 0; --k) p = p * z + 2.0 / static_cast<double>(2 * k + 1);
  const auto e = static_cast<double>(exponent);
  return e * exact_math::kLn2High + (e * exact_math::kLn2Low + s * p);
}

/// The exponential of -700 < x <= 0, within 1 unit in the last place.
inline double exact_exp(double x) {
  constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  constexpr auto kInverseFactorials = [] {
    std::array<double, 14> inverse{};
    double factorial = 1.0;
    for (std::size_t n = 0; n < inverse.size(); ++n) {
      if (n > 0) factorial *= static_cast<double>(n);
      inverse[n] = 1.0 / factorial;
    }
    return inverse;
  }();
  const double k = std::rint(x * kInverseLn2);
  const double r = (x - k * exact_math::kLn2High) - k * exact_math::kLn2Low;
  double p = kInverseFactorials[13];
  for (std::size_t n = 13; n-- > 0;) p = p * r + kInverseFactorials[n];
  return std::ldexp(p, static_cast<int>(k));
}

/// The logarithmic derivative of the gamma function at x >= 0.5; the error is below 6e-11.
inline double exact_digamma(double x) {
  double r = 0.0;
  while (x < 7.0) {
    r = r - 1.0 / x;
    x = x + 1.0;
  }
  const double y = x - 0.5;
  double t = 1.0 / y;
  t = t * t;
  const double s =
      t * (1.0 / 24.0 + t * (-7.0 / 960.0 + t * (31.0 / 8064.0 + t * (-127.0 / 30720.0))));
  return (r + exact_log(y)) + s;
}

}  // namespace bpe_beam
