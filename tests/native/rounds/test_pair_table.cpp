// The table of pairs against std::map.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "check.hpp"
#include "naive_rounds.hpp"
#include "rounds/pair_table.hpp"

using namespace bpe_beam;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

using Counts = std::map<SymbolPair, std::int64_t>;
using Rows = std::vector<std::pair<SymbolPair, std::int64_t>>;

Rows rows_of(const PairColumns& columns) {
  CHECK(columns.rights.size() == columns.lefts.size());
  CHECK(columns.counts.size() == columns.lefts.size());
  Rows rows;
  for (std::size_t i = 0; i < columns.lefts.size(); ++i) {
    rows.push_back({{columns.lefts[i], columns.rights[i]}, columns.counts[i]});
  }
  return rows;
}

Rows all(const PairTable& table) {
  Rows rows = rows_of(table.split(1).front());
  CHECK(rows.size() == table.size());
  return rows;
}

Rows all(const Counts& counts) { return {counts.begin(), counts.end()}; }

void add(PairTable& table, const CountedWords& words) { table.add_words(view_of(packed(words))); }

CountedWords random_words(std::mt19937& random, std::uint32_t symbols) {
  CountedWords words;
  for (std::size_t left = random() % 40; left > 0; --left) {
    Ids ids;
    for (std::size_t i = random() % 12; i > 0; --i) ids.push_back(random() % symbols);
    words.push_back({ids, static_cast<std::int64_t>(random() % 5) + 1});
  }
  return words;
}

void overlapping_pairs_count_each() {
  PairTable table;
  add(table, {{{7, 7, 7}, 10}, {{1}, 5}, {{}, 5}, {{1, 2}, 3}, {{2, 1, 2}, 1}});
  CHECK(all(table) == (Rows{{{1, 2}, 4}, {{2, 1}, 1}, {{7, 7}, 20}}));
  // No pair is none, whatever its ids.
  add(table, {{{0, 0, 0xFFFFFFFF, 0xFFFFFFFF}, 1}});
  CHECK(table.size() == 6);
  table.clear();
  CHECK(all(table).empty() && table.size() == 0);
  add(table, {{{1, 2}, 3}});
  CHECK(all(table) == (Rows{{{1, 2}, 3}}));
}

void equals_a_map() {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t symbols = round % 3 == 0 ? 3 : round % 3 == 1 ? 60 : 0xFFFFFFFF;
    PairTable table;
    Counts reference;
    for (int part = 0; part < 30; ++part) {
      const CountedWords words = random_words(random, symbols);
      const Counts pairs = naive_pairs(words);
      if (part % 3 == 0) {
        add(table, words);
      } else if (part % 3 == 1) {
        PairTable other;
        add(other, words);
        table.add_table(other);
      } else {
        std::vector<std::uint32_t> lefts;
        std::vector<std::uint32_t> rights;
        std::vector<std::int64_t> counts;
        for (const auto& [pair, count] : pairs) {
          lefts.push_back(pair.first);
          rights.push_back(pair.second);
          counts.push_back(count);
        }
        table.add(lefts.data(), rights.data(), counts);
      }
      for (const auto& [pair, count] : pairs) reference[pair] += count;
      CHECK(table.memory_bytes() * 5 >= 16 * table.size() * 8);  // at most 5/8 full
    }
    CHECK(all(table) == all(reference));
  }
}

/// Pairs that may not be joined are left out; two characters always may.
void widths() {
  const std::vector<std::uint32_t> widths = {1, 1, 2, 3};
  const PackedColumns words = packed({{{0, 1, 2, 3, 0}, 2}, {{0, 2}, 1}});
  const auto counted = [&](std::uint64_t max_length) {
    PairTable table;
    table.add_words(view_of(words), PairWidths{widths, max_length});
    return all(table);
  };
  CHECK(counted(0) == (Rows{{{0, 1}, 2}}));
  CHECK(counted(3) == (Rows{{{0, 1}, 2}}));
  CHECK(counted(4) == (Rows{{{0, 1}, 2}, {{0, 2}, 1}, {{1, 2}, 2}}));
  CHECK(counted(5) == (Rows{{{0, 1}, 2}, {{0, 2}, 1}, {{1, 2}, 2}, {{3, 0}, 2}}));
  CHECK(counted(~std::uint64_t{0}).size() == 5);
  const std::vector<std::uint32_t> wide = {0xFFFFFFFF, 0xFFFFFFFF, 2, 3};
  PairTable table;
  table.add_words(view_of(words), PairWidths{wide, 10});  // sums are not cut to 32 bits
  CHECK(all(table) == (Rows{{{2, 3}, 2}}));
  const std::vector<std::uint32_t> few = {1, 1, 2};
  CHECK_THROWS(std::invalid_argument, (table.add_words(view_of(words), PairWidths{few, 9}), 0));
}

