// A list of 32-bit positions in 24 bytes: up to two are in the list itself, more are allocated.
//
// Most pairs of a learner occur once or twice; a std::vector would allocate 32 bytes for each.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

namespace bpe_beam {

class PositionList {
 public:
  static constexpr std::uint32_t kInside = 2;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] std::span<std::uint32_t> positions() {
    return {capacity_ == kInside ? inside_.data() : apart_.get(), size_};
  }
  [[nodiscard]] std::span<const std::uint32_t> positions() const {
    return {capacity_ == kInside ? inside_.data() : apart_.get(), size_};
  }

  /// Makes room for so many positions in total, and no more.
  void reserve(std::size_t wanted) {
    if (wanted <= capacity_) return;
    if (wanted > UINT32_MAX) throw std::length_error("more than 2^32 positions of one pair");
    auto larger = std::make_unique_for_overwrite<std::uint32_t[]>(wanted);
    std::ranges::copy(positions(), larger.get());
    apart_ = std::move(larger);
    capacity_ = static_cast<std::uint32_t>(wanted);
  }

  /// Adds positions, which must not be its own, at the end.
  void append(std::span<const std::uint32_t> more) {
    const std::size_t wanted = size_ + more.size();
    if (wanted > capacity_) {
      // Half as much again; and what the smallest allocation gives anyway.
      const std::size_t roomy = std::max<std::size_t>(kSmallest, wanted + wanted / 2);
      reserve(wanted > UINT32_MAX ? wanted : std::min<std::size_t>(roomy, UINT32_MAX));
    }
    std::uint32_t* const end = positions().data() + size_;
    std::ranges::copy(more, end);
    size_ = static_cast<std::uint32_t>(wanted);
  }

  void push_back(std::uint32_t position) { append({&position, 1}); }

  /// Empties the list and returns what was in it.
  [[nodiscard]] PositionList take() {
    PositionList taken;
    std::swap(taken.apart_, apart_);
    std::swap(taken.size_, size_);
    std::swap(taken.capacity_, capacity_);
    std::swap(taken.inside_, inside_);
    return taken;
  }

 private:
  static constexpr std::size_t kSmallest = 6;

  std::unique_ptr<std::uint32_t[]> apart_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kInside;
  std::array<std::uint32_t, kInside> inside_{};
};

}  // namespace bpe_beam
