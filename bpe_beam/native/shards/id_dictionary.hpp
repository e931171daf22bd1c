// The different ids of a column in the order in which they come, and ids as their indices there: a
// Parquet column in dictionary encoding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace bpe_beam {

class IdDictionary {
 public:
  /// The indices of ids below are in a table; memory does not grow with greater ids.
  static constexpr std::uint32_t kTableIds = 1U << 24;

  /// Put new ids into the dictionary, and the index of each id behind the indices that wait.
  void add(std::span<const std::uint32_t> ids) {
    std::size_t at = waiting_.size();
    waiting_.resize(at + ids.size());
    for (const std::uint32_t id : ids) {
      std::uint32_t& index = entry(id);
      if (index == 0) {
        ids_.push_back(id);
        index = static_cast<std::uint32_t>(ids_.size());
      }
      waiting_[at++] = index - 1;
    }
  }

  /// The different ids so far.
  std::span<const std::uint32_t> ids() const { return ids_; }

  /// The bytes that each index so far fits in, 1 to 4.
  std::size_t width() const {
    std::size_t bytes = 1;
    while (bytes < 4 && ids_.size() > std::size_t{1} << (8 * bytes)) ++bytes;
    return bytes;
  }

  /// Remove the indices that wait; return them little-endian, in `width()` bytes each.
  std::vector<std::uint8_t> take() {
    std::vector<std::uint8_t> packed(width() * waiting_.size());
    switch (width()) {
      case 1: pack<1>(packed.data()); break;
      case 2: pack<2>(packed.data()); break;
      case 3: pack<3>(packed.data()); break;
      default: pack<4>(packed.data());
    }
    waiting_.clear();
    return packed;
  }

 private:
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
      for (std::size_t byte = 0; byte < kWidth; ++byte) {
        *out++ = static_cast<std::uint8_t>(index >> (8 * byte));
      }
    }
  }

  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> table_;
  std::unordered_map<std::uint32_t, std::uint32_t> others_;
};

}  // namespace bpe_beam
