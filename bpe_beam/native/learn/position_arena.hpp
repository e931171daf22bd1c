// Lists of 32-bit positions, in large blocks that are released together.
//
// If rare pairs are listed, most lists have one or two positions: an allocation for each would take
// more memory than its positions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace bpe_beam {

/// A list in an arena, in 16 bytes.
class PositionList {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<std::uint32_t> positions() const { return {data_, size_}; }

  /// Adds a position, for which `PositionArena::reserve` has made room.
  void push_back(std::uint32_t position) { data_[size_++] = position; }

  void pop_front() {
    ++data_;
    --size_;
    --capacity_;
  }

 private:
  friend class PositionArena;

  std::uint32_t* data_ = nullptr;  // of the arena
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

class PositionArena {
 public:
  static constexpr std::size_t kBlock = 1 << 16;

  /// Makes room for this many more positions; exactly for these if the list is empty, otherwise for
  /// half as many again.
  void reserve(PositionList& list, std::size_t more) {
    const std::size_t wanted = list.size_ + more;
    if (wanted <= list.capacity_) return;
    if (wanted > UINT32_MAX) throw std::length_error("more than 2^32 positions of one pair");
    const std::size_t roomy = list.empty() ? wanted : wanted + wanted / 2;
    const std::span<std::uint32_t> room = allocate(std::min<std::size_t>(roomy, UINT32_MAX));
    std::ranges::copy(list.positions(), room.begin());
    list.data_ = room.data();
    list.capacity_ = static_cast<std::uint32_t>(room.size());
  }

  /// Releases all lists, which must not be used after that.
  void clear() {
    free_ = {};
    blocks_.clear();
  }

 private:
  std::span<std::uint32_t> allocate(std::size_t size) {
    if (size > free_.size()) {
      // A long list has a block of its own, and the rest of the previous block stays in use.
      if (size > kBlock / 8) return new_block(size);
      free_ = new_block(kBlock);
    }
    const std::span<std::uint32_t> room = free_.first(size);
    free_ = free_.subspan(size);
    return room;
  }

  std::span<std::uint32_t> new_block(std::size_t size) {
    blocks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(size));
    return {blocks_.back().get(), size};
  }

  std::vector<std::unique_ptr<std::uint32_t[]>> blocks_;
  std::span<std::uint32_t> free_;
};

}  // namespace bpe_beam
