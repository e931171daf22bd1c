// The different ids of a column in the order of their first use, and ids as indices in this list: a
// Parquet column in dictionary encoding.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bpe_beam {

class IdDictionary {
 public:
  /// The indices of smaller ids are in a table; memory does not grow with greater ids.
  static constexpr std::uint32_t kTableIds = 1U << 24;

  /// Put new ids into the dictionary, and append the index of each id to the waiting indices.
  void add(std::span<const std::uint32_t> ids) {
    std::size_t at = waiting_.size();
    waiting_.resize(at + ids.size());
    for (std::size_t i = 0; i < ids.size();) {
      const std::size_t known = copy_known(ids.subspan(i), waiting_.data() + at);
      i += known;
      at += known;
      if (i < ids.size()) waiting_[at++] = index_of(ids[i++]);
    }
  }

  /// The different ids so far.
  std::span<const std::uint32_t> ids() const { return ids_; }

  /// The number of bytes in which each index so far fits, 1 to 4.
  std::size_t width() const {
    std::size_t bytes = 1;
    while (bytes < 4 && ids_.size() > std::size_t{1} << (8 * bytes)) ++bytes;
    return bytes;
  }

  /// Remove the waiting indices. Return `head`, then the indices, little-endian, in
  /// `width()` bytes each, and zeros up to a multiple of 8 indices.
  std::vector<std::uint8_t> take(std::string_view head) {
    const std::size_t groups = (waiting_.size() + 7) / 8;
    std::vector<std::uint8_t> packed(head.size() + 8 * groups * width());
    std::copy(head.begin(), head.end(), packed.begin());
    std::uint8_t* const out = packed.data() + head.size();
    switch (width()) {
      case 1: pack<1>(out); break;
      case 2: pack<2>(out); break;
      case 3: pack<3>(out); break;
      default: pack<4>(out);
    }
    waiting_.clear();
    return packed;
  }

 private:
  /// Write the indices of the first ids that are in the table; return their number.
  std::size_t copy_known(std::span<const std::uint32_t> ids, std::uint32_t* out) const {
    const std::span<const std::uint32_t> table = table_;
    std::size_t known = 0;
    for (const std::uint32_t id : ids) {
      if (id >= table.size() || table[id] == 0) break;
      out[known++] = table[id] - 1;
    }
    return known;
  }

  /// The index of an id, which is put into the dictionary if it is new.
  std::uint32_t index_of(std::uint32_t id) {
    std::uint32_t& index = entry(id);
    if (index == 0) {
      ids_.push_back(id);
      index = static_cast<std::uint32_t>(ids_.size());
    }
    return index - 1;
  }

  /// One more than the index of an id; 0 if it has none.
  std::uint32_t& entry(std::uint32_t id) {
    if (id < table_.size()) return table_[id];
    if (id >= kTableIds) return others_[id];
    const std::size_t doubled = std::min<std::size_t>(2 * table_.size(), kTableIds);
    table_.resize(std::max(std::size_t{id} + 1, doubled));
    return table_[id];
  }

  template <std::size_t kWidth>
  void pack(std::uint8_t* out) const {
    for (const std::uint32_t index : waiting_) {
      if constexpr (kWidth == 2 && std::endian::native == std::endian::little) {
        const auto stored = static_cast<std::uint16_t>(index);
        std::memcpy(out, &stored, kWidth);  // these loops become vector instructions
      } else {
        for (std::size_t byte = 0; byte < kWidth; ++byte) {
          out[byte] = static_cast<std::uint8_t>(index >> (8 * byte));
        }
      }
      out += kWidth;
    }
  }

  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> table_;
  std::unordered_map<std::uint32_t, std::uint32_t> others_;
};

}  // namespace bpe_beam
