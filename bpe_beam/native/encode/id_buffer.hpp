// A growing array of ids. It is not cleared before it is written, and it grows without a copy where
// the allocator can move pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace bpe_beam {

class IdBuffer {
 public:
  explicit IdBuffer(std::size_t capacity = 0) { grow(capacity); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return {data_.get(), size_}; }

  /// Makes room for `more` ids after the last. Returns where they go.
  std::uint32_t* room(std::size_t more) {
    if (capacity_ - size_ < more) [[unlikely]] grow(size_ + std::max(more, size_ / 2));
    return data_.get() + size_;
  }

  /// Says that ids were written to the room, up to `end`.
  void written_to(const std::uint32_t* end) {
    size_ = static_cast<std::size_t>(end - data_.get());
  }

  void append(std::span<const std::uint32_t> more) {
    written_to(std::copy(more.begin(), more.end(), room(more.size())));
  }

  void push_back(std::uint32_t id) { append({&id, 1}); }

  /// Drops all ids but the first `size`.
  void cut(std::size_t size) { size_ = std::min(size_, size); }

  /// Hands the ids over, for std::free; the buffer is empty then.
  [[nodiscard]] std::uint32_t* release() {
    size_ = capacity_ = 0;
    return data_.release();
  }

  /// Frees what is not needed.
  void shrink() { resize(size_); }

 private:
  struct Free {
    void operator()(std::uint32_t* ids) const { std::free(ids); }
  };

  void grow(std::size_t capacity) { resize(std::max(capacity, std::size_t{16})); }

  void resize(std::size_t capacity) {
    if (capacity > SIZE_MAX / sizeof(std::uint32_t)) throw std::bad_alloc();
    // One at least: of none, realloc may return null.
    void* const moved =
        std::realloc(data_.get(), std::max(capacity, std::size_t{1}) * sizeof(std::uint32_t));
    if (moved == nullptr) throw std::bad_alloc();
    (void)data_.release();  // realloc has freed it
    data_.reset(static_cast<std::uint32_t*>(moved));
    capacity_ = capacity;
  }

  std::unique_ptr<std::uint32_t[], Free> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace bpe_beam
