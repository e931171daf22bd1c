// The order in which pairs come out of the queue; with merges between, in test_bpe_learner.cpp.
#include "learn/count_queue.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

/// The pairs of xa 1, xb 20, xc 3, xd 20 as they are popped, by their right letter.
std::string order(std::int64_t min_frequency, TieBreak tie_break) {
  const std::vector<std::uint32_t> symbols = {0, 1, 0, 4, 0, 3, 0, 2};
  const std::vector<std::int64_t> offsets = {0, 2, 4, 6, 8};
  const std::vector<std::int64_t> counts = {1, 20, 3, 20};
  CountQueue::Table table({.symbols = symbols,
                           .offsets = offsets,
                           .counts = counts,
                           .tokens = {"x", "a", "d", "c", "b"},
                           .spans = {},
                           .prefix = {}});
  CountQueue queue(table, min_frequency, tie_break);
  std::string found;
  while (true) {
    const std::uint32_t pair = queue.pop_best();
    if (pair == PairMap::kNone) return found;
    found += table.tokens()[table.pairs()[pair].right];
    table.merge(pair, [&](std::uint32_t gained) { queue.count_rose(gained); });
  }
}

}  // namespace

int main() {
  CHECK(order(1, TieBreak::kLowestId) == "dbca");
  CHECK(order(1, TieBreak::kFirstSeen) == "bdca");
  CHECK(order(1, TieBreak::kGreatestBytes) == "dbca");
  CHECK(order(3, TieBreak::kFirstSeen) == "bdc");
  CHECK(order(21, TieBreak::kFirstSeen).empty());
}
