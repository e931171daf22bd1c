// The chunks of Riegeli files, which ArrayRecord files are: heads, hashes, and blocks.
//
// A file is a row of chunks. The content of a chunk is a head of 40 bytes and data. Wherever the
// position in the file is a multiple of 64 KiB, 24 bytes that are no content are in between, the
// head of a block: a hash, how far back the chunk there begins, and how far ahead it ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "shards/highway_hash.hpp"
#include "shards/tf_example.hpp"

namespace bpe_beam {

constexpr std::uint64_t kBlockSize = 1 << 16;
constexpr std::uint64_t kBlockHeadSize = 24;
constexpr std::uint64_t kChunkHeadSize = 40;

/// A new hash with the key of Riegeli, "Riegeli/records\n" twice.
inline HighwayHash riegeli_hash() {
  return HighwayHash(
      {0x2F696C6567656952, 0x0A7364726F636572, 0x2F696C6567656952, 0x0A7364726F636572});
}

inline std::uint64_t riegeli_hash_of(std::span<const std::uint8_t> bytes) {
  HighwayHash hash = riegeli_hash();
  hash.add(bytes);
  return hash.digest();
}

/// The position behind the first `size` > 0 bytes of the content of a chunk.
constexpr std::uint64_t behind_content(std::uint64_t begin, std::uint64_t size) {
  constexpr std::uint64_t kRoom = kBlockSize - kBlockHeadSize;
  const std::uint64_t in_block = begin % kBlockSize;
  const std::uint64_t before = in_block == 0 ? 0 : in_block - kBlockHeadSize;
  const std::uint64_t content = begin / kBlockSize * kRoom + before + size;
  const std::uint64_t rest = content % kRoom;
  return content / kRoom * kBlockSize + (rest == 0 ? 0 : kBlockHeadSize + rest);
}

/// Whether a chunk can begin there: not in the head of a block, nor right behind it.
constexpr bool is_chunk_begin(std::uint64_t position) {
  return position % kBlockSize == 0 || position % kBlockSize > kBlockHeadSize;
}

/// The head of a block in the chunk from `begin` to `end`.
inline std::array<std::uint8_t, kBlockHeadSize> block_head(std::uint64_t block, std::uint64_t begin,
                                                           std::uint64_t end) {
  std::array<std::uint8_t, kBlockHeadSize> head{};
  put_number(end - block, put_number(block - begin, head.data() + 8));
  put_number(riegeli_hash_of(std::span(head).subspan(8)), head.data());
  return head;
}

enum class ChunkKind : std::uint8_t {
  kSignature = 's',
  kPadding = 'p',
  kSimple = 'r',
};

/// What the head of a chunk says.
struct ChunkHead {
  ChunkKind kind = ChunkKind::kPadding;
  std::uint64_t records = 0;
  std::uint64_t data_size = 0;
  std::uint64_t data_hash = 0;
  std::uint64_t records_size = 0;  // of all records together

  [[nodiscard]] std::array<std::uint8_t, kChunkHeadSize> bytes() const {
    std::array<std::uint8_t, kChunkHeadSize> head{};
    std::uint8_t* at = put_number(data_size, head.data() + 8);
    at = put_number(data_hash, at);
    at = put_number(static_cast<std::uint64_t>(kind) | records << 8, at);
    put_number(records_size, at);
    put_number(riegeli_hash_of(std::span(head).subspan(8)), head.data());
    return head;
  }

  /// The head in 40 bytes, and whether their hash is true.
  static std::pair<ChunkHead, bool> read(std::span<const std::uint8_t> bytes) {
    const std::string_view data(reinterpret_cast<const char*>(bytes.data()), kChunkHeadSize);
    const auto word = [data](std::size_t i) { return number_at<std::uint64_t>(data, 8 * i); };
    const ChunkHead head{.kind = static_cast<ChunkKind>(word(3) & 0xFF),
                         .records = word(3) >> 8,
                         .data_size = word(1),
                         .data_hash = word(2),
                         .records_size = word(4)};
    return {head, word(0) == riegeli_hash_of(bytes.subspan(8, kChunkHeadSize - 8))};
  }
};

/// Appends a chunk to the bytes of a file, its data in parts.
class ChunkWriter {
 public:
  ChunkWriter(const ChunkHead& head, std::uint64_t begin, std::vector<std::uint8_t>& out)
      : begin_(begin), at_(begin), end_(behind_content(begin, kChunkHeadSize + head.data_size)) {
    add(head.bytes(), out);
  }

  /// Appends the next part of the data.
  void add(std::span<const std::uint8_t> content, std::vector<std::uint8_t>& out) {
    while (!content.empty()) {
      if (at_ % kBlockSize == 0) {
        const auto head = block_head(at_, begin_, end_);
        out.insert(out.end(), head.begin(), head.end());
        at_ += kBlockHeadSize;
      }
      const std::uint64_t room = kBlockSize - at_ % kBlockSize;
      const auto part = content.first(static_cast<std::size_t>(
          std::min(room, static_cast<std::uint64_t>(content.size()))));
      out.insert(out.end(), part.begin(), part.end());
      at_ += part.size();
      content = content.subspan(part.size());
    }
  }

