// Words, pairs and places, and what a merge does to them; the rest in test_bpe_learner.cpp.
#include "learn/merge_table.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

struct NoMark {};

const std::vector<std::uint32_t> kSymbols = {0, 1, 1, 0, 1};  // a #b #b, a #b
const std::vector<std::int64_t> kOffsets = {0, 3, 5};
const std::vector<std::int64_t> kCounts = {2, 3};

WordsToLearn words() {
  return {.symbols = kSymbols,
          .offsets = kOffsets,
          .counts = kCounts,
          .tokens = {"a", "#b"},
          .spans = {},
          .prefix = "#"};
}

void counts_frequencies_and_places() {
  MergeTable<NoMark, true> table(words());
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
    const MergeTable<NoMark, true> table(limited);
    --limited.max_positions;
    CHECK_THROWS(std::length_error, (MergeTable<NoMark, true>(limited)));
  }
  WordsToLearn plain = words();
  plain.prefix = "";
  plain.max_positions = 8;
  const MergeTable<NoMark, false> table(plain);
  plain.max_positions = 7;
  CHECK_THROWS(std::length_error, (MergeTable<NoMark, false>(plain)));
}

void what_is_too_long_is_not_counted() {
  WordsToLearn limited = words();
  limited.max_token_length = 3;
  MergeTable<NoMark, true> table(limited);
  std::size_t gained = 0;
  table.merge(table.find(0, 1), [&](std::uint32_t) { ++gained; });
  CHECK(gained == 0);
}

void spans_need_places() {
  const std::vector<std::uint32_t> spans(kSymbols.size(), 2);
  WordsToLearn wide = words();
  wide.spans = spans;
  CHECK_THROWS(std::invalid_argument, (MergeTable<NoMark, false>(wide)));
  MergeTable<NoMark, true> table(wide);
  CHECK(table.pairs()[table.find(0, 1)].count == 5);
  CHECK(table.pairs()[table.find(1, 1)].count == 2);
}

}  // namespace

int main() {
  counts_frequencies_and_places();
  positions_are_limited();
  what_is_too_long_is_not_counted();
  spans_need_places();
}
