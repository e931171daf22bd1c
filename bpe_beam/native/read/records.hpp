// Splits a block of a file into records at a separator.
//
// The readers of bpe_beam/corpus have a window of a file in memory and call these functions once
// per window, so that no Python object is made for a record. All positions are relative to the
// window.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8_check.hpp"

namespace bpe_beam {

inline constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);

/// The first position of `what` (not empty) in `data` at or after `from`, or kNotFound.
inline std::size_t find_bytes(std::span<const char> data, std::span<const char> what,
                              std::size_t from) {
  if (from >= data.size() || what.size() > data.size() - from) return kNotFound;
  const char* const begin = data.data() + from;
  const std::size_t length = data.size() - from;
  const void* const hit = what.size() == 1
                              ? std::memchr(begin, what[0], length)
                              : memmem(begin, length, what.data(), what.size());  // linear at worst
  return hit == nullptr ? kNotFound
                        : static_cast<std::size_t>(static_cast<const char*>(hit) - data.data());
}

/// The position at which to continue a search for `separator` if `data` has none.
inline std::size_t search_again_from(std::span<const char> data, std::span<const char> separator,
                                     std::size_t search) {
  const std::size_t tail = separator.empty() ? 0 : separator.size() - 1;
  return std::max(search, data.size() > tail ? data.size() - tail : 0);
}

struct SeparatorEnd {
  std::size_t end;     // kNotFound if there is none yet
  std::size_t search;  // where to go on
};

/// Skips separators from left to right, from `search` on, up to the first that ends at or after
/// `at_least`.
inline SeparatorEnd first_separator_end(std::span<const char> data, std::span<const char> separator,
                                        std::size_t search, std::size_t at_least) {
  for (;;) {
    const std::size_t hit = find_bytes(data, separator, search);
    if (hit == kNotFound) return {kNotFound, search_again_from(data, separator, search)};
    search = hit + separator.size();
    if (search >= at_least) return {search, search};
  }
}

/// The last position q of `data` that no occurrence of `separator` (two bytes or more) crosses:
/// none starts at the |separator| - 1 positions before q. So each separator before q, in a scan
/// from the file's start, ends at or before q, and a scan that begins at q agrees with that scan
/// from q on. kNotFound if there is none; positions nearer than |separator| - 1 to either end of
/// `data` cannot be checked.
inline std::size_t last_gap(std::span<const char> data, std::span<const char> separator) {
  const std::size_t length = separator.size();
  if (length < 2 || data.size() < length) return kNotFound;
  std::size_t free = 0;  // positions in a row, going down, at which no occurrence starts
  for (std::size_t at = data.size() - length + 1; at-- > 0;) {
    free = std::memcmp(data.data() + at, separator.data(), length) == 0 ? 0 : free + 1;
    if (free == length - 1) return at + length - 1;
  }
  return kNotFound;
}

/// The reasons why a record cannot be used. The numbers are indices of `kFlawNames`.
enum class Flaw : std::int64_t {
  kNone,
  kUtf8,
  kTooLong,
  kJson,
  kNotObject,
  kMissing,
  kNotString,
  kSurrogate,
  kDepth,
  kColumns,
  kNul,
  kUnclosedQuote,
  kBehindQuote,
};

inline constexpr std::array<std::string_view, 13> kFlawNames = {
    "",
    "invalid UTF-8",
    "record too long",
    "broken JSON",
    "not a JSON object",
    "field missing",
    "field not a string",
    "lone surrogate",
    "nested too deeply",
    "wrong number of columns",
    "NUL byte",
    "unclosed quote",
    "text after a closing quote",
};

/// A column of strings in Arrow's layout: bytes without gaps, and the end of each string.
class Strings {
 public:
  explicit Strings(std::size_t bytes) { grow(bytes); }

  /// Returns room for `more` bytes after the last byte; call `add` with the number of used bytes.
  char* room(std::size_t more) {
    if (more > capacity_ - size_) grow(std::max(size_ + more, 2 * capacity_));
    return data_.get() + size_;
  }
  void add(std::size_t used) { size_ += used; }
  void append(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
    add(bytes.size());
  }
  void append_decimal(std::uint64_t number) {
    char* const at = room(20);
    add(static_cast<std::size_t>(std::to_chars(at, at + 20, number).ptr - at));
  }
  /// Ends the string that was being appended.
  void finish() { ends_.push_back(static_cast<std::int64_t>(size_)); }

