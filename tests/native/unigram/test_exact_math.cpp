// The functions against the library's, and bits that no machine may change.
#include "unigram/exact_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "check.hpp"

using namespace bpe_beam;

namespace {

bool near(double value, double expected) {
  const double unit = std::nextafter(std::fabs(expected), HUGE_VAL) - std::fabs(expected);
  return std::fabs(value - expected) <= 2 * unit;
}

void is_near_the_library() {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11 | 1), i % 100 - 90);
    CHECK(near(exact_log(x), std::log(x)));
    const double y = -60.0 * static_cast<double>(random() >> 11) * 0x1p-53;
    CHECK(near(exact_exp(y), std::exp(y)));
  }
  CHECK(exact_log(1.0) == 0.0);
  CHECK(exact_exp(0.0) == 1.0);
  CHECK(std::fabs(exact_digamma(0.5) + 1.9635100260214235) < 6e-11);
  CHECK(std::fabs(exact_digamma(1.0) + 0.5772156649015329) < 6e-11);
  CHECK(std::fabs(exact_digamma(10.0) - 2.251752589066721) < 6e-11);
}

/// A number of all bits of many results: equal on every machine.
void has_the_same_bits() {
  std::mt19937_64 random(2);
  std::uint64_t hash = 0;
  const auto add = [&](double value) {
    hash = hash * 1000003 + std::bit_cast<std::uint64_t>(value);
  };
  for (int i = 0; i < 10000; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11 | 1), i % 100 - 90);
    add(exact_log(x));
    add(exact_digamma(0.5 + x));
    add(exact_exp(-600.0 * static_cast<double>(random() >> 11) * 0x1p-53));
  }
  CHECK(hash == 3564995000156740556ULL);
}

void converts_to_the_nearest_double() {
  const auto of = [](std::uint64_t high, std::uint64_t low) {
    return static_cast<double>(static_cast<Wide>(high) << 64 | low);
  };
  CHECK(of(0, (1ULL << 53) + 1) == 0x1p53);
  CHECK(of(0, (1ULL << 53) + 3) == 0x1p53 + 4);
  CHECK(of(1ULL << 52, 1ULL << 63) == 0x1p116);
  CHECK(of(1ULL << 52, (1ULL << 63) + 1) == std::nextafter(0x1p116, HUGE_VAL));
  CHECK(of((1ULL << 52) + 1, 1ULL << 63) == std::nextafter(std::nextafter(0x1p116, 1e60), 1e60));
}

}  // namespace

int main() {
  is_near_the_library();
  has_the_same_bits();
  converts_to_the_nearest_double();
}
