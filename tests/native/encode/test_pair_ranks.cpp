// Ranks by pair, in the small table and in the large one.
#include <cstdint>
#include <map>
#include <random>
#include <utility>

#include "check.hpp"
#include "encode/pair_ranks.hpp"

using namespace bpe_beam;

namespace {

constexpr std::uint32_t kMostSmall = (std::uint32_t{1} << 21) - 1;

/// Ids up to `most`, among them the highest.
void equals_a_map(std::uint32_t most) {
  std::mt19937 random(1);
  const auto id = [&] { return random() % 4 == 0 ? most - random() % 3 : random() % 300; };
  for (const std::size_t pairs : {0, 1, 10, 5000}) {
    PairRanks ranks(pairs, most);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> expected;
    for (std::uint32_t rank = 0; rank < pairs; ++rank) {
      const std::uint32_t left = id();
      const std::uint32_t right = id();
      ranks.set(left, right, rank);
      expected[{left, right}] = rank;
    }
    for (const auto& [pair, rank] : expected) CHECK(ranks.find(pair.first, pair.second) == rank);
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t left = id();
      const std::uint32_t right = id();
      const auto found = expected.find({left, right});
      CHECK(ranks.find(left, right) ==
            (found == expected.end() ? PairRanks::kNone : found->second));
    }
    // Ids that no pair has, also the highest of all.
    for (const std::uint32_t other : {most + 1, kMostSmall, kMostSmall + 1, 0xFFFFFFFFu}) {
      if (other <= most && other > most - 3) continue;
      CHECK(ranks.find(other, other) == PairRanks::kNone);
      CHECK(ranks.find(other, 1) == PairRanks::kNone && ranks.find(1, other) == PairRanks::kNone);
    }
  }
}

}  // namespace

int main() {
  equals_a_map(1000);
  equals_a_map(kMostSmall);
  equals_a_map(kMostSmall + 1);
  equals_a_map(0xFFFFFFF0);
}
