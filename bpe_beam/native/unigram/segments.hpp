// Words cut into segments, which no piece leaves: at characters that are not kept, and between
// scripts. docs/algorithm.md has the definition.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Joins equal segments.
class SegmentTable {
 public:
  void add(const Segment& segment) {
    if (2 * segments_.size() >= slots_.size()) grow();
    const std::uint64_t hash = hash_bytes(segment.text(), seed_);
    Slot& slot =
        slot_of(hash, [&](std::size_t i) { return segments_[i].text() == segment.text(); });
    if (slot.next == 0) {
      segments_.push_back(segment);
      slot = {hash, segments_.size()};
      return;
    }
    Segment& known = segments_[slot.next - 1];
    known.count += segment.count;
    known.follower = common_follower(known.follower, segment.follower);
  }

  /// Returns the segments, sorted by their bytes.
  [[nodiscard]] std::vector<Segment> sorted() const {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    order.reserve(segments_.size());
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      order.emplace_back(leading_bytes(segments_[i].text()), i);
    }
    std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return segments_[a.second].text() < segments_[b.second].text();
    });
    std::vector<Segment> result;
    result.reserve(order.size());
    for (const auto& [key, i] : order) result.push_back(segments_[i]);
    return result;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::size_t next = 0;  // one more than the number of the segment; 0: the slot is free
  };

  /// The slot of a hash for whose segment `is_equal(number)` holds, or a free one.
  template <class Equal>
  Slot& slot_of(std::uint64_t hash, Equal&& is_equal) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.next == 0 || (slot.hash == hash && is_equal(slot.next - 1))) return slot;
    }
  }

  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(std::max<std::size_t>(64, 2 * before.size()), {});
    for (const Slot& slot : before) {
      if (slot.next != 0) slot_of(slot.hash, [](std::size_t) { return false; }) = slot;
    }
  }

  std::vector<Segment> segments_;
  std::vector<Slot> slots_;
  std::uint64_t seed_ = table_seed();
};

}  // namespace bpe_beam
