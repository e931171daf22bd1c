// The records of TFRecord files, each the ids of a document: framing, checksums, and layout.
//
// Little-endian: uint64 length, its masked CRC-32C (uint32), that many bytes, their masked CRC-32C.
// The bytes are a tf.train.Example in protocol buffers' wire format, whose one feature `input_ids`
// is a list of int64, packed. Only the one encoding that `append_tf_record` writes is read.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace bpe_beam {

namespace tf_record_detail {

constexpr std::size_t kSlices = 8;

constexpr auto make_crc_tables() {
  std::array<std::array<std::uint32_t, 256>, kSlices> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

inline constexpr auto kCrcTables = make_crc_tables();

constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 31) - 1;
constexpr std::string_view kKey = "\x0A\x09input_ids";

constexpr std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

/// Writes a varint, and returns the byte behind it.
inline std::uint8_t* put_varint(std::uint64_t value, std::uint8_t* at) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

/// Writes a number, and returns the byte behind it.
template <typename Number>
std::uint8_t* put_number(Number number, std::uint8_t* at) {
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
    *at++ = static_cast<std::uint8_t>(number >> (8 * byte));
  }
  return at;
}

template <typename Number>
Number number_at(std::string_view data, std::size_t at) {
  Number number = 0;
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
    const auto value = static_cast<std::uint8_t>(data[at + byte]);
    number |= static_cast<Number>(static_cast<Number>(value) << (8 * byte));
  }
  return number;
}

/// Takes a varint of up to `max` in its shortest form off the start of the data.
inline std::optional<std::uint64_t> take_varint(std::string_view& data, std::uint64_t max) {
  std::uint64_t value = 0;
  for (std::size_t at = 0; at < data.size() && at < 9; ++at) {
    const auto byte = static_cast<std::uint8_t>(data[at]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * at);
    if (byte >= 0x80) continue;
    if ((byte == 0 && at > 0) || value > max) return std::nullopt;
    data.remove_prefix(at + 1);
    return value;
  }
  return std::nullopt;
}

/// Takes a tag and the length of what follows, which must be all of the rest.
inline bool take_rest(std::string_view& data, char tag) {
  if (data.empty() || data.front() != tag) return false;
  data.remove_prefix(1);
  const auto length = take_varint(data, static_cast<std::uint64_t>(data.size()));
  return length && *length == data.size();
}

/// Reads an Example; false if it is no such one.
inline bool read_example(std::string_view data, std::vector<std::uint32_t>& ids) {
  if (!take_rest(data, '\x0A') || !take_rest(data, '\x0A')) return false;
  if (!data.starts_with(kKey)) return false;
  data.remove_prefix(kKey.size());
  if (!take_rest(data, '\x12') || !take_rest(data, '\x1A')) return false;
  if (data.empty()) return true;
  if (!take_rest(data, '\x0A') || data.empty()) return false;
  while (!data.empty()) {
    const auto id = take_varint(data, kMaxId);
    if (!id) return false;
    ids.push_back(static_cast<std::uint32_t>(*id));
  }
  return true;
}

}  // namespace tf_record_detail

/// The CRC-32C of some bytes.
inline std::uint32_t crc32c(std::span<const std::uint8_t> data) {
  const auto& tables = tf_record_detail::kCrcTables;
  std::uint32_t crc = ~0U;
  std::size_t at = 0;
  for (; at + 8 <= data.size(); at += 8) {
    std::uint32_t next = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      crc ^= static_cast<std::uint32_t>(data[at + byte]) << (8 * byte);
    }
    for (std::size_t byte = 0; byte < 4; ++byte) {
      next ^= tables[7 - byte][(crc >> (8 * byte)) & 0xFF] ^ tables[3 - byte][data[at + 4 + byte]];
    }
    crc = next;
  }
  for (; at < data.size(); ++at) crc = (crc >> 8) ^ tables[0][(crc ^ data[at]) & 0xFF];
  return ~crc;
}

