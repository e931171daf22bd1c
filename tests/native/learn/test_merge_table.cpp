// Words, pairs and places, and what a merge does to them; the rest in test_bpe_learner.cpp.
#include "learn/merge_table.hpp"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

struct NoMark {};
using Table = MergeTable<NoMark>;

const std::vector<std::uint32_t> kSymbols = {0, 1, 1, 0, 1};  // a #b #b, a #b
const std::vector<std::int64_t> kOffsets = {0, 3, 5};
const std::vector<std::int64_t> kCounts = {2, 3};

auto down_to(std::int64_t floor) {
  return [floor](std::int64_t) { return floor; };
}

WordsToLearn words() {
  return {.symbols = kSymbols,
          .offsets = kOffsets,
          .counts = kCounts,
          .tokens = {"a", "#b"},
          .spans = {},
          .prefix = "#"};
}

void counts_frequencies_and_places() {
  Table table(words());
  table.list_pairs(down_to(1));
  CHECK(table.frequency(0) == 5);
  CHECK(table.frequency(1) == 7);
  const std::uint32_t ab = table.find(0, 1);
  const std::uint32_t bb = table.find(1, 1);
  CHECK(table.find(1, 0) == PairMap::kNone);
  CHECK(table.pairs()[ab].count == 5);
  CHECK(table.pairs()[bb].count == 2);
  CHECK(table.first_position(table.pairs()[ab]) < table.first_position(table.pairs()[bb]));

  std::vector<std::uint32_t> gained;
  const LearnedMerge learned = table.merge(ab, [&](std::uint32_t it) { gained.push_back(it); });
  CHECK(learned.joined == 2 && learned.count == 5);
  CHECK(table.tokens()[2] == "ab");
  CHECK(table.frequency(0) == 0);
  CHECK(table.frequency(1) == 2);
  CHECK(table.frequency(2) == 5);
  CHECK(gained == std::vector<std::uint32_t>{table.find(2, 1)});
  CHECK(table.pairs()[table.find(2, 1)].count == 2);
  CHECK(table.pairs()[ab].count == 0);
  CHECK(table.pairs()[bb].count == 0);
  const std::uint32_t nowhere = table.first_position(table.pairs()[bb]);
  CHECK(nowhere == static_cast<std::uint32_t>(kMaxPositions));
}

/// A position for each symbol, or for each character that symbols cover, and one between words.
void positions_are_limited() {
  const std::vector<std::uint32_t> spans = {1, 4, 2, 1, 3};
  for (const bool with_spans : {false, true}) {
    WordsToLearn limited = words();
    if (with_spans) limited.spans = spans;
    limited.max_positions = (with_spans ? 11 : 5) + 2 + 1;
    const Table table(limited);
    --limited.max_positions;
    CHECK_THROWS(std::length_error, Table(limited));
  }
}

void what_is_too_long_is_not_counted() {
  WordsToLearn limited = words();
  limited.max_token_length = 3;
  Table table(limited);
  table.list_pairs(down_to(1));
  std::size_t gained = 0;
  table.merge(table.find(0, 1), [&](std::uint32_t) { ++gained; });
  CHECK(gained == 0);
}

void spans_are_of_every_symbol() {
  const std::vector<std::uint32_t> spans(kSymbols.size(), 2);
  WordsToLearn wide = words();
  wide.spans = std::span(spans).first(4);
  CHECK_THROWS(std::invalid_argument, Table{wide});
  wide.spans = spans;
  Table table(wide);
  table.list_pairs(down_to(1));
  CHECK(table.pairs()[table.find(0, 1)].count == 5);
  CHECK(table.pairs()[table.find(1, 1)].count == 2);
}

void lists_pairs_down_to_the_floor() {
  Table table(words());
  CHECK(table.pairs().size() == 0);
  table.list_pairs([](std::int64_t highest) {
    CHECK(highest >= 5);
    return 3;
  });
  CHECK(table.floor() == 3 && table.is_complete());
  CHECK(table.find(0, 1) != PairMap::kNone);
  // (ab, #b) counts 2, too few to be listed; the next list has it.
  std::size_t gained = 0;
  table.merge(table.find(0, 1), [&](std::uint32_t) { ++gained; });
  CHECK(gained == 0 && table.is_complete());
  table.list_pairs(down_to(1));
  CHECK(table.pairs().size() == 1);
  CHECK(table.pairs()[table.find(2, 1)].count == 2);
  table.merge(table.find(2, 1), [](std::uint32_t) {});
  table.list_pairs(down_to(1));
  CHECK(table.pairs().size() == 0);
}

/// A token that is made a second time: a pair of it may count more than it gains.
void a_token_made_again_leaves_the_list_incomplete() {
  const std::vector<std::uint32_t> symbols = {0, 1, 3, 2, 3};  // a b d, ab d
  const std::vector<std::int64_t> offsets = {0, 3, 5};
  const std::vector<std::int64_t> counts = {4, 3};
  for (const std::int64_t floor : {1, 4}) {
    Table table({.symbols = symbols,
                 .offsets = offsets,
                 .counts = counts,
                 .tokens = {"a", "b", "ab", "d"},
                 .spans = {},
                 .prefix = {}});
    table.list_pairs(down_to(floor));
    CHECK((table.find(2, 3) != PairMap::kNone) == (floor == 1));
    table.merge(table.find(0, 1), [](std::uint32_t) {});
    CHECK(table.is_complete() == (floor == 1));
    if (floor > 1) table.list_pairs(down_to(floor));
    CHECK(table.is_complete());
    CHECK(table.pairs()[table.find(2, 3)].count == 7);
    CHECK(table.pairs()[table.find(2, 3)].positions.size() == 2);
  }
}

}  // namespace

int main() {
  counts_frequencies_and_places();
  positions_are_limited();
  what_is_too_long_is_not_counted();
  spans_are_of_every_symbol();
  lists_pairs_down_to_the_floor();
  a_token_made_again_leaves_the_list_incomplete();
}
