// The index over a list of pairs.
#include "learn/pair_index.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

struct Pair {
  std::uint32_t left;
  std::uint32_t right;
};

using Pairs = std::vector<Pair>;
using Index = PairIndex<Pairs>;

/// The pair's number, which it gets if it is new.
std::uint32_t number(Index& index, Pairs& pairs, std::uint32_t left, std::uint32_t right) {
  std::uint32_t& at = index(pairs, left, right);
  if (at == Index::kNone) {
    at = static_cast<std::uint32_t>(pairs.size());
    pairs.push_back({left, right});
  }
  return at;
}

void tells_left_from_right() {
  Index index;
  Pairs pairs;
  CHECK(index.find(pairs, 0, 0) == Index::kNone);
  CHECK(number(index, pairs, 0, 0) == 0);
  CHECK(number(index, pairs, 3, 4) == 1);
  CHECK(index.find(pairs, 4, 3) == Index::kNone);
  CHECK(number(index, pairs, 4, 3) == 2);
  CHECK(number(index, pairs, 3, 4) == 1);
  CHECK(index.size() == 3);
}

/// However full it is: a search for what is not there must end.
void finds_nothing_in_any_fill() {
  Index index;
  Pairs pairs;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    CHECK(index.find(pairs, i, 1) == Index::kNone);
    number(index, pairs, i, 0);
  }
}

/// Through many doublings; so many pairs that some hashes, of which half is kept, are equal.
void equals_a_map() {
  Index index;
  Pairs pairs;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> reference;
  std::mt19937_64 random(1);
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const std::uint32_t limit = i % 2 == 0 ? 300 : 0xFFFFFFFF;
    const auto left = static_cast<std::uint32_t>(random()) % limit;
    const auto right = static_cast<std::uint32_t>(random()) % limit;
    const auto next = static_cast<std::uint32_t>(pairs.size());
    const std::uint32_t expected = reference.try_emplace({left, right}, next).first->second;
    CHECK(number(index, pairs, left, right) == expected);
  }
  CHECK(index.size() == reference.size());
  for (const auto& [pair, value] : reference) {
    CHECK(index.find(pairs, pair.first, pair.second) == value);
  }
  index.clear();
  CHECK(index.size() == 0);
  CHECK(index.find(pairs, pairs[0].left, pairs[0].right) == Index::kNone);
}

}  // namespace

int main() {
  tells_left_from_right();
  finds_nothing_in_any_fill();
  equals_a_map();
}
