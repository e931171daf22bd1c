// The list of positions, against a vector.
#include "learn/position_list.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

bool equal(PositionList& list, const std::vector<std::uint32_t>& expected) {
  return list.size() == expected.size() && list.empty() == expected.empty() &&
         std::ranges::equal(list.positions(), expected);
}

void is_small() { CHECK(sizeof(PositionList) == 24); }

void equals_a_vector() {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    PositionList list;
    std::vector<std::uint32_t> reference;
    if (round % 3 == 0) list.reserve(random() % 9);
    while (reference.size() < random() % 200) {
      std::vector<std::uint32_t> more(random() % 12);
      for (std::uint32_t& position : more) position = static_cast<std::uint32_t>(random());
      list.append(more);
      reference.insert(reference.end(), more.begin(), more.end());
      list.push_back(7);
      reference.push_back(7);
      CHECK(equal(list, reference));
    }
    std::ranges::sort(list.positions());
    std::ranges::sort(reference);
    CHECK(equal(list, reference));
  }
}

void is_empty_when_it_was_taken() {
  for (const std::uint32_t size : {0U, 1U, 2U, 3U, 100U}) {
    PositionList list;
    std::vector<std::uint32_t> reference;
    for (std::uint32_t i = 0; i < size; ++i) {
      list.push_back(i);
      reference.push_back(i);
    }
    PositionList taken = list.take();
    CHECK(equal(taken, reference));
    CHECK(equal(list, {}));
    list.push_back(5);
    CHECK(equal(list, {5}));
    CHECK(equal(taken, reference));
  }
}

void refuses_what_has_no_number() {
  PositionList list;
  CHECK_THROWS(std::length_error, list.reserve(std::size_t{1} << 32));
}

}  // namespace

int main() {
  is_small();
  equals_a_vector();
  is_empty_when_it_was_taken();
  refuses_what_has_no_number();
}
