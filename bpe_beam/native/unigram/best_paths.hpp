// The best way to cut a text into pieces: with the greatest sum of integer scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "unigram/pieces.hpp"
#include "unigram/segments.hpp"
#include "unigram/threads.hpp"

namespace bpe_beam {

/// Finds the best path of one text after another. Of equal sums at a position the path whose last
/// piece begins first counts.
class BestPath {
 public:
  BestPath(const Pieces& pieces, std::span<const std::int64_t> scores)
      : pieces_(&pieces), scores_(scores) {}

  /// Returns the sum of the best path of a text, without one of the pieces if that is not kNoId.
  /// Throws std::invalid_argument if there is none.
  std::int64_t find(std::string_view text, std::uint32_t without = kNoId) {
    matches_.find(*pieces_, text);
    steps_.assign(text.size() + 1, {kUnreached, 0, 0});
    steps_[0].sum = 0;
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      const std::uint32_t begin = matches_.begin(i);
      const std::int64_t before = steps_[begin].sum;
      if (before == kUnreached) continue;
      for (const auto& match : matches_.at(i)) {
        if (match.piece == without) continue;
        const std::int64_t sum = before + scores_[match.piece];
        Step& step = steps_[match.end];
        if (sum > step.sum) step = {sum, begin, match.piece};
      }
    }
    if (steps_.back().sum == kUnreached) {
      throw std::invalid_argument("a character of a text is no piece");
    }
    return steps_.back().sum;
  }

  /// Calls `use(piece)` for each piece of the path that was found last, from the last to the first.
  template <class Use>
  void pieces_of_path(Use&& use) const {
    for (std::size_t at = steps_.size() - 1; at > 0; at = steps_[at].begin) use(steps_[at].piece);
  }

 private:
  static constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::min();

  struct Step {
    std::int64_t sum;
    std::uint32_t begin;
    std::uint32_t piece;
  };

  const Pieces* pieces_;
  std::span<const std::int64_t> scores_;
  PieceMatches matches_;
  std::vector<Step> steps_;
};

/// How often each piece is in the best paths of segments.
inline std::vector<std::int64_t> path_counts(const Pieces& pieces,
                                             std::span<const std::int64_t> scores,
                                             std::span<const Segment> segments,
                                             std::size_t threads) {
  struct State {
    BestPath path;
    std::vector<std::int64_t> counts;
  };
  constexpr std::size_t kSlice = 4096;
  State empty{BestPath(pieces, scores), std::vector<std::int64_t>(pieces.size())};
  const auto states =
      gather(segments.size(), kSlice, threads, std::move(empty), [&](State& state, std::size_t i) {
        state.path.find(segments[i].text());
        state.path.pieces_of_path(
            [&](std::uint32_t piece) { state.counts[piece] += segments[i].count; });
      });
  std::vector<std::int64_t> counts(pieces.size());
  for (const State& state : states) {
    for (std::size_t piece = 0; piece < counts.size(); ++piece)
      counts[piece] += state.counts[piece];
  }
  return counts;
}

}  // namespace bpe_beam
