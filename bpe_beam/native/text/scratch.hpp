// Buffers that a thread reuses, because a step that is const and shared cannot store them.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace bpe_beam {

/// Borrows a T from the thread's pool, as its last user left it. T has memory_bytes(): an object
/// that has grown beyond kMostKept is freed, so a huge document leaves no memory in use.
template <typename T>
class Scratch {
 public:
  static constexpr std::size_t kMostKept = std::size_t{1} << 20;
  static constexpr std::size_t kMostPooled = 16;

  Scratch() {
    if (pool().empty()) {
      value_ = std::make_unique<T>();
    } else {
      value_ = std::move(pool().back());
      pool().pop_back();
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (value_->memory_bytes() <= kMostKept && pool().size() < kMostPooled) {
      pool().push_back(std::move(value_));
    }
  }

  [[nodiscard]] T* get() const { return value_.get(); }

 private:
  static std::vector<std::unique_ptr<T>>& pool() {
    thread_local std::vector<std::unique_ptr<T>> pooled = [] {
      std::vector<std::unique_ptr<T>> empty;
      empty.reserve(kMostPooled);  // returning it must not throw
      return empty;
    }();
    return pooled;
  }

  std::unique_ptr<T> value_;
};

}  // namespace bpe_beam
