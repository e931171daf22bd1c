// A vector that grows by chunks: growing copies nothing, and at most one chunk is partly empty.
//
// A std::vector of n elements has memory for up to 2n, and for 3n while it grows. This vector has
// memory for n and a chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace bpe_beam {

template <typename T>
class ChunkedVector {
 public:
  static constexpr std::size_t kChunk = 1024;

  [[nodiscard]] std::size_t size() const { return size_; }

  T& operator[](std::size_t index) { return chunks_[index / kChunk][index % kChunk]; }
  const T& operator[](std::size_t index) const { return chunks_[index / kChunk][index % kChunk]; }

  /// Adds an element at the end. References to the others stay valid.
  T& push_back(T element) {
    if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    T& added = (*this)[size_++];
    added = std::move(element);
    return added;
  }

  /// Removes and releases all elements.
  void clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace bpe_beam
