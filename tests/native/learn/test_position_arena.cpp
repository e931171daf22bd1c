// Lists of an arena, against vectors.
#include "learn/position_arena.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

void is_small() { CHECK(sizeof(PositionList) == 16); }

void equals_vectors() {
  std::mt19937 random(1);
  PositionArena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<PositionList> lists(300);
    std::vector<std::vector<std::uint32_t>> expected(lists.size());
    for (int i = 0; i < 5000; ++i) {
      const std::size_t which = random() % lists.size();
      const std::size_t more =
          random() % 500 == 0 ? random() % (2 * PositionArena::kBlock) : random() % 12;
      arena.reserve(lists[which], more);
      for (std::size_t j = 0; j < more; ++j) {
        const auto position = static_cast<std::uint32_t>(random());
        lists[which].push_back(position);
        expected[which].push_back(position);
      }
      if (i % 5 == 0 && !lists[which].empty()) {
        lists[which].pop_front();
        expected[which].erase(expected[which].begin());
      }
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      CHECK(lists[i].size() == expected[i].size());
      CHECK(lists[i].empty() == expected[i].empty());
      CHECK(std::ranges::equal(lists[i].positions(), expected[i]));
    }
    arena.clear();
  }
}

void refuses_what_has_no_number() {
  PositionArena arena;
  PositionList list;
  CHECK_THROWS(std::length_error, arena.reserve(list, std::size_t{1} << 32));
}

}  // namespace

int main() {
  is_small();
  equals_vectors();
  refuses_what_has_no_number();
}