  /// Returns whether nothing was appended since the last `finish`.
  bool is_empty() const { return size_ == static_cast<std::size_t>(ends_.back()); }

  /// Removes the bytes that were appended since the last `finish`.
  void abandon() { size_ = static_cast<std::size_t>(ends_.back()); }

  std::string_view bytes() const { return {data_.get(), size_}; }
  std::span<const std::int64_t> offsets() const { return ends_; }

  std::unique_ptr<char[]> release_bytes() { return std::move(data_); }
  std::vector<std::int64_t> release_offsets() { return std::move(ends_); }

 private:
  void grow(std::size_t capacity) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (data_ != nullptr) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::vector<std::int64_t> ends_{0};
};

/// A rejected record: data[begin, end), the flaw, and the byte of the record at which it is;
/// `index` counts all records of this call, good, bad and blank.
struct BadRecord {
  std::int64_t begin, end, flaw, position, index;
};

/// The part of a window to read records from.
struct Cut {
  std::size_t start;        // where the first record starts
  std::size_t search;       // >= start: no separator begins before this (as far as read before)
  std::size_t stop;         // records that start here or later are not taken
  bool final;               // the window ends where the file ends
  std::size_t max_records;  // at least 1: return after so many
  std::size_t max_bytes;    // longer records are bad ones
};

/// Where the next call continues.
struct Reached {
  std::size_t start, search, records;
};

/// Calls `take(begin, end)` for each whole record, left to right. With an empty separator all data
/// is one record, even if it is empty. There is no empty record after the last separator.
template <class Take>
Reached for_each_record(std::span<const char> data, std::span<const char> separator, const Cut& cut,
                        Take take) {
  Reached at{cut.start, std::max(cut.start, cut.search), 0};
  while (at.start < cut.stop && at.records < cut.max_records) {
    const std::size_t end = separator.empty() ? kNotFound : find_bytes(data, separator, at.search);
    if (end == kNotFound) {
      at.search = search_again_from(data, separator, at.search);
      if (cut.final && (at.start < data.size() || separator.empty())) {
        take(at.start, data.size());
        ++at.records;
        at.start = at.search = data.size();
      }
      break;
    }
    take(at.start, end);
    ++at.records;
    at.start = at.search = end + separator.size();
  }
  return at;
}

/// The records of a block, as columns.
struct Records {
  Strings text{0};
  Strings ids{256};
  Strings sources{0};                // if they were requested
  std::vector<std::uint8_t> has_id;  // one byte per record
  std::vector<std::int64_t> starts;
  std::vector<BadRecord> bad;
  Reached reached{};
};

/// Splits text into records. With the separator "\n" a "\r" before it belongs to it. The id is
/// `id_prefix` and the record's offset in the file, `base` being the offset of data[0]; without a
/// prefix there are no ids.
inline Records text_records(std::span<const char> data, std::span<const char> separator,
                            const Cut& cut, std::optional<std::string_view> id_prefix,
                            std::uint64_t base) {
  Records out;
  out.text.room(data.size() - std::min(cut.start, data.size()));
  const bool by_line = separator.size() == 1 && separator[0] == '\n';
  Utf8Check utf8(data, cut.start);
  std::size_t index = 0;
  out.reached = for_each_record(data, separator, cut, [&](std::size_t begin, std::size_t end) {
    const std::size_t record = index++;
    // data[end] is the newline, except in a last line without one
    if (by_line && end < data.size() && end > begin && data[end - 1] == '\r') --end;
    const auto bytes = data.subspan(begin, end - begin);
    auto flaw = Flaw::kNone;
    std::size_t position = 0;
    if (bytes.size() > cut.max_bytes) {
      flaw = Flaw::kTooLong;
    } else if (position = utf8.prefix(begin, end); position < bytes.size()) {
      flaw = Flaw::kUtf8;
    }
    if (flaw != Flaw::kNone) {
      out.bad.push_back({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end),
                         static_cast<std::int64_t>(flaw), static_cast<std::int64_t>(position),
                         static_cast<std::int64_t>(record)});
      return;
    }
    out.text.append({bytes.data(), bytes.size()});
    out.text.finish();
    if (id_prefix) {
      out.ids.append(*id_prefix);
      out.ids.append_decimal(base + begin);
      out.ids.finish();
    }
    out.starts.push_back(static_cast<std::int64_t>(begin));
  });
  return out;
}

}  // namespace bpe_beam
