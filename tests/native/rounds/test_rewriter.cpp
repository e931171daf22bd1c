// Rewriting packed words against the definition of merging.
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "naive_rounds.hpp"
#include "rounds/rewriter.hpp"

using namespace bpe_beam;

namespace {

using Batches = std::vector<std::vector<MergeRow>>;

CountedWords rewritten(const CountedWords& words, const Batches& batches) {
  Rewriter rewriter;
  for (const auto& batch : batches) rewriter.add_batch(batch);
  return unpacked(rewriter.rewrite(view_of(packed(words))));
}

void words_of_one_symbol_are_dropped() {
  const CountedWords words = {{{1, 2}, 5}, {{1, 2, 3}, 6}, {{4}, 7}, {{}, 8}, {{4, 1}, 9}};
  CHECK(rewritten(words, {{{1, 2, 300}}}) == (CountedWords{{{300, 3}, 6}, {{4, 1}, 9}}));
  CHECK(rewritten(words, {}) == (CountedWords{{{1, 2}, 5}, {{1, 2, 3}, 6}, {{4, 1}, 9}}));
}

/// Within a batch the lowest rank first; a later batch sees what the earlier one left.
void batches_one_after_another() {
  const CountedWords words = {{{1, 2, 3, 4}, 1}};
  CHECK(rewritten(words, {{{2, 3, 10}, {1, 2, 11}}}) == (CountedWords{{{1, 10, 4}, 1}}));
  CHECK(rewritten(words, {{{1, 2, 11}}, {{2, 3, 10}}}) == (CountedWords{{{11, 3, 4}, 1}}));
  CHECK(rewritten(words, {{{1, 2, 11}}, {{3, 4, 12}}}) == (CountedWords{{{11, 12}, 1}}));
  CHECK(rewritten(words, {{{11, 3, 13}}, {{1, 2, 11}}}) == (CountedWords{{{11, 3, 4}, 1}}));
  CHECK(rewritten(words, {{{1, 2, 11}, {11, 3, 13}}}) == (CountedWords{{{13, 4}, 1}}));
}

/// Bytes that a word has beyond those it needs stay where nothing is merged in it.
void an_unchanged_word_is_copied() {
  Rewriter rewriter;
  const std::vector<MergeRow> rows = {{1, 3, 9}};
  rewriter.add_batch(rows);
  const std::string data("\x81\x00\x02\x81\x00\x03\x05", 7);
  const std::vector<std::int64_t> offsets = {0, 3, 7};
  const std::vector<std::int64_t> counts = {4, 5};
  const PackedColumns out = rewriter.rewrite({data, offsets, counts});
  CHECK(out.data == std::string("\x81\x00\x02\x09\x05", 5));
  CHECK((out.offsets == std::vector<std::int64_t>{0, 3, 5}) && out.counts == counts);
}

void equals_the_definition() {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::uint32_t known = round % 2 == 0 ? 3 : 130;
    const std::uint32_t first = known;
    Batches batches;
    for (std::size_t left = random() % 4; left > 0; --left) {
      batches.emplace_back();
      for (std::size_t i = random() % 8; i > 0; --i) {
        const std::uint32_t a = random() % known;
        const std::uint32_t b = random() % known;
        const std::uint32_t joined = random() % 8 == 0 ? random() % known : known++;
        batches.back().push_back({a, b, joined});
      }
    }
    CountedWords words;
    for (std::size_t left = random() % 8; left > 0; --left) {
      Ids ids;
      // Up to 48 symbols are merged in an array, more with a heap.
      for (std::size_t i = random() % 70; i > 0; --i) ids.push_back(random() % first);
      words.push_back({ids, static_cast<std::int64_t>(random()) + 1});
    }
    CHECK(rewritten(words, batches) == naive_rewrite(words, batches));
  }
}

/// A quadratic one would need hours.
void a_million_symbols() {
  Batches batches(1);
  for (std::uint32_t id = 0; id < 10; ++id) batches[0].push_back({id, id, id + 1});
  const CountedWords out = rewritten({{Ids(1'000'000, 0), 3}}, batches);
  CHECK(out.size() == 1 && out[0].symbols.size() == 976 + 2 && out[0].count == 3);
}

void what_is_refused() {
  Rewriter rewriter;
  const std::vector<MergeRow> rows = {{1, 2, kNoId}};
  CHECK_THROWS(std::invalid_argument, (rewriter.add_batch(rows), 0));
  CHECK_THROWS(std::invalid_argument, Rewriter().rewrite(view_of(packed({{{1, 2}, 0}}))));
  PackedColumns broken = packed({{{1, 300}, 1}});
  broken.data.pop_back();
  broken.offsets.back() -= 1;
  CHECK_THROWS(std::invalid_argument, Rewriter().rewrite(view_of(broken)));
}

}  // namespace

int main() {
  words_of_one_symbol_are_dropped();
  batches_one_after_another();
  an_unchanged_word_is_copied();
  equals_the_definition();
  a_million_symbols();
  what_is_refused();
}
