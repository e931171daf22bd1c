// The first test for pairs: it keeps out most that are not in the set, and none that is.
#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "check.hpp"
#include "rounds/pair_sides.hpp"

using namespace bpe_beam;

namespace {

void an_empty_one_holds_nothing() {
  const PairSides sides;
  for (const std::uint32_t id : {0U, 1U, 255U, 256U, 0xFFFFFFFFU}) CHECK(!sides.may_hold(id, id));
}

void tells_left_from_right() {
  PairSides sides;
  sides.add(3, 700);
  CHECK(sides.may_hold(3, 700));
  CHECK(!sides.may_hold(700, 3) && !sides.may_hold(3, 3) && !sides.may_hold(700, 700));
  CHECK(!sides.may_hold(2, 700) && !sides.may_hold(3, 701));
  sides.add(5, 6);
  CHECK(sides.may_hold(3, 6) && sides.may_hold(5, 700));  // not in the set: it asks each side
}

/// Ids far beyond those it has a byte for, before and after it grows.
void none_of_the_set_is_kept_out() {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    PairSides sides;
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t left = random() % 300; left > 0; --left) {
      const auto id = [&] { return static_cast<std::uint32_t>(random()) >> (random() % 30); };
      const std::pair pair{id(), id()};
      sides.add(pair.first, pair.second);
      pairs.insert(pair);
    }
    for (const auto& [left, right] : pairs) CHECK(sides.may_hold(left, right));
  }
}

}  // namespace

int main() {
  an_empty_one_holds_nothing();
  tells_left_from_right();
  none_of_the_set_is_kept_out();
}