  /// The position behind the chunk.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  std::uint64_t begin_;
  std::uint64_t at_;
  std::uint64_t end_;
};

/// Appends a chunk with all of its data, and returns the position behind it.
inline std::uint64_t append_chunk(ChunkHead head, std::span<const std::uint8_t> data,
                                  std::uint64_t begin, std::vector<std::uint8_t>& out) {
  head.data_size = data.size();
  head.data_hash = riegeli_hash_of(data);
  ChunkWriter writer(head, begin, out);
  writer.add(data, out);
  return writer.end();
}

/// Appends the chunk that fills a block, if it is not full, and returns the position behind it.
inline std::uint64_t append_padding(std::uint64_t begin, std::vector<std::uint8_t>& out) {
  std::uint64_t size = (kBlockSize - begin % kBlockSize) % kBlockSize;
  if (size == 0) return begin;
  // The head alone needs more: the next block is filled, too.
  if (size < kChunkHeadSize) size += kBlockSize - kBlockHeadSize;
  const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(size - kChunkHeadSize));
  return append_chunk({.kind = ChunkKind::kPadding}, zeros, begin, out);
}

/// What is wrong with a chunk.
enum class ChunkFlaw : std::int64_t {
  kNone,
  kCut,
  kHeadHash,
  kBlockHead,
  kDataHash,
  kLayout,
};

/// One chunk of some bytes of a file. The data are in these bytes, or in the reader.
struct Chunk {
  ChunkHead head;
  std::span<const std::uint8_t> data;
  std::uint64_t end = 0;  // the position behind it
  ChunkFlaw flaw = ChunkFlaw::kNone;
};

/// Reads chunks of some bytes of a file, one after the other.
class ChunkReader {
 public:
  /// Args: the bytes, and the position of the first, where a chunk begins.
  ChunkReader(std::span<const std::uint8_t> bytes, std::uint64_t position)
      : bytes_(bytes), first_(position), begin_(position) {}

  [[nodiscard]] bool at_end() const { return begin_ - first_ == bytes_.size(); }

  /// The next chunk; its data are valid until the next call. After a flaw, it is found again.
  Chunk next() {
    Chunk chunk;
    const auto stop = [&chunk](ChunkFlaw flaw) {
      chunk.flaw = flaw;
      return chunk;
    };
    const std::uint64_t left = bytes_.size() - (begin_ - first_);
    if (!is_chunk_begin(begin_)) return stop(ChunkFlaw::kLayout);
    if (left < behind_content(begin_, kChunkHeadSize) - begin_) return stop(ChunkFlaw::kCut);
    bool is_true = false;
    std::tie(chunk.head, is_true) = ChunkHead::read(content(0, kChunkHeadSize));
    if (!is_true) return stop(ChunkFlaw::kHeadHash);
    // The data are at most as many as the bytes, so that no sum overflows.
    if (chunk.head.data_size > left) return stop(ChunkFlaw::kCut);
    chunk.end = behind_content(begin_, kChunkHeadSize + chunk.head.data_size);
    if (left < chunk.end - begin_) return stop(ChunkFlaw::kCut);
    if (!has_true_block_heads(chunk.end)) return stop(ChunkFlaw::kBlockHead);
    chunk.data = content(kChunkHeadSize, static_cast<std::size_t>(chunk.head.data_size));
    if (riegeli_hash_of(chunk.data) != chunk.head.data_hash) return stop(ChunkFlaw::kDataHash);
    begin_ = chunk.end;
    return chunk;
  }

 private:
  /// Bytes of the content of the chunk.
  std::span<const std::uint8_t> content(std::uint64_t start, std::size_t size) {
    if (size == 0) return {};
    std::uint64_t at = start == 0 ? begin_ : behind_content(begin_, start);
    if (at % kBlockSize == 0) at += kBlockHeadSize;
    if (kBlockSize - at % kBlockSize >= size) return from(at).first(size);
    copy_.clear();
    while (copy_.size() < size) {
      if (at % kBlockSize == 0) at += kBlockHeadSize;
      const std::uint64_t room = kBlockSize - at % kBlockSize;
      const auto part = from(at).first(static_cast<std::size_t>(
          std::min(room, static_cast<std::uint64_t>(size - copy_.size()))));
      copy_.insert(copy_.end(), part.begin(), part.end());
      at += part.size();
    }
    return copy_;
  }

  [[nodiscard]] bool has_true_block_heads(std::uint64_t end) const {
    std::uint64_t block = (begin_ + kBlockSize - 1) / kBlockSize * kBlockSize;
    for (; block < end; block += kBlockSize) {
      const auto head = block_head(block, begin_, end);
      if (!std::equal(head.begin(), head.end(), from(block).begin())) return false;
    }
    return true;
  }

  [[nodiscard]] std::span<const std::uint8_t> from(std::uint64_t position) const {
    return bytes_.subspan(static_cast<std::size_t>(position - first_));
  }

  std::span<const std::uint8_t> bytes_;
  std::uint64_t first_;
  std::uint64_t begin_;
  std::vector<std::uint8_t> copy_;
};

}  // namespace bpe_beam
