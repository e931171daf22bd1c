// The tf.train.Example of a document: a record of TFRecord and ArrayRecord files.
//
// It is in protocol buffers' wire format, and its one feature `input_ids` is a list of int64,
// packed. Only the one encoding that `put_example` writes is read.
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

#include "text/vectors.hpp"

namespace bpe_beam {

/// The bytes of a number as a varint.
constexpr std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

/// Writes a varint, and returns the byte after it.
inline std::uint8_t* put_varint(std::uint64_t value, std::uint8_t* at) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
  *at++ = static_cast<std::uint8_t>(value);
  return at;
}

/// Writes a number, little-endian, and returns the byte after it.
template <typename Number>
std::uint8_t* put_number(Number number, std::uint8_t* at) {
  for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
    *at++ = static_cast<std::uint8_t>(number >> (8 * byte));
  }
  return at;
}

/// The number that `put_number` wrote at a position.
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

namespace tf_example_detail {

constexpr std::uint64_t kMaxId = (std::uint64_t{1} << 31) - 1;
constexpr std::string_view kKey = "\x0A\x09input_ids";

/// The bytes of an id as a varint, without a division.
constexpr std::size_t id_size(std::uint32_t id) {
  return std::size_t{1} + (id >> 7 != 0) + (id >> 14 != 0) + (id >> 21 != 0) + (id >> 28 != 0);
}

/// Writes ids as varints, and returns the byte after them.
inline std::uint8_t* put_each_id(std::span<const std::uint32_t> ids, std::uint8_t* at) {
  // Eight bytes are written for each id, and the next ids overwrite the bytes after its varint: no
  // branch depends on the length of a varint. For the last seven ids, eight bytes may not fit.
  constexpr std::array<std::uint64_t, 6> kContinued{0, 0, 0x80, 0x8080, 0x808080, 0x80808080};
  constexpr std::size_t kLast = 7;
  const std::size_t fast = ids.size() < kLast ? 0 : ids.size() - kLast;
  for (const std::uint32_t id : ids.first(fast)) {
    const std::uint64_t wide = id;
    const std::size_t size = id_size(id);
    const std::uint64_t bytes = (wide & 0x7F) | (wide & 0x3F80) << 1 | (wide & 0x1FC000) << 2 |
                                (wide & 0xFE00000) << 3 | (wide & 0xF0000000) << 4 |
                                kContinued[size];
    put_number(bytes, at);
    at += size;
  }
  for (const std::uint32_t id : ids.subspan(fast)) at = put_varint(id, at);
  return at;
}

#ifdef BPE_BEAM_VECTORS
/// The shuffles that move the bytes of four varints together, which are in four bytes each.
struct FourVarints {
  std::array<std::uint8_t, 16> shuffle{};
  std::uint8_t size = 0;
};

/// Indexed by the ids with two bytes or more (the low four bits) and the ids with three.
constexpr auto make_four_varints() {
  std::array<FourVarints, 256> varints{};
  for (std::size_t mask = 0; mask < varints.size(); ++mask) {
    FourVarints& each = varints[mask];
    each.shuffle.fill(0x80);
    for (std::size_t id = 0; id < 4; ++id) {
      const std::size_t size = 1 + (mask >> id & 1) + (mask >> (4 + id) & 1);
      for (std::size_t byte = 0; byte < size; ++byte) {
        each.shuffle[each.size++] = static_cast<std::uint8_t>(4 * id + byte);
      }
    }
  }
  return varints;
}

inline constexpr auto kFourVarints = make_four_varints();

/// Writes ids as `put_each_id` does, four at a time.
BPE_BEAM_SSSE3 inline std::uint8_t* put_ids_by_vectors(std::span<const std::uint32_t> ids,
                                                       std::uint8_t* at) {
  // Sixteen bytes are written for four ids, so twelve other ids must follow.
  constexpr std::size_t kRoom = 16;
  for (; ids.size() >= kRoom; ids = ids.subspan(4)) {
    const auto four = load_vector<Words4>(ids.data());
    if (lane_bits(greater(four, 0x1FFFFF)) != 0) {
      for (const std::uint32_t id : ids.first(4)) at = put_varint(id, at);
      continue;
    }
    const Words4 second = greater(four, 0x7F);
    const Words4 third = greater(four, 0x3FFF);
    const Words4 values = (four & 0x7F) | ((four << 1) & 0x7F00) | ((four << 2) & 0x7F0000);
    const Words4 continued = (second & 0x80) | (third & 0x8000);
    const FourVarints& known = kFourVarints[lane_bits(second) | lane_bits(third) << 4];
    const auto bytes = reinterpret_cast<Bytes16>(values | continued);
    store_vector(bytes_at(bytes, load_vector<Bytes16>(known.shuffle.data())), at);
    at += known.size;
  }
  return put_each_id(ids, at);
}

/// Writes ids below 2^31 as varints, and returns the byte after them.
inline std::uint8_t* put_ids(std::span<const std::uint32_t> ids, std::uint8_t* at) {
  return moves_bytes() ? put_ids_by_vectors(ids, at) : put_each_id(ids, at);
}
#else
inline std::uint8_t* put_ids(std::span<const std::uint32_t> ids, std::uint8_t* at) {
  return put_each_id(ids, at);
}
#endif

/// Takes a tag and a length, which must be the length of all remaining bytes.
inline bool take_rest(std::string_view& data, char tag) {
  if (data.empty() || data.front() != tag) return false;
  data.remove_prefix(1);
  const auto length = take_varint(data, static_cast<std::uint64_t>(data.size()));
  return length && *length == data.size();
}

}  // namespace tf_example_detail

/// The sizes of an Example and of its parts, in bytes.
struct ExampleSizes {
  /// The sizes of the Example of these ids, each below 2^31.
  explicit ExampleSizes(std::span<const std::uint32_t> ids) {
    const auto part = [](std::uint64_t size) { return 1 + varint_size(size) + size; };
    for (const std::uint32_t id : ids) packed += tf_example_detail::id_size(id);
    list = packed == 0 ? 0 : part(packed);
    feature = part(list);
    entry = tf_example_detail::kKey.size() + part(feature);
    features = part(entry);
    example = part(features);
  }

  std::uint64_t packed = 0;
  std::uint64_t list = 0;
  std::uint64_t feature = 0;
  std::uint64_t entry = 0;
  std::uint64_t features = 0;
  std::uint64_t example = 0;
};

/// Writes the Example of some ids, and returns the byte after it: `sizes.example` bytes.
inline std::uint8_t* put_example(std::span<const std::uint32_t> ids, const ExampleSizes& sizes,
                                 std::uint8_t* at) {
  using namespace tf_example_detail;
  const auto begin_part = [&at](std::uint8_t tag, std::uint64_t size) {
    *at++ = tag;
    at = put_varint(size, at);
  };
  begin_part(0x0A, sizes.features);
  begin_part(0x0A, sizes.entry);
  at = std::copy(kKey.begin(), kKey.end(), at);
  begin_part(0x12, sizes.feature);
  begin_part(0x1A, sizes.list);
  if (sizes.packed != 0) begin_part(0x0A, sizes.packed);
  return put_ids(ids, at);
}

/// Appends the ids of an Example. Returns false if it is not such an Example; some ids may then be
/// appended.
inline bool read_example(std::string_view data, std::vector<std::uint32_t>& ids) {
  using namespace tf_example_detail;
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

}  // namespace bpe_beam
