// The steps of Unigram training, slow and short: the definition that the kernels are tested
// against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.hpp"
#include "unigram/exact_math.hpp"
#include "unigram/pieces.hpp"
#include "unigram/segments.hpp"

namespace naive_unigram {

using bpe_beam::Segment;
using bpe_beam::Wide;

struct Text {
  std::string text;
  std::int64_t count;
  std::uint32_t follower;
};

inline std::vector<Segment> segments_of(const std::vector<Text>& texts) {
  std::vector<Segment> segments;
  for (const Text& each : texts) {
    segments.push_back({each.text.data(), static_cast<std::uint32_t>(each.text.size()),
                        each.follower, each.count});
  }
  return segments;
}

/// The positions at which characters begin, and the end.
inline std::vector<std::size_t> positions(std::string_view text) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((text[at] & 0xC0) != 0x80) begins.push_back(at);
  }
  begins.push_back(text.size());
  return begins;
}

inline std::uint32_t character_at(std::string_view text, std::size_t at) {
  return bpe_beam::decode_utf8(text.data() + at, text.data() + text.size()).value;
}

/// The weight of each seed.
inline std::map<std::string, Wide> seeds(const std::vector<Text>& texts, std::size_t longest) {
  std::map<std::string, std::int64_t> counts;
  std::map<std::string, std::set<std::uint32_t>> followers;
  std::map<std::string, std::size_t> characters;
  for (const Text& each : texts) {
    const auto at = positions(each.text);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      for (std::size_t j = i + 2; j < at.size() && j - i <= longest; ++j) {
        const std::string piece = each.text.substr(at[i], at[j] - at[i]);
        counts[piece] += each.count;
        characters[piece] = j - i;
        followers[piece].insert(j + 1 < at.size() ? character_at(each.text, at[j]) : each.follower);
      }
    }
  }
  std::map<std::string, Wide> weights;
  for (const auto& [piece, count] : counts) {
    const auto& behind = followers[piece];
    const bool common = behind.size() == 1 && *behind.begin() != bpe_beam::kNoFollower;
    if (count >= 2 && !common) weights[piece] = static_cast<Wide>(count) * characters[piece];
  }
  return weights;
}

/// The expected counts, as the definition writes them.
inline std::map<std::string, Wide> expected(const std::vector<Text>& texts,
                                            const std::map<std::string, double>& probabilities) {
  std::map<std::string, Wide> sums;
  for (const Text& each : texts) {
    const auto at = positions(each.text);
    const std::size_t n = at.size() - 1;
    const auto probability = [&](std::size_t i, std::size_t j) {
      const auto piece = probabilities.find(each.text.substr(at[i], at[j] - at[i]));
      return piece == probabilities.end() ? -1.0 : piece->second;
    };
    std::vector<double> alpha(n + 1);
    std::vector<double> beta(n + 1);
    std::vector<int> shift(n + 1);
    alpha[0] = 1.0;
    for (std::size_t i = 0; i < n; ++i) {
      if (alpha[i] < 0x1p-200) {
        alpha[i] *= 0x1p200;
        ++shift[i];
      }
      for (std::size_t j = i + 1; j <= n; ++j) {
        if (probability(i, j) < 0) continue;
        const int least = alpha[j] == 0.0 ? shift[i] : std::min(shift[i], shift[j]);
        alpha[j] = std::ldexp(alpha[j], 200 * (least - shift[j])) +
                   std::ldexp(alpha[i] * probability(i, j), 200 * (least - shift[i]));
        shift[j] = least;
      }
    }
    beta[n] = 1.0 / alpha[n];
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j <= n; ++j) {
        if (probability(i, j) < 0) continue;
        double v = probability(i, j) * beta[j];
        v = std::ldexp(v, 200 * (shift[j] - shift[i]));
        beta[i] = beta[i] + v;
        sums[each.text.substr(at[i], at[j] - at[i])] +=
            static_cast<Wide>(std::llrint((alpha[i] * v) * 0x1p52)) *
            static_cast<std::uint64_t>(each.count);
      }
    }
  }
  return sums;
}

/// The best way to cut a text, from all ways: the greatest sum, then of the last pieces those that
/// begin first. Without `without`, if that is not empty. Sum and pieces, from the last to the
/// first.
inline std::pair<std::int64_t, std::vector<std::string>> best_path(
    const std::string& text, const std::map<std::string, std::int64_t>& scores,
    const std::string& without) {
  std::pair<std::int64_t, std::vector<std::string>> best{INT64_MIN, {}};
  if (text.empty()) return {0, {}};
  for (const std::size_t begin : positions(text)) {
    const std::string last = text.substr(begin);
    const auto score = scores.find(last);
    if (score == scores.end() || last == without) continue;
    auto [sum, pieces] = best_path(text.substr(0, begin), scores, without);
    if (sum == INT64_MIN || sum + score->second <= best.first) continue;
    pieces.insert(pieces.begin(), last);
    best = {sum + score->second, std::move(pieces)};
  }
  return best;
}

/// Random texts of a few characters of one to four bytes.
inline std::vector<Text> random_texts(std::mt19937& random, std::size_t texts, std::size_t longest,
                                      std::size_t letters) {
  static const std::vector<std::string> kLetters = {
      "a", "\xC3\xA9", "\xE2\x96\x81", "\xF0\x9F\x98\x80", "b", "\xC3\xA8"};
  static const std::vector<std::uint32_t> kFollowers = {'a', 'b', 0xE9, 0xE8};
  std::vector<Text> result;
  for (std::size_t i = 0; i < texts; ++i) {
    const std::int64_t times = random() % 4 == 0 ? 1000 : 1;  // some are far more frequent
    Text text{{}, times * static_cast<std::int64_t>(random() % 5 + 1), bpe_beam::kNoFollower};
    for (std::size_t left = random() % longest + 1; left > 0; --left) {
      text.text += kLetters[random() % letters];
    }
    if (random() % 2 == 0) text.follower = kFollowers[random() % kFollowers.size()];
    result.push_back(std::move(text));
  }
  return result;
}

/// All characters of texts and some substrings, sorted.
inline std::vector<std::string> random_pieces(std::mt19937& random,
                                              const std::vector<Text>& texts) {
  std::set<std::string> pieces;
  for (const Text& each : texts) {
    const auto at = positions(each.text);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      pieces.insert(each.text.substr(at[i], at[i + 1] - at[i]));
      const std::size_t j = i + 1 + random() % (at.size() - 1 - i);
      if (random() % 2 == 0) pieces.insert(each.text.substr(at[i], at[j] - at[i]));
    }
  }
  return {pieces.begin(), pieces.end()};
}

/// The segments of words, sorted by their bytes, and equal ones joined.
inline std::vector<Segment> joined_segments(const std::vector<Segment>& segments) {
  bpe_beam::SegmentTable table;
  for (const Segment& segment : segments) table.add(segment);
  return std::move(table).sorted();
}

inline bpe_beam::Pieces pieces_of(const std::vector<std::string>& texts) {
  return bpe_beam::Pieces({texts.begin(), texts.end()});
}

template <class T>
std::map<std::string, T> by_text(const std::vector<std::string>& texts,
                                 const std::vector<T>& values) {
  std::map<std::string, T> result;
  for (std::size_t i = 0; i < texts.size(); ++i) result[texts[i]] = values[i];
  return result;
}

}  // namespace naive_unigram
