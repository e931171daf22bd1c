// A growing array of ids. It is not cleared before it is written, and it grows without a copy if
// the allocator can move pages. Large arrays are reused: new memory from the system takes as much
// time as looking up the words whose ids go there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace bpe_beam {

class IdBuffer {
 public:
  explicit IdBuffer(std::size_t capacity = 0) { grow(capacity); }
  IdBuffer(IdBuffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  IdBuffer& operator=(IdBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const std::uint32_t> ids() const { return {data_.get(), size_}; }

  /// Makes room for `more` ids after the last. Returns where they go.
  std::uint32_t* room(std::size_t more) {
    if (capacity_ - size_ < more) [[unlikely]]
      grow(size_ + std::max(more, size_ / 2));
    return data_.get() + size_;
  }

  /// Says that ids were written to the room, up to `end`.
  void written_to(const std::uint32_t* end) { size_ = static_cast<std::size_t>(end - data_.get()); }

  void append(std::span<const std::uint32_t> more) {
    written_to(std::copy(more.begin(), more.end(), room(more.size())));
  }

  void push_back(std::uint32_t id) { append({&id, 1}); }

  /// Drops all ids but the first `size`.
  void cut(std::size_t size) { size_ = std::min(size_, size); }

  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  /// Frees unused memory; a large buffer keeps room for the last words.
  void shrink() { resize(std::min(capacity_, size_ < kLarge ? size_ : size_ + kSpare)); }

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 18;
  static constexpr std::size_t kSpare = std::size_t{1} << 13;

  struct Free {
    void operator()(std::uint32_t* ids) const { std::free(ids); }
  };

  void grow(std::size_t capacity) { resize(std::max(capacity, std::size_t{16})); }

  void resize(std::size_t capacity) {
    if (capacity > SIZE_MAX / sizeof(std::uint32_t)) throw std::bad_alloc();
    // At least one: for size 0 realloc may return null.
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

/// Buffers that wait to be used again. Threads may share it.
class IdBufferPool {
 public:
  /// Keeps buffers of at least `least` ids, and at most `most` ids in total.
  IdBufferPool(std::size_t least, std::size_t most) : least_(least), most_(most) {}

  /// Returns an empty buffer for at most `ids` ids, which may be fewer: the largest in the pool, if
  /// `ids` is large enough for the pool. So every buffer that is given back was taken before, and
  /// the pool does not grow.
  IdBuffer take(std::size_t ids) {
    if (ids >= least_) {
      const std::lock_guard lock(mutex_);
      if (!waiting_.empty()) {
        IdBuffer buffer = std::move(waiting_.back());
        waiting_.pop_back();
        total_ -= buffer.capacity();
        buffer.cut(0);
        return buffer;
      }
    }
    return IdBuffer();
  }

  /// Keeps a buffer, or frees it.
  void give_back(IdBuffer buffer) {
    const std::size_t capacity = buffer.capacity();
    if (capacity < least_ || capacity > most_) return;
    const std::lock_guard lock(mutex_);
    if (total_ + capacity > most_) return;
    const auto at = std::find_if(waiting_.begin(), waiting_.end(), [&](const IdBuffer& other) {
      return other.capacity() >= capacity;
    });
    waiting_.insert(at, std::move(buffer));
    total_ += capacity;
  }

 private:
  std::size_t least_;
  std::size_t most_;
  std::mutex mutex_;
  std::vector<IdBuffer> waiting_;  // by capacity
  std::size_t total_ = 0;
};

}  // namespace bpe_beam
