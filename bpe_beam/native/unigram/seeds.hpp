// The first pieces of Unigram training: the substrings of segments that cover most characters,
// unless one and the same character follows them wherever they occur.
//
// The suffixes of all segments are sorted, so that the occurrences of a substring are neighbours.
// Where the next characters of several neighbours differ, or where one ends, a substring begins
// that may be a seed; all others have one common follower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.hpp"
#include "unigram/exact_math.hpp"
#include "unigram/segments.hpp"
#include "unigram/threads.hpp"

namespace bpe_beam {

/// A substring, and the number of its occurrences.
struct Seed {
  const char* begin;
  std::uint32_t size;
  std::uint32_t characters;
  std::int64_t count;

  [[nodiscard]] std::string_view text() const { return {begin, size}; }
  [[nodiscard]] Wide weight() const { return static_cast<Wide>(count) * characters; }

  /// Whether this seed is better than another one.
  [[nodiscard]] bool before(const Seed& other) const {
    return weight() != other.weight() ? weight() > other.weight() : text() < other.text();
  }
};

/// Reduces seeds to the best ones, in no order.
inline void keep_best(std::vector<Seed>& seeds, std::size_t limit) {
  if (seeds.size() <= limit) return;
  const auto end = seeds.begin() + static_cast<std::ptrdiff_t>(limit);
  std::nth_element(seeds.begin(), end, seeds.end(),
                   [](const Seed& a, const Seed& b) { return a.before(b); });
  seeds.resize(limit);
}

/// The best of many seeds.
class BestSeeds {
 public:
  explicit BestSeeds(std::size_t limit) : limit_(limit) {}

  /// Whether a seed of a weight may be one of the best.
  [[nodiscard]] bool admits(Wide weight) const { return weight >= minimum_; }

  void add(const Seed& seed) {
    if (!admits(seed.weight())) return;
    seeds_.push_back(seed);
    if (seeds_.size() >= limit_ + limit_ / 4 + 1024) reduce();
  }

  [[nodiscard]] std::vector<Seed> take() && {
    reduce();
    return std::move(seeds_);
  }

  /// Drops all but the best.
  void reduce() {
    keep_best(seeds_, limit_);
    if (seeds_.empty() || seeds_.size() < limit_) return;
    minimum_ = std::min_element(seeds_.begin(), seeds_.end(), [](const Seed& a, const Seed& b) {
                 return a.weight() < b.weight();
               })->weight();
  }

 private:
  std::size_t limit_;
  Wide minimum_ = 0;
  std::vector<Seed> seeds_;
};

/// Finds seeds in turns: in one, the seeds whose first two characters have certain hashes.
class SeedFinder {
 public:
  SeedFinder(std::span<const Segment> segments, std::size_t max_characters, std::size_t threads)
      : segments_(segments), max_characters_(max_characters), turn_of_(kHashes) {
    if (segments.size() > UINT32_MAX) throw std::length_error("too many different segments");
    const std::vector<std::size_t> sizes = positions_by_hash(threads);
    // Each turn reads all segments: the more of them, the larger are the turns.
    constexpr std::size_t kManyTurns = 32;
    constexpr std::size_t kFewTurns = 8;
    constexpr std::size_t kPositions = std::size_t{1} << 22;
    const std::size_t all = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    const std::size_t large = std::max(kPositions, all / (kManyTurns * threads));
    const std::size_t enough = std::min(large, all / (kFewTurns * threads));
    for (std::size_t hash = 0; hash < kHashes; ++hash) {
      if (turns_.empty() || turns_.back() > enough) turns_.push_back(0);
      turns_.back() += sizes[hash];
      turn_of_[hash] = static_cast<std::uint32_t>(turns_.size() - 1);
    }
  }

  [[nodiscard]] std::size_t turns() const { return turns_.size(); }

