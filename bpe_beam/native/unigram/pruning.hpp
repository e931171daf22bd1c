// Between two passes over the segments: scores from expected counts, and which pieces stay.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unigram/best_paths.hpp"
#include "unigram/exact_math.hpp"
#include "unigram/expected_counts.hpp"
#include "unigram/pieces.hpp"
#include "unigram/threads.hpp"

namespace bpe_beam {

/// A count as a double, rounded correctly.
inline double as_double(Wide count) { return std::ldexp(static_cast<double>(count), -kCountBits); }

/// What expected counts say of each piece; `scores` and `counts` are of the kept pieces.
struct Estimate {
  std::vector<std::uint8_t> kept;
  std::vector<Wide> counts;
  std::vector<double> scores;
};

/// Keeps the characters, and the pieces that are expected at least half a time. Characters have at
/// least that count.
inline Estimate estimate(const Pieces& pieces, std::span<const Wide> expected) {
  constexpr Wide kHalf = Wide{1} << (kCountBits - 1);
  Estimate result;
  result.kept.resize(pieces.size());
  result.counts.reserve(pieces.size());
  Wide total = 0;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    if (expected[piece] < kHalf && !pieces.is_character(piece)) continue;
    result.kept[piece] = 1;
    result.counts.push_back(std::max(expected[piece], kHalf));
    total += result.counts.back();
  }
  const double of_total = exact_digamma(as_double(total));
  result.scores.reserve(result.counts.size());
  for (const Wide count : result.counts) {
    result.scores.push_back(exact_digamma(as_double(count)) - of_total);
  }
  return result;
}

/// How a prune of pieces decides.
struct PruneInput {
  const Pieces& pieces;
  std::span<const std::int64_t> scores;
  std::span<const std::int64_t> counts;  // in the best paths of the segments
  std::span<const Wide> expected;
  std::size_t desired;  // dropped pieces return if there are fewer
  std::size_t target;   // not less than `desired`
  std::size_t threads;
};

/// The loss of each piece: how much less likely the words are if it is replaced by the best other
/// way to spell it. Negative infinity for characters, and for pieces that no path needs.
inline std::vector<double> losses(const PruneInput& input) {
  std::int64_t total = 0;
  for (const std::int64_t count : input.counts) total += count;
  const auto w = static_cast<double>(total);
  const double log_w = total > 0 ? exact_log(w) : 0.0;
  std::vector<double> result(input.pieces.size(), -HUGE_VAL);
  constexpr std::size_t kSlice = 1024;
  const auto add = [&](BestPath& path, std::size_t piece) {
    if (input.pieces.is_character(piece) || input.counts[piece] == 0) return;
    const auto number = static_cast<std::uint32_t>(piece);
    if (path.find(input.pieces.text(piece), number) > input.scores[piece]) return;
    std::size_t parts = 0;
    path.pieces_of_path([&](std::uint32_t) { ++parts; });
    const auto f = static_cast<double>(input.counts[piece]);
    const double log_sum = exact_log(w + f * static_cast<double>(parts - 1));
    double alternative = 0.0;
    path.pieces_of_path([&](std::uint32_t part) {
      const auto of_part = static_cast<double>(input.counts[part]);
      alternative = alternative + (exact_log(of_part + f) - log_sum);
    });
    result[piece] = f * ((exact_log(f) - log_w) - alternative);
  };
  gather(input.pieces.size(), kSlice, input.threads, BestPath(input.pieces, input.scores), add);
  return result;
}

/// Which pieces stay: an item for each.
inline std::vector<std::uint8_t> prune(const PruneInput& input) {
  const std::vector<double> loss = losses(input);
  std::vector<std::uint8_t> kept(input.pieces.size());
  std::size_t size = 0;
  std::vector<std::uint32_t> needed;
  std::vector<std::uint32_t> others;
  for (std::uint32_t piece = 0; piece < kept.size(); ++piece) {
    if (input.pieces.is_character(piece)) {
      kept[piece] = 1;
      ++size;
    } else {
      (std::isinf(loss[piece]) ? others : needed).push_back(piece);
    }
  }
  const auto keep = [&](std::vector<std::uint32_t>& order, std::size_t limit, auto better) {
    std::stable_sort(order.begin(), order.end(), better);
    for (const std::uint32_t piece : order) {
      if (size >= limit) return;
      kept[piece] = 1;
      ++size;
    }
  };
  keep(needed, input.target, [&](std::uint32_t a, std::uint32_t b) { return loss[a] > loss[b]; });
  keep(others, input.desired,
       [&](std::uint32_t a, std::uint32_t b) { return input.expected[a] > input.expected[b]; });
  return kept;
}

}  // namespace bpe_beam
