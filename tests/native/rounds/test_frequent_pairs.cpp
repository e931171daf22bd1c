// Cutting packed words against its definition.
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>

#include "check.hpp"
#include "naive_rounds.hpp"
#include "rounds/frequent_pairs.hpp"

using namespace bpe_beam;

namespace {

CountedWords cut(const CountedWords& words, const std::set<SymbolPair>& hot, bool singles) {
  const PairLists lists(hot);
  return unpacked(
      FrequentPairs(lists.lefts, lists.rights).segments(view_of(packed(words)), singles));
}

void between_pairs_that_are_not_hot() {
  const CountedWords words = {{{1, 2, 300, 1, 2, 9}, 5}, {{9}, 6}, {{}, 7}, {{300, 1}, 8}};
  CHECK(cut(words, {{1, 2}, {2, 300}}, false) == (CountedWords{{{1, 2, 300}, 5}, {{1, 2}, 5}}));
  CHECK(cut(words, {{1, 2}, {2, 300}}, true) ==
        (CountedWords{{{1, 2, 300}, 5}, {{1, 2}, 5}, {{9}, 5}, {{9}, 6}, {{300}, 8}, {{1}, 8}}));
  CHECK(cut(words, {}, false).empty());
}

void the_pair_of_the_highest_ids_is_one_like_any_other() {
  const CountedWords words = {{{0xFFFFFFFF, 0xFFFFFFFF, 0}, 1}};
  CHECK(cut(words, {{0, 0}}, false).empty());
  // The same sides, not the pair.
  CHECK(cut(words, {{0xFFFFFFFF, 1}, {1, 0xFFFFFFFF}}, false).empty());
  CHECK(cut(words, {{0xFFFFFFFF, 0xFFFFFFFF}}, false) ==
        (CountedWords{{{0xFFFFFFFF, 0xFFFFFFFF}, 1}}));
}

void a_run_is_never_cut_inside() {
  CHECK(cut({{Ids(1000, 5), 2}}, {{5, 5}}, false) == (CountedWords{{Ids(1000, 5), 2}}));
}

void equals_the_definition() {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t symbols = round % 2 == 0 ? 5 : 400;
    CountedWords words;
    std::set<SymbolPair> hot;
    for (std::size_t left = random() % 10; left > 0; --left) {
      Ids ids;
      for (std::size_t i = random() % 30; i > 0; --i) ids.push_back(random() % symbols);
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        if (random() % 2 == 0) hot.insert({ids[i], ids[i + 1]});
      }
      words.push_back({ids, static_cast<std::int64_t>(random()) + 1});
    }
    for (const bool singles : {false, true}) {
      CHECK(cut(words, hot, singles) == naive_segments(words, hot, singles));
    }
  }
}

void what_is_refused() {
  const FrequentPairs none({}, {});
  CHECK_THROWS(std::invalid_argument, none.segments(view_of(packed({{{1, 2}, 0}})), true));
  PackedColumns broken = packed({{{1, 300}, 1}});
  broken.data.pop_back();
  broken.offsets.back() -= 1;
  CHECK_THROWS(std::invalid_argument, none.segments(view_of(broken), true));
}

}  // namespace

int main() {
  between_pairs_that_are_not_hot();
  the_pair_of_the_highest_ids_is_one_like_any_other();
  a_run_is_never_cut_inside();
  equals_the_definition();
  what_is_refused();
}
