// Scores and pruning, by an example, and with too few pieces.
#include "unigram/pruning.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.hpp"

using namespace bpe_beam;

namespace {

constexpr Wide kOne = Wide{1} << kCountBits;

void estimates_scores() {
  const Pieces pieces({"a", "ab", "abc", "b"});
  const auto result = estimate(pieces, std::vector<Wide>{0, kOne / 2, kOne / 2 - 1, 3 * kOne});
  CHECK((result.kept == std::vector<std::uint8_t>{1, 1, 0, 1}));
  CHECK((result.counts == std::vector<Wide>{kOne / 2, kOne / 2, 3 * kOne}));
  CHECK(result.scores[0] == exact_digamma(0.5) - exact_digamma(4.0));
  CHECK(result.scores[2] == exact_digamma(3.0) - exact_digamma(4.0));
}

/// Pieces a, ab, abc, b, bc, c.
std::vector<std::uint8_t> pruned(const std::vector<std::int64_t>& counts, std::size_t desired,
                                 std::size_t target) {
  const Pieces pieces({"a", "ab", "abc", "b", "bc", "c"});
  const std::vector<std::int64_t> scores = {-50, -60, -70, -50, -60, -50};
  const std::vector<Wide> expected = {1, 4, 3, 1, 5, 1};
  return prune({pieces, scores, counts, expected, desired, target, 2});
}

void keeps_the_pieces_of_greatest_loss() {
  const Pieces pieces({"a", "ab", "abc", "b", "bc", "c"});
  const std::vector<std::int64_t> scores = {-50, -60, -70, -50, -60, -50};
  const std::vector<std::int64_t> counts = {0, 9, 8, 0, 7, 2};
  const std::vector<Wide> expected(6);
  const auto loss = losses({pieces, scores, counts, expected, 3, 3, 1});
  const double w = 26.0;
  const double f = 8.0;
  // Without abc: a bc and ab c have equal sums, and the last piece that begins first counts.
  double other = exact_log(7.0 + f) - exact_log(w + f);
  other = other + (exact_log(0.0 + f) - exact_log(w + f));
  CHECK(loss[2] == f * ((exact_log(f) - exact_log(w)) - other));
  CHECK(std::isinf(loss[0]) && std::isinf(loss[3]) && std::isinf(loss[5]));
  const auto best =
      static_cast<std::size_t>(std::max_element(loss.begin(), loss.end()) - loss.begin());
  std::vector<std::uint8_t> kept = {1, 0, 0, 1, 0, 1};
  kept[best] = 1;
  CHECK(pruned(counts, 3, 4) == kept);
}

void returns_pieces_if_too_few_are_left() {
  const std::vector<std::int64_t> counts = {5, 0, 0, 5, 0, 5};
  CHECK((pruned(counts, 4, 4) == std::vector<std::uint8_t>{1, 0, 0, 1, 1, 1}));
  CHECK((pruned(counts, 5, 6) == std::vector<std::uint8_t>{1, 1, 0, 1, 1, 1}));
  CHECK((pruned(counts, 9, 9) == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1}));
  CHECK((pruned(counts, 1, 1) == std::vector<std::uint8_t>{1, 0, 0, 1, 0, 1}));
}

void drops_pieces_with_a_better_other_way() {
  const Pieces pieces({"a", "ab", "b"});
  const std::vector<std::int64_t> counts = {1, 1, 1};
  const std::vector<Wide> expected(3);
  const auto kept = [&](std::int64_t score) {
    const std::vector<std::int64_t> scores = {-5, score, -5};
    return prune({pieces, scores, counts, expected, 2, 3, 1})[1];
  };
  CHECK(kept(-10) == 1);
  CHECK(kept(-11) == 0);
}

}  // namespace

int main() {
  estimates_scores();
  keeps_the_pieces_of_greatest_loss();
  returns_pieces_if_too_few_are_left();
  drops_pieces_with_a_better_other_way();
}
