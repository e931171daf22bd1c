// The few functions of NumPy's C interface that the bindings need, without its headers.
#pragma once

#include <nanobind/nanobind.h>

#include <concepts>
#include <initializer_list>
#include <type_traits>

namespace bpe_beam {

/// NumPy's number of the type of integers T.
template <std::integral T>
constexpr int type_number() {
  static_assert(sizeof(long) == 8);
  constexpr int kSigned = sizeof(T) == 1 ? 1 : sizeof(T) == 2 ? 3 : sizeof(T) == 4 ? 5 : 7;
  return std::is_signed_v<T> ? kSigned : kSigned + 1;
}

/// A new array over `data`, which `owner` keeps alive; its own memory if `data` is null. Throws
/// nanobind::python_error.
PyObject* new_array(int type, std::initializer_list<Py_intptr_t> shape, void* data,
                    nanobind::handle owner);

/// The memory of an array of `new_array`.
void* array_data(PyObject* array);

bool is_numpy_array(PyObject* object);

/// An array in the order of C, if NumPy can convert the object safely to a type of integers;
/// otherwise null, and no error set.
nanobind::object converted_array(PyObject* object, int type) noexcept;

}  // namespace bpe_beam
