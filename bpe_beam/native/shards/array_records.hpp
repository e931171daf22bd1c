// ArrayRecord files with one record a chunk, uncompressed, each the Example of a document.
//
// The first chunk is a signature. A chunk a record follows, then the index, a chunk whose records
// are settings and, for each record, its chunk's position and its size; it is padded to the end of
// a block. The last block has the position of the index. All is as package array_record writes it
// with the options "group_size:1,uncompressed", byte by byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shards/riegeli_chunks.hpp"
#include "shards/tf_example.hpp"

namespace bpe_beam {

namespace array_record_detail {

constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMagic = 0x71930E704FDAE05E;
constexpr std::string_view kOptions =
    "group_size:1,transpose:false,pad_to_block_boundary:false,uncompressed,max_parallelism:1";

// The tags of an entry of the index: its chunk's position, bytes of records, number of records.
constexpr char kPosition = 0x08;
constexpr char kSize = 0x10;
constexpr char kRecords = 0x18;

/// A message of protocol buffers that is made field by field.
class Message {
 public:
  Message& number(std::uint8_t field, std::uint64_t value) {
    bytes_.push_back(static_cast<std::uint8_t>(field << 3));
    append_varint(value);
    return *this;
  }

  template <typename Bytes>
  Message& bytes(std::uint8_t field, const Bytes& value) {
    bytes_.push_back(static_cast<std::uint8_t>(field << 3 | 2));
    append_varint(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }

  [[nodiscard]] const std::vector<std::uint8_t>& all() const { return bytes_; }

 private:
  void append_varint(std::uint64_t value) {
    bytes_.resize(bytes_.size() + varint_size(value));
    put_varint(value, bytes_.data() + bytes_.size() - varint_size(value));
  }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace array_record_detail

/// Documents as they are in a file.
struct ArrayRecordBytes {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> begins;  // the position of each record's chunk
  std::vector<std::int64_t> sizes;   // bytes of each record
};

/// Appends documents to the bytes of a file, from a position where a chunk begins.
class ArrayRecordAppender {
 public:
  /// Args: the position, and how many bytes to expect.
  explicit ArrayRecordAppender(std::uint64_t position, std::size_t expected = 0) : at_(position) {
    found_.bytes.reserve(expected);
  }

  /// Appends a document. Its ids are below 2^31.
  void add(std::span<const std::uint32_t> ids) {
    const ExampleSizes sizes(ids);
    const std::size_t prefix = 2 + varint_size(sizes.example);
    data_.resize(prefix + static_cast<std::size_t>(sizes.example));
    data_[0] = 0;  // no compression
    std::uint8_t* at = put_varint(varint_size(sizes.example), data_.data() + 1);
    put_example(ids, sizes, put_varint(sizes.example, at));
    found_.begins.push_back(static_cast<std::int64_t>(at_));
    at_ = append_chunk(
        {.kind = ChunkKind::kSimple, .records = 1, .records_size = sizes.example}, data_, at_,
        found_.bytes);
    found_.sizes.push_back(static_cast<std::int64_t>(sizes.example));
  }

  ArrayRecordBytes take() && { return std::move(found_); }

 private:
  std::uint64_t at_;
  std::vector<std::uint8_t> data_;
  ArrayRecordBytes found_;
};

/// The bytes that every file begins with: the signature.
inline std::vector<std::uint8_t> array_record_start() {
  std::vector<std::uint8_t> out;
  append_chunk({.kind = ChunkKind::kSignature}, {}, 0, out);
  return out;
}

/// The bytes behind the records of a file, made a part at a time.
class ArrayRecordTail {
 public:
  static constexpr std::size_t kColumns = 3;
  static constexpr std::size_t kRows = 1 << 16;

  /// Args: a row a record: a number that is not used here, the position of the record's chunk, and
  /// the record's bytes; and a last row with the position behind all. They must outlive the tail.
  explicit ArrayRecordTail(std::span<const std::int64_t> rows)
      : rows_(rows), records_(rows.size() / kColumns - 1), blocks_((records_ + kRows - 1) / kRows) {
    using array_record_detail::Message;
    settings_ = Message()
                    .bytes(1, Message()
                                  .number(1, array_record_detail::kVersion)
                                  .number(2, records_)
                                  .number(3, records_)
                                  .bytes(4, array_record_detail::kOptions)
                                  .all())
                    .all();
    HighwayHash hash = riegeli_hash();
    ChunkHead head{.kind = ChunkKind::kSimple, .records = records_ + 1};
    for (std::size_t i = 0; i < parts(); ++i) {
      make_part(i);
      hash.add(part_);
      head.data_size += part_.size();
      if (i > blocks_) head.records_size += part_.size();
    }
    head.data_hash = hash.digest();
    writer_.emplace(head, index_begin(), out_);
  }

  /// The next bytes of the file; none at its end.
  std::vector<std::uint8_t> next() {
    if (next_ < parts()) {
      make_part(next_++);
      writer_->add(part_, out_);
    } else if (next_++ == parts()) {
      append_end();
    }
    return std::exchange(out_, {});
  }

 private:
  /// The parts of the index: the start, sizes of its records, settings, its other records.
  [[nodiscard]] std::size_t parts() const { return 2 + 2 * blocks_; }

  [[nodiscard]] std::uint64_t at(std::size_t row, std::size_t column) const {
    return static_cast<std::uint64_t>(rows_[row * kColumns + column]);
  }

  [[nodiscard]] std::uint64_t index_begin() const { return at(records_, 1); }

  void make_part(std::size_t i) {
    part_.clear();
    if (i == 0) {
      part_.resize(2 + varint_size(records_ + 1));
      // No compression; a byte a record for its size; the first record's.
      *put_varint(records_ + 1, part_.data() + 1) = static_cast<std::uint8_t>(settings_.size());
    } else if (i == 1 + blocks_) {
      part_ = settings_;
    } else {
      const std::size_t start = (i <= blocks_ ? i - 1 : i - 2 - blocks_) * kRows;
      const std::size_t stop = std::min(start + kRows, records_);
      for (std::size_t record = start; record < stop; ++record) {
        append_entry(at(record, 1), at(record, 2), i <= blocks_);
      }
    }
  }

  /// Appends an entry of the index to the part, or its size.
  void append_entry(std::uint64_t position, std::uint64_t size, bool size_only) {
    const std::size_t bytes = 4 + varint_size(position) + varint_size(size);
    if (size_only) {
      part_.push_back(static_cast<std::uint8_t>(bytes));
      return;
    }
    part_.resize(part_.size() + bytes);
    std::uint8_t* entry = part_.data() + part_.size() - bytes;
    *entry++ = array_record_detail::kPosition;
    entry = put_varint(position, entry);
    *entry++ = array_record_detail::kSize;
    entry = put_varint(size, entry);
    *entry++ = array_record_detail::kRecords;
    *entry = 1;
  }

  void append_end() {
    using array_record_detail::Message;
    constexpr std::size_t kTimes = 3;
    const std::uint64_t last = append_padding(writer_->end(), out_);
    const std::vector<std::uint8_t> record =
        Message().number(1, index_begin()).number(2, array_record_detail::kMagic).all();
    std::vector<std::uint8_t> data{0, kTimes};
    data.insert(data.end(), kTimes, static_cast<std::uint8_t>(record.size()));
    for (std::size_t i = 0; i < kTimes; ++i) data.insert(data.end(), record.begin(), record.end());
    const std::uint64_t end = append_chunk({.kind = ChunkKind::kSimple,
                                            .records = kTimes,
                                            .records_size = kTimes * record.size()},
                                           data, last, out_);
    append_padding(end, out_);
  }

  std::span<const std::int64_t> rows_;
  std::size_t records_;
  std::size_t blocks_;
  std::vector<std::uint8_t> settings_;
  std::vector<std::uint8_t> part_;
  std::vector<std::uint8_t> out_;
  std::optional<ChunkWriter> writer_;
  std::size_t next_ = 0;
};

/// The position of the index, by the last block of a file; nothing if it is no such block.
inline std::optional<std::uint64_t> array_record_index(std::span<const std::uint8_t> last_block) {
  ChunkReader reader(last_block, 0);
  const Chunk chunk = reader.next();
  // No compression, three sizes, and the position's tag.
  constexpr std::size_t kStart = 6;
  if (chunk.flaw != ChunkFlaw::kNone || chunk.data.size() < kStart) return std::nullopt;
  std::string_view data(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
  data.remove_prefix(kStart);
  const auto begin = take_varint(data, std::uint64_t{1} << 62);
  return begin && is_chunk_begin(*begin) ? begin : std::nullopt;
}

/// Reads the index of a file from its bytes, which come in parts.
///
/// What it finds is the records' positions and sizes only if the file's tail is the one of these.
class ArrayRecordIndexReader {
 public:
  explicit ArrayRecordIndexReader(std::uint64_t begin) : at_(begin) {}

  /// Takes the next bytes of the file, and appends to `positions` and `sizes`. Returns false if
  /// there is no entry where one is expected.
  bool add(std::span<const std::uint8_t> bytes, std::vector<std::int64_t>& positions,
           std::vector<std::int64_t>& sizes) {
    while (!bytes.empty()) {
      const std::uint64_t in_block = at_ % kBlockSize;
      const std::uint64_t limit = in_block < kBlockHeadSize ? kBlockHeadSize : kBlockSize;
      const auto part = bytes.first(static_cast<std::size_t>(
          std::min(limit - in_block, static_cast<std::uint64_t>(bytes.size()))));
      if (in_block >= kBlockHeadSize) {
        content_.append(reinterpret_cast<const char*>(part.data()), part.size());
      }
      at_ += part.size();
      bytes = bytes.subspan(part.size());
    }
    std::string_view content = content_;
    const bool good = skip_start(content) && take_entries(content, positions, sizes);
    content_.erase(0, content_.size() - content.size());
    return good;
  }

  /// Whether all entries were found.
  [[nodiscard]] bool done() const { return started_ && left_ == 0; }

 private:
  /// Skips what is in front of the entries, as far as it is there.
  bool skip_start(std::string_view& content) {
    constexpr std::size_t kSettings = kChunkHeadSize + 1 + 9 + 1;  // up to the size of the settings
    if (!started_) {
      if (content.size() < kSettings) return true;
      std::string_view data = content.substr(kChunkHeadSize + 1);
      const auto records = take_varint(data, std::uint64_t{1} << 56);
      if (!records || *records == 0) return false;
      left_ = *records - 1;
      skipped_ = left_ + 1 + static_cast<std::uint8_t>(data.front());
      started_ = true;
      content = data;
    }
    const auto skipped = std::min(skipped_, static_cast<std::uint64_t>(content.size()));
    skipped_ -= skipped;
    content.remove_prefix(static_cast<std::size_t>(skipped));
    return true;
  }

  bool take_entries(std::string_view& content, std::vector<std::int64_t>& positions,
                    std::vector<std::int64_t>& sizes) {
    using namespace array_record_detail;
    constexpr std::size_t kLongest = 3 + 9 + 9 + 1;
    if (!started_ || skipped_ > 0) return true;
    const auto take_number = [&content](char tag) -> std::optional<std::uint64_t> {
      if (content.empty() || content.front() != tag) return std::nullopt;
      content.remove_prefix(1);
      return take_varint(content, std::uint64_t{1} << 62);
    };
    // Entries that may be cut wait for more bytes: padding or another block follows the last.
    while (left_ > 0 && content.size() >= kLongest) {
      const auto position = take_number(kPosition);
      const auto size = take_number(kSize);
      const auto records = take_number(kRecords);
      if (!position || !size || records != 1) return false;
      positions.push_back(static_cast<std::int64_t>(*position));
      sizes.push_back(static_cast<std::int64_t>(*size));
      --left_;
    }
    return true;
  }

  std::uint64_t at_;
  std::string content_;         // what was not read yet
  std::uint64_t skipped_ = 0;   // bytes to skip
  std::uint64_t left_ = 0;      // entries to come
  bool started_ = false;
};

/// The documents that some bytes of a file begin with.
struct ArrayRecords {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // ids of each
  std::vector<std::int64_t> begins;   // the position of each record's chunk
  std::vector<std::int64_t> sizes;    // bytes of each record
  std::uint64_t end = 0;              // the position behind them
  ChunkFlaw flaw = ChunkFlaw::kNone;  // of the chunk behind them
};

/// Reads documents, up to the first that has a flaw. A chunk begins at the position of the bytes.
inline ArrayRecords read_array_records(std::span<const std::uint8_t> bytes,
                                       std::uint64_t position) {
  ArrayRecords found;
  found.end = position;
  ChunkReader reader(bytes, position);
  while (!reader.at_end()) {
    const Chunk chunk = reader.next();
    found.flaw = chunk.flaw;
    if (chunk.flaw != ChunkFlaw::kNone) return found;
    std::string_view data(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
    const std::size_t before = found.ids.size();
    const auto is_document = [&] {
      const ChunkHead& head = chunk.head;
      if (head.kind != ChunkKind::kSimple || head.records != 1) return false;
      if (data.size() < 2 || data[0] != 0) return false;
      const auto of_size = static_cast<std::uint8_t>(data[1]);
      data.remove_prefix(2);
      const auto size = take_varint(data, head.records_size);
      return size && *size == head.records_size && varint_size(*size) == of_size &&
             *size == data.size() && read_example(data, found.ids);
    };
    if (!is_document()) {
      found.ids.resize(before);
      found.flaw = ChunkFlaw::kLayout;
      return found;
    }
    found.lengths.push_back(static_cast<std::int64_t>(found.ids.size() - before));
    found.begins.push_back(static_cast<std::int64_t>(found.end));
    found.end = chunk.end;
    found.sizes.push_back(static_cast<std::int64_t>(chunk.head.records_size));
  }
  return found;
}

}  // namespace bpe_beam
