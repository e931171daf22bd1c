// Numbers of few digits are exact; others are what a division of two rounded numbers gives.
#include "encode/reread_number.hpp"

#include <limits>

#include "check.hpp"

using namespace bpe_beam;

namespace {

void test_exact() {
  CHECK(reread_number("0") == 0.0);
  CHECK(reread_number("-30") == -30.0);
  CHECK(reread_number("-30.0") == -30.0);
  CHECK(reread_number("-12.5") == -12.5);
  CHECK(reread_number("0.1") == 0.1);
  CHECK(reread_number("1e-05") == 1e-05);
  CHECK(reread_number("-2.5e-07") == -2.5e-07);
  CHECK(reread_number("1e+22") == 1e22);
}

void test_rounded_twice() {
  // 9806185464674407 has 54 bits.
  CHECK(reread_number("-9.806185464674407") == -(9806185464674407.0 / 1e15));
  CHECK(reread_number("-9.806185464674407") != -9.806185464674407);
}

void test_limits() {
  using Limits = std::numeric_limits<double>;
  CHECK(reread_number("1.7976931348623157e+308") == Limits::max());
  CHECK(reread_number("5e-324") >= 0.0);
  CHECK(reread_number("5e-324") < 1e-300);
  CHECK(reread_number("-2.2250738585072014e-308") < 0.0);
}

}  // namespace

int main() {
  test_exact();
  test_rounded_twice();
  test_limits();
}