/// The CRC-32C as TFRecord files store it.
inline std::uint32_t masked_crc32c(std::span<const std::uint8_t> data) {
  const std::uint32_t crc = crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

/// Appends the record of a document. Its ids are below 2^31.
inline void append_tf_record(std::span<const std::uint32_t> ids, std::vector<std::uint8_t>& out) {
  using namespace tf_record_detail;
  const auto part = [](std::uint64_t size) { return 1 + varint_size(size) + size; };
  std::uint64_t packed = 0;
  for (const std::uint32_t id : ids) packed += varint_size(id);
  const std::uint64_t list = packed == 0 ? 0 : part(packed);
  const std::uint64_t feature = part(list);
  const std::uint64_t entry = kKey.size() + part(feature);
  const std::uint64_t features = part(entry);
  const std::uint64_t example = part(features);
  const std::size_t start = out.size();
  out.resize(start + 8 + 4 + static_cast<std::size_t>(example) + 4);
  std::uint8_t* const record = out.data() + start;
  std::uint8_t* at = put_number(example, record);
  at = put_number(masked_crc32c({record, at}), at);
  std::uint8_t* const body = at;
  const auto begin_part = [&at](std::uint8_t tag, std::uint64_t size) {
    *at++ = tag;
    at = put_varint(size, at);
  };
  begin_part(0x0A, features);
  begin_part(0x0A, entry);
  at = std::copy(kKey.begin(), kKey.end(), at);
  begin_part(0x12, feature);
  begin_part(0x1A, list);
  if (packed != 0) begin_part(0x0A, packed);
  for (const std::uint32_t id : ids) at = put_varint(id, at);
  put_number(masked_crc32c({body, at}), at);
}

/// What is wrong with a record.
enum class TfRecordFlaw : std::int64_t {
  kNone,
  kLengthChecksum,
  kChecksum,
  kLayout,
};

/// The records that some bytes begin with.
struct TfRecords {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // ids of each record
  std::vector<std::int64_t> ends;     // bytes up to the end of each
  std::uint64_t needed = 0;  // bytes of the first record that is not whole, as far as is known
  TfRecordFlaw flaw = TfRecordFlaw::kNone;  // of the record after them
};

/// Reads whole records, up to the first that is not whole or has a flaw.
inline TfRecords read_tf_records(std::span<const std::uint8_t> bytes) {
  using namespace tf_record_detail;
  constexpr std::size_t kHead = 12;
  constexpr std::size_t kAround = kHead + 4;
  TfRecords found;
  const std::string_view data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto stop = [&found](TfRecordFlaw flaw) {
    found.flaw = flaw;
    return found;
  };
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t left = data.size() - at;
    found.needed = kHead;
    if (left < kHead) return found;
    if (number_at<std::uint32_t>(data, at + 8) != masked_crc32c(bytes.subspan(at, 8))) {
      return stop(TfRecordFlaw::kLengthChecksum);
    }
    const auto length = number_at<std::uint64_t>(data, at);
    if (length >= (std::uint64_t{1} << 31)) return stop(TfRecordFlaw::kLayout);
    found.needed = length + kAround;
    if (left < found.needed) return found;
    const auto size = static_cast<std::size_t>(length);
    if (number_at<std::uint32_t>(data, at + kHead + size) !=
        masked_crc32c(bytes.subspan(at + kHead, size))) {
      return stop(TfRecordFlaw::kChecksum);
    }
    const std::size_t before = found.ids.size();
    if (!read_example(data.substr(at + kHead, size), found.ids)) {
      found.ids.resize(before);
      return stop(TfRecordFlaw::kLayout);
    }
    at += size + kAround;
    found.lengths.push_back(static_cast<std::int64_t>(found.ids.size() - before));
    found.ends.push_back(static_cast<std::int64_t>(at));
  }
  found.needed = 0;
  return found;
}

}  // namespace bpe_beam
