// Merges against their definition, in short words and long ones.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.hpp"
#include "encode/bpe_merges.hpp"
#include "naive_models.hpp"

using namespace bpe_beam;

namespace {

using Rows = std::vector<MergeRow>;

/// What is left of symbols of sizes 1, 2, 3 ... Checks that it is the same without sizes.
Symbols merged(const BpeMerges& merges, const Ids& ids) {
  ModelState state;
  state.ids = ids;
  for (std::uint32_t i = 0; i < ids.size(); ++i) state.sizes.push_back(i + 1);
  merges.look_up_ranks(state);
  CHECK(state.ranks.size() == ids.size());
  CHECK(ids.empty() || state.ranks.back() == BpeMerges::kNoRank);
  merges.apply(true, state);
  CHECK(state.ids.size() == state.sizes.size());
  Symbols symbols;
  for (std::size_t i = 0; i < state.ids.size(); ++i) {
    symbols.push_back({state.ids[i], state.sizes[i]});
  }
  ModelState plain;
  plain.ids = ids;
  merges.look_up_ranks(plain);
  merges.apply(false, plain);
  CHECK(plain.ids == state.ids && plain.sizes.empty());
  return symbols;
}

Symbols naively_merged(const Rows& rows, bool rank_by_joined, const Ids& ids) {
  Symbols symbols;
  for (std::uint32_t i = 0; i < ids.size(); ++i) symbols.push_back({ids[i], i + 1});
  return naive_merge(rows, rank_by_joined, symbols);
}

Ids merged_ids(const Rows& rows, bool rank_by_joined, const Ids& ids) {
  return ids_of(merged(BpeMerges(rows, rank_by_joined), ids));
}

void the_lowest_rank_first_then_the_leftmost() {
  CHECK(merged_ids({{2, 3, 10}, {1, 2, 11}}, false, {1, 2, 3}) == (Ids{1, 10}));
  CHECK(merged_ids({{1, 2, 11}, {2, 3, 10}}, false, {1, 2, 3}) == (Ids{11, 3}));
  CHECK(merged_ids({{1, 1, 10}}, false, {1, 1, 1}) == (Ids{10, 1}));
  CHECK(merged_ids({{1, 1, 10}, {10, 10, 11}, {10, 1, 12}}, false, Ids(7, 1)) == (Ids{11, 12}));
  CHECK(merged_ids({}, false, {1, 2}) == (Ids{1, 2}));
  CHECK(merged_ids({{1, 1, 10}}, false, {}) == Ids{});
  CHECK((merged(BpeMerges(Rows{{1, 2, 10}}, false), {1, 2, 3}) == Symbols{{10, 3}, {3, 3}}));
}

void a_pair_listed_twice_has_its_last_rank() {
  const Rows rows = {{1, 2, 10}, {2, 3, 11}, {1, 2, 12}};
  CHECK(merged_ids(rows, false, {1, 2, 3}) == (Ids{1, 11}));
  CHECK(merged_ids(rows, false, {1, 2}) == (Ids{12}));
}

/// Pairs of one token share a rank: then the leftmost goes first, whichever was listed first.
void rank_by_joined() {
  const Rows rows = {{2, 3, 10}, {1, 2, 10}, {3, 1, 11}};
  CHECK(merged_ids(rows, true, {1, 2, 3}) == (Ids{10, 3}));
  CHECK(merged_ids(rows, false, {1, 2, 3}) == (Ids{1, 10}));
  const BpeMerges merges(rows, true);
  CHECK(merges.rank(2, 3) == 0 && merges.rank(1, 2) == 0 && merges.rank(3, 1) == 1);
  CHECK(merges.rank(3, 2) == BpeMerges::kNoRank);
}

void what_is_refused() {
  const Rows rows = {{1, 2, kNoId}};
  CHECK_THROWS(std::invalid_argument, BpeMerges(rows, false));
}

/// Merges of anything to anything, also to symbols that were there before.
Rows random_rows(std::mt19937& random, std::uint32_t symbols) {
  Rows rows;
  std::uint32_t known = symbols;
  for (std::uint32_t left = random() % 20 + 1; left > 0; --left) {
    const std::uint32_t a = random() % known;
    const std::uint32_t b = random() % known;
    const std::uint32_t kind = random() % 8;
    const std::uint32_t joined = kind == 0                    ? random() % known
                                 : kind == 1 && !rows.empty() ? rows.back().joined
                                                              : known++;
    rows.push_back({a, b, joined});
  }
  return rows;
}

/// Short words live in a small array, longer ones in a heap: both sides of the border.
void words_of_every_length_equal_the_definition() {
  std::mt19937 random(4);
  for (int round = 0; round < 150; ++round) {
    const Rows rows = random_rows(random, 3);
    for (const bool by_joined : {false, true}) {
      const BpeMerges merges(rows, by_joined);
      for (std::size_t length = 0; length <= 130; length += length < 60 ? 1 : 17) {
        Ids ids;
        for (std::size_t i = 0; i < length; ++i) ids.push_back(random() % 3);
        CHECK(merged(merges, ids) == naively_merged(rows, by_joined, ids));
      }
    }
  }
}

/// In the order in which they are done, each with its pair.
void watched() {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const Rows rows = random_rows(random, 2);
    const BpeMerges merges(rows, false);
    Ids ids;
    for (std::size_t left = random() % 30; left > 0; --left) ids.push_back(random() % 2);
    ModelState state;
    state.ids = ids;
    merges.look_up_ranks(state);
    std::size_t seen = 0;
    Symbols symbols = naively_merged({}, false, ids);
    merges.apply_watched(state, [&](std::uint32_t rank, std::uint32_t left, std::uint32_t right) {
      CHECK(rank < rows.size() && rows[rank].left == left && rows[rank].right == right);
      CHECK(merges.rank(left, right) == rank);
      // No pair of a lower rank stands there, and this one stands there.
      std::size_t at = ids.size();
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        CHECK(merges.rank(ids[i], ids[i + 1]) >= rank);
        if (at == ids.size() && ids[i] == left && ids[i + 1] == right) at = i;
      }
      CHECK(at < ids.size());
      ids[at] = rows[rank].joined;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      ++seen;
    });
    CHECK(state.ids == ids && ids.size() + seen == symbols.size());
  }
}

/// A quadratic one would need hours.
void a_million_symbols() {
  Rows rows;
  for (std::uint32_t id = 0; id < 10; ++id) rows.push_back({id, id, id + 1});
  const Symbols symbols = merged(BpeMerges(rows, false), Ids(1'000'000, 0));
  // 976 of 1024; the 576 that are left are 512 and 64.
  CHECK(symbols.size() == 976 + 2);
  CHECK(symbols[975].id == 10 && symbols[976].id == 9 && symbols[977].id == 6);
  CHECK(merged(BpeMerges(rows, false), Ids(1'000'000, 99)).size() == 1'000'000);
}

}  // namespace

int main() {
  the_lowest_rank_first_then_the_leftmost();
  a_pair_listed_twice_has_its_last_rank();
  rank_by_joined();
  what_is_refused();
  words_of_every_length_equal_the_definition();
  watched();
  a_million_symbols();
}
