// Helpers of all bindings: Python's buffers and arrays as spans, vectors as arrays, without
// copying.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bind/numpy.hpp"

namespace bpe_beam {

namespace py = nanobind;

static_assert(std::endian::native == std::endian::little,
              "bpe-beam runs on little-endian machines only: its files and tables are "
              "little-endian");
static_assert(sizeof(void*) == 8, "bpe-beam runs on 64-bit machines only");

/// The memory of a Python object, such as bytes or an array; it keeps the object alive. Its
/// construction, copy and destruction need the GIL.
class Buffer {
 public:
  Buffer() = default;

  /// Return false, and set no error, if the object has no buffer.
  bool open(PyObject* object) {
    auto view = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
      PyErr_Clear();
      return false;
    }
    view_ = std::shared_ptr<Py_buffer>(view.release(), [](Py_buffer* opened) {
      PyBuffer_Release(opened);
      delete opened;
    });
    return true;
  }

  [[nodiscard]] const Py_buffer& view() const { return *view_; }

 private:
  std::shared_ptr<Py_buffer> view_;
};

/// A contiguous array of T in the order of C.
template <typename T>
class InputArray {
 public:
  InputArray() = default;

  /// Return false, and set no error, if the object is not such an array. With `converts`, other
  /// objects are converted if NumPy considers it safe.
  bool open(PyObject* object, bool converts) {
    if (buffer_.open(object) && is_array_of_t()) return true;
    if (!converts) return false;
    const py::object array = converted_array(object, type_number<T>());
    return array.is_valid() && buffer_.open(array.ptr()) && is_array_of_t();
  }

  [[nodiscard]] const T* data() const { return static_cast<const T*>(buffer_.view().buf); }
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(buffer_.view().len) / sizeof(T);
  }
  [[nodiscard]] int ndim() const { return buffer_.view().ndim; }
  [[nodiscard]] Py_ssize_t shape(int dimension) const { return buffer_.view().shape[dimension]; }
  /// An item of an array with two dimensions, without a check.
  [[nodiscard]] T at(Py_ssize_t row, Py_ssize_t column) const {
    return data()[row * shape(1) + column];
  }

  [[nodiscard]] T* mutable_data() {
    if (buffer_.view().readonly != 0) throw std::invalid_argument("array is not writeable");
    return static_cast<T*>(buffer_.view().buf);
  }

 private:
  [[nodiscard]] bool is_array_of_t() const {
    const Py_buffer& view = buffer_.view();
    if (view.itemsize != sizeof(T) || PyBuffer_IsContiguous(&view, 'C') == 0) return false;
    std::string_view format = view.format == nullptr ? "B" : view.format;
    if (format.starts_with('@') || format.starts_with('=') || format.starts_with('<')) {
      format.remove_prefix(1);
    }
    constexpr std::string_view kFormats = std::is_signed_v<T> ? "bhilqn" : "BHILQN";
    return format.size() == 1 && kFormats.find(format[0]) != std::string_view::npos;
  }

  Buffer buffer_;
};

/// A one-dimensional contiguous buffer of bytes. Lives while `buffer` lives.
inline std::string_view bytes_of(const Buffer& buffer) {
  const Py_buffer& view = buffer.view();
  if (view.ndim != 1 || (view.len > 0 && view.strides[0] != view.itemsize)) {
    throw std::invalid_argument("data must be one contiguous one-dimensional buffer");
  }
  return {static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len)};
}

inline std::string_view bytes_of(const py::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename T>
std::span<const T> span_of(const InputArray<T>& array) {
  return {array.data(), array.size()};
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

/// Return a copy of the offsets, so that no other thread changes them after the check. Throws as
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

inline void check_length(const char* name, std::size_t length, std::size_t expected) {
  if (length != expected) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(expected) +
                                " items, got " + std::to_string(length));
  }
}

/// An array of NumPy.
class Array : public py::object {
 public:
  NB_OBJECT_DEFAULT(Array, py::object, "numpy.ndarray", is_numpy_array)
};

/// Hands a vector (or string) to Python as an array that owns it, with rows of `columns` items if
/// that is not 0.
template <typename Container>
Array as_array(Container&& values, std::size_t columns = 0) {
  using Owned = std::remove_reference_t<Container>;
  auto owner = std::make_unique<Owned>(std::forward<Container>(values));
  auto* const data = owner->data();
  const auto size = static_cast<Py_intptr_t>(owner->size());
  const auto width = static_cast<Py_intptr_t>(columns);
  const py::capsule capsule(owner.release(),
                            [](void* held) noexcept { delete static_cast<Owned*>(held); });
  const int type = type_number<typename Owned::value_type>();
  if (columns == 0) return py::steal<Array>(new_array(type, {size}, data, capsule));
  return py::steal<Array>(new_array(type, {size / width, width}, data, capsule));
}

}  // namespace bpe_beam

namespace nanobind::detail {

template <>
struct type_caster<bpe_beam::Buffer> {
  NB_TYPE_CASTER(bpe_beam::Buffer, const_name("collections.abc.Buffer"))
  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    return value.open(source.ptr());
  }
};

template <typename T>
struct type_caster<bpe_beam::InputArray<T>> {
  NB_TYPE_CASTER(bpe_beam::InputArray<T>, const_name("numpy.ndarray"))
  bool from_python(handle source, std::uint32_t flags, cleanup_list*) noexcept {
    return value.open(source.ptr(), (flags & cast_flags::convert) != 0);
  }
};

/// The UTF-8 of a str, or the bytes of a bytes object.
template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str | bytes"))
  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    if (PyBytes_Check(source.ptr())) {
      value.assign(PyBytes_AsString(source.ptr()),
                   static_cast<std::size_t>(PyBytes_Size(source.ptr())));
      return true;
    }
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    value.assign(text, static_cast<std::size_t>(size));
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
};

}  // namespace nanobind::detail