  /// Adds the seeds of a turn to the best ones.
  void add(std::size_t turn, BestSeeds& best) const {
    std::vector<Suffix> suffixes = suffixes_of(turn);
    std::sort(suffixes.begin(), suffixes.end(),
              [](const Suffix& a, const Suffix& b) { return a.key < b.key; });
    std::vector<Node> open{{{}, 0, 0, kNoFollower}};
    for (std::size_t begin = 0, end = 0; begin < suffixes.size(); begin = end) {
      std::int64_t count = 0;
      while (end < suffixes.size() && suffixes[end].key == suffixes[begin].key) {
        count += segments_[suffixes[end++].segment].count;
      }
      const std::span<Suffix> equal(&suffixes[begin], end - begin);
      const std::string_view text = cut(rest_of(equal[0]));
      // A key that ends in 0 may be of a shorter text too.
      if (text.size() >= kKeyBytes && suffixes[begin].key % 256 != 0 &&
          !best.admits(static_cast<Wide>(count) * max_characters_)) {
        // No seed has all bytes of the key. These occurrences count for shorter seeds.
        extend(open, shared_by(equal, text, count), best);
        continue;
      }
      std::sort(equal.begin(), equal.end(),
                [&](const Suffix& a, const Suffix& b) { return rest_of(a) < rest_of(b); });
      for (const Suffix& suffix : equal) extend(open, node_of(suffix), best);
    }
    close(open, 0, best);
    best.reduce();
  }

 private:
  static constexpr std::size_t kHashes = std::size_t{1} << 12;
  static constexpr std::size_t kKeyBytes = 8;

  /// A position in a segment; the key is in the order of its texts, as far as it goes.
  struct Suffix {
    std::uint64_t key;
    std::uint32_t segment;
    std::uint32_t offset;
  };

  /// A substring with which the last suffix begins, and its occurrences so far.
  struct Node {
    std::string_view text;
    std::size_t characters;
    std::int64_t count;
    std::uint32_t follower;
  };

  /// Calls `use(offset, hash)` for each position of a segment that has two characters; the hash is
  /// of these.
  template <class Use>
  void each_position(std::size_t segment, Use&& use) const {
    const char* const begin = segments_[segment].begin;
    const char* const end = begin + segments_[segment].size;
    const auto character = [end](const char* at) {
      const auto lead = static_cast<unsigned char>(*at);
      return lead < 0x80 ? CodePoint{lead, 1} : decode_utf8(at, end);
    };
    if (begin == end) return;
    CodePoint first = character(begin);
    for (const char* at = begin; at + first.size < end;) {
      const CodePoint second = character(at + first.size);
      const std::uint64_t both = static_cast<std::uint64_t>(first.value) << 32 | second.value;
      use(static_cast<std::size_t>(at - begin), both * 0x9E3779B97F4A7C15 >> 52);
      at += first.size;
      first = second;
    }
  }

  [[nodiscard]] std::vector<std::size_t> positions_by_hash(std::size_t threads) const {
    constexpr std::size_t kSlice = 4096;
    const std::vector<std::size_t> none(kHashes);
    const auto of_threads =
        gather(segments_.size(), kSlice, threads, none, [&](auto& counts, std::size_t segment) {
          each_position(segment, [&](std::size_t, std::size_t hash) { ++counts[hash]; });
        });
    std::vector<std::size_t> sums = none;
    for (const auto& counts : of_threads) {
      for (std::size_t hash = 0; hash < kHashes; ++hash) sums[hash] += counts[hash];
    }
    return sums;
  }

  [[nodiscard]] std::vector<Suffix> suffixes_of(std::size_t turn) const {
    std::vector<Suffix> suffixes;
    suffixes.reserve(turns_[turn]);
    for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
      each_position(segment, [&](std::size_t offset, std::size_t hash) {
        if (turn_of_[hash] != turn) return;
        const std::uint64_t key = leading_bytes(segments_[segment].text().substr(offset));
        suffixes.push_back(
            {key, static_cast<std::uint32_t>(segment), static_cast<std::uint32_t>(offset)});
      });
    }
    return suffixes;
  }

  /// The bytes of a suffix that a seed may have, and some more.
  [[nodiscard]] std::string_view rest_of(const Suffix& suffix) const {
    constexpr std::size_t kMaxBytes = 4;  // of a character
    return segments_[suffix.segment].text().substr(suffix.offset, kMaxBytes * max_characters_);
  }

  /// The first characters of a text, at most as many as seeds have.
  [[nodiscard]] std::string_view cut(std::string_view text) const {
    std::size_t characters = 0;
    std::size_t size = 0;
    for (; size < text.size(); ++size) {
      if ((text[size] & 0xC0) != 0x80 && characters++ == max_characters_) break;
    }
    return text.substr(0, size);
  }

