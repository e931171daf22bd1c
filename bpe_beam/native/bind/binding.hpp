// What every binding needs: Python buffers as spans, vectors as arrays, without copying.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bpe_beam {

namespace py = pybind11;

template <typename T>
using InputArray = py::array_t<T, py::array::c_style>;

/// A one-dimensional contiguous buffer of bytes. Lives while `info` lives.
inline std::string_view bytes_of(const py::buffer_info& info) {
  if (info.ndim != 1 || (info.size > 0 && info.strides[0] != info.itemsize)) {
    throw std::invalid_argument("data must be one contiguous one-dimensional buffer");
  }
  return {static_cast<const char*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize)};
}

template <typename T>
std::span<const T> span_of(const InputArray<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

/// Throws std::invalid_argument if offsets do not ascend within `size` items.
inline void check_offsets(std::span<const std::int64_t> offsets, std::size_t size) {
  if (offsets.empty()) throw std::invalid_argument("offsets must have at least one item");
  std::int64_t last = 0;
  for (const std::int64_t offset : offsets) {
    if (offset < last || static_cast<std::size_t>(offset) > size) {
      throw std::invalid_argument("offsets must ascend within the data");
    }
    last = offset;
  }
}

/// Return a copy of the offsets, which no other thread changes after the check. Throws as
/// `check_offsets`.
inline std::vector<std::int64_t> checked_offsets(const InputArray<std::int64_t>& offsets,
                                                 std::size_t size) {
  const auto items = span_of(offsets);
  std::vector<std::int64_t> copy(items.begin(), items.end());
  check_offsets(copy, size);
  return copy;
}

/// Text i of many: data[offsets[i]:offsets[i + 1]].
inline std::string_view text_at(std::string_view data, std::span<const std::int64_t> offsets,
                                std::size_t i) {
  return data.substr(static_cast<std::size_t>(offsets[i]),
                     static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
}

inline void check_length(const char* name, std::size_t found, std::size_t expected) {
  if (found != expected) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(expected) +
                                " items, got " + std::to_string(found));
  }
}

/// Hands a vector (or string) to Python as an array that owns it.
template <typename Container>
py::array_t<typename Container::value_type> as_array(Container&& values) {
  using Owned = std::remove_reference_t<Container>;
  auto owner = std::make_unique<Owned>(std::forward<Container>(values));
  auto* const data = owner->data();
  const std::size_t size = owner->size();
  py::capsule capsule(owner.release(), [](void* held) { delete static_cast<Owned*>(held); });
  return py::array_t<typename Owned::value_type>(static_cast<py::ssize_t>(size), data, capsule);
}

}  // namespace bpe_beam
