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
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "text/hash.hpp"
#include "text/utf8.hpp"
#include "unigram/exact_math.hpp"
#include "unigram/segments.hpp"
#include "unigram/threads.hpp"

namespace bpe_beam {

/// A substring; its weight is the number of its occurrences times its characters.
struct Seed {
  std::string_view text;
  Wide weight;

  /// Whether this seed is better than another one.
  [[nodiscard]] bool before(const Seed& other) const {
    return weight != other.weight ? weight > other.weight : text < other.text;
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

/// Finds the seeds that begin alike: with two characters whose hash is the number of a turn.
class SeedFinder {
 public:
  SeedFinder(std::span<const Segment> segments, std::size_t max_characters, std::size_t limit,
             std::size_t turns)
      : segments_(segments), max_characters_(max_characters), limit_(limit), turns_(turns) {
    if (segments.size() > UINT32_MAX) throw std::length_error("too many different segments");
  }

  /// Adds the seeds of a turn to `seeds`; all but the best are dropped.
  void add(std::size_t turn, std::vector<Seed>& seeds) const {
    std::vector<Suffix> suffixes = suffixes_of(turn);
    std::sort(suffixes.begin(), suffixes.end(), [](const Suffix& a, const Suffix& b) {
      return a.key != b.key ? a.key < b.key : a.text() < b.text();
    });
    std::vector<Node> open{{{}, 0, 0, kNoFollower}};
    std::string_view last;
    for (const Suffix& suffix : suffixes) {
      close(open, common_bytes(last, suffix.text()), seeds);
      last = suffix.text();
      const std::int64_t count = segments_[suffix.segment].count;
      const std::uint32_t follower = follower_of(suffix);
      if (open.back().text.size() == last.size()) {
        open.back().count += count;
        open.back().follower = common_follower(open.back().follower, follower);
      } else {
        open.push_back({last, characters_in(last), count, follower});
      }
    }
    close(open, 0, seeds);
    keep_best(seeds, limit_);
  }

 private:
  struct Suffix {
    std::uint64_t key;
    const char* begin;
    std::uint32_t segment;
    std::uint32_t size;  // bytes of at most `max_characters_`

    [[nodiscard]] std::string_view text() const { return {begin, size}; }
  };

  /// A substring with which the last suffix begins, and its occurrences so far.
  struct Node {
    std::string_view text;
    std::size_t characters;
    std::int64_t count;
    std::uint32_t follower;
  };

  static std::size_t size_at(const char* at, const char* end) { return decode_utf8(at, end).size; }

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

  /// The suffixes of a turn that have at least two characters.
  [[nodiscard]] std::vector<Suffix> suffixes_of(std::size_t turn) const {
    std::vector<Suffix> suffixes;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const char* const end = segments_[i].begin + segments_[i].size;
      for (const char* at = segments_[i].begin; at < end;) {
        const char* const second = at + size_at(at, end);
        if (second == end) break;
        const char* stop = second + size_at(second, end);
        const auto size = static_cast<std::size_t>(stop - at);
        const std::uint64_t hash = fold_multiply(load_up_to_8(at, size), 0x9E3779B97F4A7C15);
        if (hash % turns_ == turn) {
          stop = static_cast<std::size_t>(end - at) <= max_characters_ ? end : cut(stop, end);
          const std::string_view text(at, static_cast<std::size_t>(stop - at));
          suffixes.push_back({leading_bytes(text), at, static_cast<std::uint32_t>(i),
                              static_cast<std::uint32_t>(text.size())});
        }
        at = second;
      }
    }
    return suffixes;
  }

  /// The end of a suffix whose first two characters end at `at`.
  [[nodiscard]] const char* cut(const char* at, const char* end) const {
    for (std::size_t left = max_characters_ - 2; left > 0 && at < end; --left)
      at += size_at(at, end);
    return at;
  }

  /// The character after a suffix that was cut, or after its segment.
  [[nodiscard]] std::uint32_t follower_of(const Suffix& suffix) const {
    const Segment& segment = segments_[suffix.segment];
    const char* const stop = suffix.begin + suffix.size;
    const char* const end = segment.begin + segment.size;
    return stop < end ? decode_utf8(stop, end).value : segment.follower;
  }

  /// Ends the substrings of more than `size` bytes, and adds their occurrences to shorter ones.
  void close(std::vector<Node>& open, std::size_t size, std::vector<Seed>& seeds) const {
    while (open.back().text.size() > size) {
      const Node node = open.back();
      open.pop_back();
      if (node.characters >= 2 && node.count >= 2 && node.follower == kNoFollower) {
        seeds.push_back({node.text, static_cast<Wide>(node.count) * node.characters});
        if (seeds.size() >= 2 * limit_ + 1024) keep_best(seeds, limit_);
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
  std::size_t limit_;
  std::size_t turns_;
};

/// The best seeds of segments, of 2 to `max_characters` characters, in the order of their bytes.
inline std::vector<Seed> find_seeds(std::span<const Segment> segments, std::size_t max_characters,
                                    std::size_t limit, std::size_t threads) {
  if (max_characters < 2) return {};
  constexpr std::size_t kPositions = std::size_t{1} << 24;  // of a turn: 24 bytes each
  std::size_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.size;
  const std::size_t turns = bytes / kPositions + (threads > 1 ? 4 * threads : 1);
  const SeedFinder finder(segments, max_characters, limit, turns);
  const auto of_threads =
      gather(turns, 1, threads, std::vector<Seed>(),
             [&](std::vector<Seed>& seeds, std::size_t turn) { finder.add(turn, seeds); });
  std::vector<Seed> seeds;
  for (const auto& some : of_threads) seeds.insert(seeds.end(), some.begin(), some.end());
  keep_best(seeds, limit);
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.text < b.text; });
  return seeds;
}

}  // namespace bpe_beam
