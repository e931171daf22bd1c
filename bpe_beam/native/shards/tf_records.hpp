// The records of TFRecord files, each the ids of a document: framing, checksums, and layout.
//
// Little-endian: uint64 length, its masked CRC-32C (uint32), that many bytes, their masked CRC-32C.
// The bytes are the tf.train.Example of `tf_example.hpp`.
#pragma once

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "shards/tf_example.hpp"

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

inline std::uint32_t crc32c_by_tables(std::span<const std::uint8_t> data) {
  const auto& tables = kCrcTables;
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

#if defined(__x86_64__)
#define BPE_BEAM_CRC __attribute__((target("sse4.2,crc32")))
#define BPE_BEAM_CRC_8 _mm_crc32_u64
#define BPE_BEAM_CRC_1 _mm_crc32_u8
inline bool has_crc() { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__)
#if defined(__clang__)  // its header has the functions only if all code may use the instruction
#define BPE_BEAM_CRC __attribute__((target("crc")))
#define BPE_BEAM_CRC_8 __builtin_arm_crc32cd
#define BPE_BEAM_CRC_1 __builtin_arm_crc32cb
#else
#define BPE_BEAM_CRC __attribute__((target("+crc")))
#define BPE_BEAM_CRC_8 __crc32cd
#define BPE_BEAM_CRC_1 __crc32cb
#endif
#if defined(__linux__)
inline bool has_crc() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#else
inline bool has_crc() { return true; }  // every processor of Apple
#endif
#endif

#ifdef BPE_BEAM_CRC
/// Needs the processor's instruction.
BPE_BEAM_CRC inline std::uint32_t crc32c_by_instruction(std::span<const std::uint8_t> data) {
  std::uint32_t crc = ~0U;
  std::size_t at = 0;
  for (; at + 8 <= data.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + at, sizeof word);
    crc = static_cast<std::uint32_t>(BPE_BEAM_CRC_8(crc, word));
  }
  for (; at < data.size(); ++at) crc = BPE_BEAM_CRC_1(crc, data[at]);
  return ~crc;
}
#undef BPE_BEAM_CRC_8
#undef BPE_BEAM_CRC_1
#endif

}  // namespace tf_record_detail

/// The CRC-32C of some bytes.
inline std::uint32_t crc32c(std::span<const std::uint8_t> data) {
#ifdef BPE_BEAM_CRC
  static const bool has_instruction = tf_record_detail::has_crc();
  if (has_instruction) return tf_record_detail::crc32c_by_instruction(data);
#endif
  return tf_record_detail::crc32c_by_tables(data);
}

/// The CRC-32C as TFRecord files store it.
inline std::uint32_t masked_crc32c(std::span<const std::uint8_t> data) {
  const std::uint32_t crc = crc32c(data);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

/// Appends the record of a document. Its ids are below 2^31.
inline void append_tf_record(std::span<const std::uint32_t> ids, std::vector<std::uint8_t>& out) {
  const ExampleSizes sizes(ids);
  const std::size_t start = out.size();
  out.resize(start + 8 + 4 + static_cast<std::size_t>(sizes.example) + 4);
  std::uint8_t* const record = out.data() + start;
  std::uint8_t* at = put_number(sizes.example, record);
  std::uint8_t* const body = put_number(masked_crc32c({record, at}), at);
  at = put_example(ids, sizes, body);
  put_number(masked_crc32c({body, at}), at);
}

/// The flaw of a record.
enum class TfRecordFlaw : std::int64_t {
  kNone,
  kLengthChecksum,
  kChecksum,
  kLayout,
};

/// The records at the beginning of some bytes.
struct TfRecords {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;  // ids of each record
  std::vector<std::int64_t> ends;     // bytes up to the end of each
  std::uint64_t needed = 0;           // bytes of the first incomplete record, as far as it is known
  TfRecordFlaw flaw = TfRecordFlaw::kNone;  // of the record after them
};

/// Reads whole records, up to the first that is not whole or has a flaw.
inline TfRecords read_tf_records(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kHead = 12;
  constexpr std::size_t kAround = kHead + 4;
  TfRecords records;
  const std::string_view data(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto stop = [&records](TfRecordFlaw flaw) {
    records.flaw = flaw;
    return records;
  };
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t left = data.size() - at;
    records.needed = kHead;
    if (left < kHead) return records;
    if (number_at<std::uint32_t>(data, at + 8) != masked_crc32c(bytes.subspan(at, 8))) {
      return stop(TfRecordFlaw::kLengthChecksum);
    }
    const auto length = number_at<std::uint64_t>(data, at);
    if (length >= (std::uint64_t{1} << 31)) return stop(TfRecordFlaw::kLayout);
    records.needed = length + kAround;
    if (left < records.needed) return records;
    const auto size = static_cast<std::size_t>(length);
    if (number_at<std::uint32_t>(data, at + kHead + size) !=
        masked_crc32c(bytes.subspan(at + kHead, size))) {
      return stop(TfRecordFlaw::kChecksum);
    }
    const std::size_t before = records.ids.size();
    if (!read_example(data.substr(at + kHead, size), records.ids)) {
      records.ids.resize(before);
      return stop(TfRecordFlaw::kLayout);
    }
    at += size + kAround;
    records.lengths.push_back(static_cast<std::int64_t>(records.ids.size() - before));
    records.ends.push_back(static_cast<std::int64_t>(at));
  }
  records.needed = 0;
  return records;
}

}  // namespace bpe_beam