void shards() {
  std::mt19937 random(2);
  PairTable table;
  Counts reference;
  for (int i = 0; i < 100; ++i) {
    const CountedWords words = random_words(random, 50);
    add(table, words);
    for (const auto& [pair, count] : naive_pairs(words)) reference[pair] += count;
  }
  for (const std::uint32_t shards : {1U, 2U, 7U, 64U}) {
    const std::vector<PairColumns> parts = table.split(shards);
    CHECK(parts.size() == shards);
    Counts found;
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      const Rows rows = rows_of(parts[shard]);
      CHECK(std::is_sorted(rows.begin(), rows.end()));
      CHECK(rows.size() < 2 * reference.size() / shards + 20);
      for (const auto& [pair, count] : rows) {
        CHECK(shard_of(PairMap::key(pair.first, pair.second), shards) == shard);
        CHECK(found.emplace(pair, count).second);
      }
    }
    CHECK(found == reference);
  }
  CHECK_THROWS(std::invalid_argument, table.split(0));
  // Fixed for ever: workers of any age send a pair to the same place.
  CHECK(shard_of(0, 1000) == 10 && shard_of(1, 1000) == 915);
  CHECK(shard_of(PairMap::key(97, 98), 1000) == 968 && shard_of(~std::uint64_t{0}, 1000) == 331);
}

void frequent() {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    PairTable table;
    const CountedWords words = random_words(random, 6);
    add(table, words);
    const Rows reference = all(naive_pairs(words));
    const std::size_t limit = random() % 12;
    const std::int64_t asked = random() % 8;
    std::int64_t expected = asked;
    const auto above = [&](std::int64_t floor) {
      Rows rows;
      for (const auto& row : reference) {
        if (row.second >= floor) rows.push_back(row);
      }
      return rows;
    };
    while (above(expected).size() > limit) ++expected;
    std::int64_t floor = asked;
    CHECK(rows_of(table.frequent(floor, limit)) == above(expected));
    CHECK(floor == expected);
  }
  PairTable table;
  add(table, {{{1, 2}, kMost}, {{3, 4}, kMost}, {{5, 6}, kMost - 1}});
  std::int64_t floor = 0;
  CHECK(table.frequent(floor, 2).counts.size() == 2 && floor == kMost);
  CHECK_THROWS(std::overflow_error, table.frequent(floor, 1));
}

void best() {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    PairTable table;
    const CountedWords words = random_words(random, 8);
    add(table, words);
    Ids ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    const bool ranked = round % 2 == 0;
    if (ranked) std::shuffle(ranks.begin(), ranks.end(), random);
    Rows rows = all(naive_pairs(words));
    std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
      if (a.second != b.second) return a.second > b.second;
      return std::pair(ranks[a.first.first], ranks[a.first.second]) <
             std::pair(ranks[b.first.first], ranks[b.first.second]);
    });
    const std::size_t limit = random() % 70;
    rows.resize(std::min(limit, rows.size()));
    using Ranks = std::optional<std::span<const std::uint32_t>>;
    CHECK(rows_of(table.best(limit, ranked ? Ranks(ranks) : Ranks())) == rows);
  }
  PairTable table;
  add(table, {{{1, 2}, 1}});
  const Ids few = {0, 1};
  CHECK_THROWS(std::invalid_argument, table.best(1, few));
  CHECK_THROWS(std::invalid_argument, table.best(0, std::span<const std::uint32_t>()));
}

void what_is_refused() {
  PairTable table;
  add(table, {{{1, 2}, kMost}});
  CHECK_THROWS(std::overflow_error, (add(table, {{{1, 2}, 1}}), 0));
  CHECK_THROWS(std::overflow_error, (add(table, {{{7, 7, 7}, kMost}}), 0));
  CHECK_THROWS(std::overflow_error, (table.add_table(table), 0));
  CHECK_THROWS(std::invalid_argument, (add(table, {{{1, 2}, 0}}), 0));
  CHECK_THROWS(std::invalid_argument, (add(table, {{{}, -1}}), 0));
  const std::vector<std::uint32_t> ids = {1};
  const std::vector<std::int64_t> none = {0};
  CHECK_THROWS(std::invalid_argument, (table.add(ids.data(), ids.data(), none), 0));
  PackedColumns cut = packed({{{1, 300}, 1}});
  cut.data.pop_back();
  cut.offsets.back() -= 1;
  CHECK_THROWS(std::invalid_argument, (table.add_words(view_of(cut)), 0));
}

}  // namespace

int main() {
  overlapping_pairs_count_each();
  equals_a_map();
  widths();
  shards();
  frequent();
  best();
  what_is_refused();
}
