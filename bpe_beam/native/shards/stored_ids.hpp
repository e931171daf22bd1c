// The ids of documents in a file: the range of a document, and its ids as another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>

namespace bpe_beam {

/// The type by which a file stores an id.
enum class IdKind { kUint8, kUint16, kUint32, kInt32 };

/// Ids of documents, one after the other, and the bounds of documents. Views of bytes at any
/// alignment, which may be a mapped file: no number in them is trusted.
class StoredIds {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  /// `bounds` are int64, in the order of the stream: an entry for the start of each document and
  /// one for the end of the last, in multiples of `unit` per token. With `without_first` the first
  /// entry, 0, is not stored; with `without_last` the last, the number of ids.
  StoredIds(std::span<const std::uint8_t> ids, IdKind kind, std::span<const std::uint8_t> bounds,
            std::size_t unit, bool without_first, bool without_last)
      : ids_(ids),
        kind_(kind),
        bounds_(bounds),
        unit_(static_cast<std::int64_t>(unit)),
        entries_(bounds.size() / sizeof(std::int64_t)),
        skip_(without_first ? 1 : 0),
        tokens_(ids.size() / width()),
        without_last_(without_last) {
    if (unit == 0) throw std::invalid_argument("unit must be at least 1, got 0");
  }

  /// The ids of a document; nothing if it does not exist, or its bounds are not a range of ids.
  std::optional<Range> document(std::size_t index) const {
    if (index >= entries_ + skip_) return std::nullopt;
    const auto tokens = static_cast<std::int64_t>(tokens_);
    const std::int64_t begin = index < skip_ ? 0 : bound(index - skip_);
    const std::size_t next = index + 1 - skip_;
    if (next >= entries_ && !without_last_) return std::nullopt;
    const std::int64_t end = next < entries_ ? bound(next) : tokens;
    if (begin < 0 || begin > end || end > tokens) return std::nullopt;
    return Range{static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)};
  }

  /// Write the ids of a range that `document` returned.
  template <typename To>
  void copy(Range range, To* out) const {
    const std::uint8_t* const from = ids_.data() + range.begin * width();
    switch (kind_) {
      case IdKind::kUint8: return widen<std::uint8_t>(from, range.count, out);
      case IdKind::kUint16: return widen<std::uint16_t>(from, range.count, out);
      case IdKind::kUint32: return widen<std::uint32_t>(from, range.count, out);
      case IdKind::kInt32: return widen<std::int32_t>(from, range.count, out);
    }
  }

 private:
  std::size_t width() const {
    return kind_ == IdKind::kUint8 ? 1 : kind_ == IdKind::kUint16 ? 2 : 4;
  }

  std::int64_t bound(std::size_t entry) const {
    std::int64_t value = 0;
    std::memcpy(&value, bounds_.data() + entry * sizeof(value), sizeof(value));
    return unit_ == 1 ? value : value / unit_;
  }

  template <typename From, typename To>
  static void widen(const std::uint8_t* from, std::size_t count, To* out) {
    for (std::size_t i = 0; i < count; ++i) {
      From id = 0;
      std::memcpy(&id, from + i * sizeof(From), sizeof(From));
      out[i] = static_cast<To>(id);
    }
  }

  std::span<const std::uint8_t> ids_;
  IdKind kind_;
  std::span<const std::uint8_t> bounds_;
  std::int64_t unit_;
  std::size_t entries_;
  std::size_t skip_;
  std::size_t tokens_;
  bool without_last_;
};

}  // namespace bpe_beam
