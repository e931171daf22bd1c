// The map from pairs to numbers.
#include <cstdint>
#include <map>
#include <random>

#include "check.hpp"
#include "count/pair_map.hpp"

using namespace bpe_beam;

namespace {

void keys_tell_left_from_right() {
  CHECK(PairMap::key(1, 2) != PairMap::key(2, 1));
  CHECK(PairMap::key(0xFFFFFFFE, 0) == 0xFFFFFFFE00000000);
  CHECK(PairMap::key(0, 0xFFFFFFFE) == 0xFFFFFFFE);
}

void finds_what_was_put() {
  PairMap map;
  CHECK(map.size() == 0);
  CHECK(map.find(PairMap::key(0, 0)) == PairMap::kNone);
  map[PairMap::key(0, 0)] = 5;  // the key 0 is one like any other
  map[PairMap::key(3, 4)] = 0;
  CHECK(map.size() == 2);
  CHECK(map.find(PairMap::key(0, 0)) == 5);
  CHECK(map.find(PairMap::key(3, 4)) == 0);
  CHECK(map.find(PairMap::key(4, 3)) == PairMap::kNone);
}

void tells_a_new_pair() {
  PairMap map;
  std::uint32_t& value = map[PairMap::key(1, 1)];
  CHECK(value == PairMap::kNone);
  value = 9;
  CHECK(map[PairMap::key(1, 1)] == 9);
  map[PairMap::key(1, 1)] = 10;
  CHECK(map.find(PairMap::key(1, 1)) == 10);
  CHECK(map.size() == 1);
}

/// However full it is: a search for what is not there must end.
void finds_nothing_in_any_fill() {
  PairMap map;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    CHECK(map.find(PairMap::key(i, 1)) == PairMap::kNone);
    map[PairMap::key(i, 0)] = i;
  }
}

/// Through many doublings, from any size that was expected.
void equals_a_map() {
  for (const std::size_t expected : {0, 1, 32, 33, 5000, 200000}) {
    PairMap map(expected);
    std::map<std::uint64_t, std::uint32_t> reference;
    std::mt19937_64 random(expected);
    for (std::uint32_t i = 0; i < 60000; ++i) {
      // Small ids, as learners have them, and large ones.
      const std::uint32_t limit = i % 2 == 0 ? 300 : 0xFFFFFFFF;
      const std::uint64_t key = PairMap::key(static_cast<std::uint32_t>(random()) % limit,
                                             static_cast<std::uint32_t>(random()) % limit);
      map[key] = i;
      reference[key] = i;
    }
    CHECK(map.size() == reference.size());
    for (const auto& [key, value] : reference) CHECK(map.find(key) == value);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t key = random();
      if (!reference.contains(key)) CHECK(map.find(key) == PairMap::kNone);
    }
  }
}

}  // namespace

int main() {
  keys_tell_left_from_right();
  finds_what_was_put();
  tells_a_new_pair();
  finds_nothing_in_any_fill();
  equals_a_map();
}
