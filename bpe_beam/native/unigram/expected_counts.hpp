// How often each piece is expected in the segments, over all ways to cut them, weighted by their
// probabilities. Sums are integers, so that no order of the segments changes a bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "unigram/exact_math.hpp"
#include "unigram/pieces.hpp"
#include "unigram/segments.hpp"
#include "unigram/threads.hpp"

namespace bpe_beam {

/// Expected counts are integers in 2^-52.
inline constexpr int kCountBits = 52;

/// Adds the expected counts of one segment after another. The probabilities of all characters of a
/// segment must not be 0.
class ExpectedCounts {
 public:
  ExpectedCounts(const Pieces& pieces, std::span<const double> probabilities)
      : pieces_(&pieces), probabilities_(probabilities), sums_(pieces.size()) {}

  void add(std::string_view text, std::int64_t count) {
    matches_.find(*pieces_, text, [&](std::uint32_t piece) {
      __builtin_prefetch(&probabilities_[piece]);
      __builtin_prefetch(&sums_[piece], 1);
    });
    alpha_.assign(text.size() + 1, 0.0);
    beta_.assign(text.size() + 1, 0.0);
    alpha_[0] = 1.0;
    const bool shifted = forward(text.size());
    if (!(alpha_[text.size()] > 0.0)) {
      throw std::invalid_argument("a character of a segment is no piece");
    }
    beta_[text.size()] = 1.0 / alpha_[text.size()];
    if (shifted) {
      backward<true>(static_cast<std::uint64_t>(count));
    } else {
      backward<false>(static_cast<std::uint64_t>(count));
    }
  }

  [[nodiscard]] std::span<const Wide> sums() const { return sums_; }
  [[nodiscard]] std::vector<Wide> take() && { return std::move(sums_); }

 private:
  /// Returns whether small values were multiplied, as `shifts_` then counts at each position.
  bool forward(std::size_t end) {
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      const double alpha = alpha_[matches_.begin(i)];
      if (alpha < kSmall) [[unlikely]] {
        forward_shifted(i, end);
        return true;
      }
      for (const auto& match : matches_.at(i)) {
        alpha_[match.end] = alpha_[match.end] + alpha * probabilities_[match.piece];
      }
    }
    return false;
  }

  /// The same from a character on. A long piece may lead to a position whose value is far greater
  /// than the values before it, so each position has its own shift.
  void forward_shifted(std::size_t first, std::size_t end) {
    shifts_.assign(end + 1, 0);
    for (std::size_t i = first; i < matches_.size(); ++i) {
      const std::size_t begin = matches_.begin(i);
      if (alpha_[begin] < kSmall) {
        alpha_[begin] *= kLarge;
        ++shifts_[begin];
      }
      for (const auto& match : matches_.at(i)) {
        double& sum = alpha_[match.end];
        int& shift = shifts_[match.end];
        double more = alpha_[begin] * probabilities_[match.piece];
        if (sum == 0.0) shift = shifts_[begin];
        if (shifts_[begin] > shift) {
          more = std::ldexp(more, kShiftBits * (shift - shifts_[begin]));
        } else if (shifts_[begin] < shift) {
          sum = std::ldexp(sum, kShiftBits * (shifts_[begin] - shift));
          shift = shifts_[begin];
        }
        sum = sum + more;
      }
    }
  }

  template <bool kShifted>
  void backward(std::uint64_t count) {
    for (std::size_t i = matches_.size(); i-- > 0;) {
      const std::size_t begin = matches_.begin(i);
      const double alpha = alpha_[begin];
      double beta = 0.0;
      for (const auto& match : matches_.at(i)) {
        double v = probabilities_[match.piece] * beta_[match.end];
        if constexpr (kShifted) {
          v = std::ldexp(v, kShiftBits * (shifts_[match.end] - shifts_[begin]));
        }
        beta = beta + v;
        const auto share = static_cast<std::uint64_t>(std::llrint((alpha * v) * 0x1p52));
        sums_[match.piece] += static_cast<Wide>(share) * count;
      }
      beta_[begin] = beta;
    }
  }

  static constexpr int kShiftBits = 200;
  static constexpr double kSmall = 0x1p-200;
  static constexpr double kLarge = 0x1p200;

  const Pieces* pieces_;
  std::span<const double> probabilities_;
  std::vector<Wide> sums_;
  PieceMatches matches_;
  std::vector<double> alpha_;
  std::vector<double> beta_;
  std::vector<int> shifts_;
};

/// The expected count of each piece in segments.
inline std::vector<Wide> expected_counts(const Pieces& pieces,
                                         std::span<const double> probabilities,
                                         std::span<const Segment> segments, std::size_t threads) {
  constexpr std::size_t kSlice = 4096;
  auto of_threads = gather(segments.size(), kSlice, threads, ExpectedCounts(pieces, probabilities),
                           [&](ExpectedCounts& counts, std::size_t i) {
                             counts.add(segments[i].text(), segments[i].count);
                           });
  std::vector<Wide> sums = std::move(of_threads.back()).take();
  for (of_threads.pop_back(); !of_threads.empty(); of_threads.pop_back()) {
    const std::span<const Wide> more = of_threads.back().sums();
    for (std::size_t piece = 0; piece < sums.size(); ++piece) sums[piece] += more[piece];
  }
  return sums;
}

}  // namespace bpe_beam
