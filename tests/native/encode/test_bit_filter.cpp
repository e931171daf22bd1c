// The filter misses nothing, and is mistaken rarely.
#include <cstddef>
#include <cstdint>
#include <random>

#include "check.hpp"
#include "encode/bit_filter.hpp"

using bpe_beam::BitFilter;

int main() {
  std::mt19937_64 random(1);
  for (const std::size_t hashes : {0, 1, 3, 1000, 100'000}) {
    BitFilter filter(hashes);
    CHECK(!filter.may_have(random()));
    std::mt19937_64 added(2);
    for (std::size_t i = 0; i < hashes; ++i) filter.add(added());
    added.seed(2);
    for (std::size_t i = 0; i < hashes; ++i) CHECK(filter.may_have(added()));
    std::size_t mistakes = 0;
    for (int i = 0; i < 10'000; ++i) mistakes += filter.may_have(random());
    CHECK(mistakes < 300);
  }
}