  /// The longest substring at a suffix, and the character after it.
  [[nodiscard]] Node node_of(const Suffix& suffix) const {
    const Segment& segment = segments_[suffix.segment];
    const std::string_view text = cut(rest_of(suffix));
    const char* const stop = text.data() + text.size();
    const char* const end = segment.begin + segment.size;
    const std::uint32_t follower = stop < end ? decode_utf8(stop, end).value : segment.follower;
    return {text, characters_in(text), segment.count, follower};
  }

  /// What the texts of an equal key count for, once no seed has all bytes of the key.
  [[nodiscard]] Node shared_by(std::span<const Suffix> equal, std::string_view text,
                               std::int64_t count) const {
    std::size_t size = kKeyBytes;  // of the characters that all texts share
    while (size < text.size() && (text[size] & 0xC0) == 0x80) --size;
    if (size == kKeyBytes) return {text, 0, count, kNoFollower};
    const std::string_view shared = text.substr(0, size);
    std::uint32_t follower = character_at(text, size);
    for (const Suffix& suffix : equal) {
      follower = common_follower(follower, character_at(rest_of(suffix), size));
    }
    return {shared, characters_in(shared), count, follower};
  }

  static std::size_t characters_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  }

  static std::uint32_t character_at(std::string_view text, std::size_t at) {
    return decode_utf8(text.data() + at, text.data() + text.size()).value;
  }

  /// The bytes of the characters with which both texts begin.
  static std::size_t common_bytes(std::string_view a, std::string_view b) {
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t size = 0;
    while (size < shorter && a[size] == b[size]) ++size;
    const std::string_view longer = a.size() > b.size() ? a : b;
    while (size > 0 && size < longer.size() && (longer[size] & 0xC0) == 0x80) --size;
    return size;
  }

  /// Adds a substring that is not before the last one in the order of their bytes.
  void extend(std::vector<Node>& open, const Node& node, BestSeeds& best) const {
    close(open, common_bytes(open.back().text, node.text), best);
    if (open.back().text.size() == node.text.size()) {
      open.back().count += node.count;
      open.back().follower = common_follower(open.back().follower, node.follower);
    } else {
      open.push_back(node);
    }
  }

  /// Ends the substrings of more than `size` bytes, and adds their occurrences to shorter ones.
  void close(std::vector<Node>& open, std::size_t size, BestSeeds& best) const {
    while (open.back().text.size() > size) {
      const Node node = open.back();
      open.pop_back();
      if (node.characters >= 2 && node.count >= 2 && node.follower == kNoFollower) {
        best.add({node.text.data(), static_cast<std::uint32_t>(node.text.size()),
                  static_cast<std::uint32_t>(node.characters), node.count});
      }
      Node& shorter = open.back();
      const std::size_t begun = std::max(size, shorter.text.size());
      const std::uint32_t follower = character_at(node.text, begun);
      if (begun > shorter.text.size()) {
        const std::string_view text = node.text.substr(0, begun);
        open.push_back({text, characters_in(text), node.count, follower});
      } else {
        shorter.count += node.count;
        shorter.follower = common_follower(shorter.follower, follower);
      }
    }
  }

  std::span<const Segment> segments_;
  std::size_t max_characters_;
  std::vector<std::uint32_t> turn_of_;  // a hash
  std::vector<std::size_t> turns_;      // the positions of each
};

/// The best seeds of segments, of 2 to `max_characters` characters, in the order of their bytes.
inline std::vector<Seed> find_seeds(std::span<const Segment> segments, std::size_t max_characters,
                                    std::size_t limit, std::size_t threads) {
  if (max_characters < 2) return {};
  const SeedFinder finder(segments, max_characters, std::max<std::size_t>(threads, 1));
  auto of_threads = gather(finder.turns(), 1, threads, BestSeeds(limit),
                           [&](BestSeeds& best, std::size_t turn) { finder.add(turn, best); });
  BestSeeds best = std::move(of_threads.back());
  for (of_threads.pop_back(); !of_threads.empty(); of_threads.pop_back()) {
    for (const Seed& seed : std::move(of_threads.back()).take()) best.add(seed);
  }
  std::vector<Seed> seeds = std::move(best).take();
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.text() < b.text(); });
  return seeds;
}

}  // namespace bpe_beam
