// Words cut into segments, which no piece leaves: at characters that are not kept, and between
// scripts. docs/algorithm.md has the definition.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "text/hash.hpp"
#include "text/unicode_scripts.hpp"
#include "text/utf8.hpp"
#include "unigram/exact_math.hpp"

namespace bpe_beam {

inline constexpr std::uint32_t kNoFollower = 0xFFFFFFFE;
inline constexpr std::uint32_t kCodePoints = 0x110000;
inline constexpr std::uint32_t kMetaspace = 0x2581;

/// The character that follows some bytes wherever they occur; kNoFollower: the end of a word, or
/// several.
inline std::uint32_t common_follower(std::uint32_t a, std::uint32_t b) {
  return a == b ? a : kNoFollower;
}

/// A stretch of a word, and how often it occurs. The word's bytes must live on.
struct Segment {
  const char* begin;
  std::uint32_t size;
  std::uint32_t follower;
  std::int64_t count;

  [[nodiscard]] std::string_view text() const { return {begin, size}; }
};

/// The first 8 bytes of a text as a number: numbers are in the order of texts, as far as they go.
inline std::uint64_t leading_bytes(std::string_view text) {
  return __builtin_bswap64(load_up_to_8(text.data(), std::min<std::size_t>(text.size(), 8)));
}

/// Counts the characters of words; malformed bytes are none. Throws std::overflow_error if the sum
/// of all counts is 2^63 or more.
class CharacterCounts {
 public:
  void add(std::string_view word, std::int64_t count) {
    const char* const end = word.data() + word.size();
    for (const char* at = word.data(); at < end;) {
      const CodePoint point = decode_utf8(at, end);
      at += point.size;
      if (__builtin_add_overflow(total_, count, &total_)) {
        throw std::overflow_error("all characters of all words occur 2^63 times or more");
      }
      if (point.value != kMalformed) counts_[point.value] += count;
    }
  }

  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] std::span<const std::int64_t> by_code_point() const { return counts_; }

 private:
  std::vector<std::int64_t> counts_ = std::vector<std::int64_t>(kCodePoints);
  std::int64_t total_ = 0;
};

/// The rules by which words are cut.
class SegmentCutter {
 public:
  static constexpr std::size_t kMaxCharacters = 4096;

  SegmentCutter(std::span<const std::uint32_t> kept, bool by_script,
                std::size_t max_characters = kMaxCharacters)
      : kept_(kCodePoints), by_script_(by_script), max_characters_(max_characters) {
    for (const std::uint32_t point : kept) kept_.at(point) = true;
  }

  /// Calls `use(text, follower)` for each segment of a word.
  template <class Use>
  void cut(std::string_view word, Use&& use) const {
    const char* const end = word.data() + word.size();
    const char* begin = word.data();
    std::size_t characters = 0;
    std::uint8_t before = 0;
    const auto close = [&](const char* at, std::uint32_t follower) {
      if (begin < at) use(std::string_view(begin, static_cast<std::size_t>(at - begin)), follower);
      begin = at;
      characters = 0;
    };
    for (const char* at = begin; at < end;) {
      const CodePoint point = decode_utf8(at, end);
      if (point.value == kMalformed || !kept_[point.value]) {
        close(at, point.value);
        at += point.size;
        begin = at;
        before = 0;
        continue;
      }
      const std::uint8_t script = script_after(before, point.value);
      const bool other = before != 0 && script != 0 && script != before;
      if (other || characters == max_characters_) close(at, point.value);
      if (script != 0) before = script;
      ++characters;
      at += point.size;
    }
    close(end, kNoFollower);
  }

 private:
  /// The script of a character after another script; 0: none, which never causes a cut.
  [[nodiscard]] std::uint8_t script_after(std::uint8_t before, std::uint32_t point) const {
    if (!by_script_ || point == kMetaspace) return 0;
    const std::uint8_t script = script_of(point);
    return script == inherited_ ? before : script;
  }

  std::vector<bool> kept_;
  bool by_script_;
  std::size_t max_characters_;
  std::uint8_t inherited_ = script_of(0x300);
};

/// Sorts segments by their bytes, nearly in place. The time is linear in the bytes.
inline void sort_by_bytes(std::span<Segment> segments) {
  constexpr std::size_t kFew = std::size_t{1} << 14;
  struct Group {  // whose first `equal` bytes are the same
    std::span<Segment> segments;
    std::size_t equal;
  };
  std::vector<std::pair<std::uint64_t, Segment>> few;
  std::vector<Group> waiting{{segments, 0}};
  while (!waiting.empty()) {
    const std::span<Segment> group = waiting.back().segments;
    const std::size_t equal = waiting.back().equal;
    waiting.pop_back();
    if (group.size() <= kFew) {
      few.clear();
      for (const Segment& one : group)
        few.emplace_back(leading_bytes(one.text().substr(equal)), one);
      std::sort(few.begin(), few.end(), [](const auto& a, const auto& b) {
        return a.first != b.first ? a.first < b.first : a.second.text() < b.second.text();
      });
      for (std::size_t i = 0; i < few.size(); ++i) group[i] = few[i].second;
      continue;
    }
    // In place by the next byte; 0 is for segments that end.
    const auto kind_of = [equal](const Segment& one) {
      return one.size == equal ? 0 : 1 + std::size_t{static_cast<unsigned char>(one.begin[equal])};
    };
    std::array<std::size_t, 258> begins{};
    for (const Segment& one : group) ++begins[kind_of(one) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    auto next = begins;
    for (std::size_t kind = 0; kind < 257; ++kind) {
      while (next[kind] < begins[kind + 1]) {
        const std::size_t other = kind_of(group[next[kind]]);
        if (other != kind) std::swap(group[next[kind]], group[next[other]]);
        ++next[other];
      }
      const std::size_t size = begins[kind + 1] - begins[kind];
      if (kind > 0 && size > 1) waiting.push_back({group.subspan(begins[kind], size), equal + 1});
    }
  }
}

/// Joins equal segments.
class SegmentTable {
 public:
  /// Has room for `expected` segments; takes more if more of them differ.
  explicit SegmentTable(std::size_t expected = 0) : room_(std::max<std::size_t>(expected, 1024)) {
    segments_.reserve(room_);
  }

  void add(const Segment& segment) {
    if (segments_.size() == room_) {
      join();
      room_ = std::max(room_, segments_.size() + segments_.size() / 2);
      segments_.reserve(room_);
    }
    segments_.push_back(segment);
  }

  /// Returns the segments, sorted by their bytes.
  [[nodiscard]] std::vector<Segment> sorted() && {
    join();
    return std::move(segments_);
  }

 private:
  void join() {
    sort_by_bytes(segments_);
    std::size_t size = 0;
    for (const Segment& segment : segments_) {
      if (size > 0 && segments_[size - 1].text() == segment.text()) {
        Segment& known = segments_[size - 1];
        known.count += segment.count;
        known.follower = common_follower(known.follower, segment.follower);
      } else {
        segments_[size++] = segment;
      }
    }
    segments_.resize(size);
  }

  std::vector<Segment> segments_;
  std::size_t room_;
};

}  // namespace bpe_beam
