// See numpy.hpp. The numbers of functions and flags are part of NumPy's stable binary interface.
#include "bind/numpy.hpp"

#include <nanobind/nanobind.h>

#include <array>

namespace bpe_beam {
namespace {

namespace py = nanobind;

constexpr int kAligned = 0x100, kInOrderOfC = 1, kWriteable = 0x400;

/// NumPy is imported when the first array is made, so a process without arrays does not need it.
struct Numpy {
  PyTypeObject* array_type;
  PyObject* (*descriptor_of)(int);
  PyObject* (*new_from_descriptor)(PyTypeObject*, PyObject*, int, const Py_intptr_t*,
                                   const Py_intptr_t*, void*, int, PyObject*);
  int (*set_base)(PyObject*, PyObject*);

  static Numpy load() {
    py::object multiarray = py::steal(PyImport_ImportModule("numpy._core.multiarray"));
    if (!multiarray.is_valid()) {  // NumPy 1
      PyErr_Clear();
      multiarray = py::module_::import_("numpy.core.multiarray");
    }
    const py::object capsule = multiarray.attr("_ARRAY_API");
    auto** const functions = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (functions == nullptr) throw py::python_error();
    Numpy numpy{};
    numpy.array_type = static_cast<PyTypeObject*>(functions[2]);
    numpy.descriptor_of = reinterpret_cast<decltype(numpy.descriptor_of)>(functions[45]);
    numpy.new_from_descriptor =
        reinterpret_cast<decltype(numpy.new_from_descriptor)>(functions[94]);
    numpy.set_base = reinterpret_cast<decltype(numpy.set_base)>(functions[282]);
    return numpy;
  }

  /// Two threads may load it at the same time. There is no lock, because a thread with the lock
  /// could wait for the GIL of another.
  static const Numpy& get() {
    static Numpy numpy{};
    if (numpy.set_base == nullptr) numpy = load();
    return numpy;
  }
};

}  // namespace

PyObject* new_array(int type, std::initializer_list<Py_intptr_t> shape, void* data,
                    py::handle owner) {
  const Numpy& numpy = Numpy::get();
  const int flags = data == nullptr ? 0 : kAligned | kInOrderOfC | kWriteable;
  PyObject* const array = numpy.new_from_descriptor(numpy.array_type, numpy.descriptor_of(type),
                                                    static_cast<int>(shape.size()), shape.begin(),
                                                    nullptr, data, flags, nullptr);
  if (array == nullptr) throw py::python_error();
  if (owner.is_valid() && numpy.set_base(array, owner.inc_ref().ptr()) != 0) {
    Py_DECREF(array);
    throw py::python_error();
  }
  return array;
}

void* array_data(PyObject* array) {
  // The first field of NumPy's struct after the head of all objects, in every version.
  struct Fields {
    PyObject head;
    void* data;
  };
  return reinterpret_cast<Fields*>(array)->data;
}

bool is_numpy_array(PyObject* object) {
  return PyObject_TypeCheck(object, Numpy::get().array_type) != 0;
}

py::object converted_array(PyObject* object, int type) noexcept {
  try {
    const py::module_ numpy = py::module_::import_("numpy");
    const py::object dtype = py::steal(Numpy::get().descriptor_of(type));
    if (PyObject_CheckBuffer(object) == 0) {
      return numpy.attr("array")(py::handle(object), dtype, py::arg("order") = "C");
    }
    return numpy.attr("asarray")(py::handle(object))
        .attr("astype")(dtype, py::arg("order") = "C", py::arg("casting") = "safe");
  } catch (py::python_error&) {
    return {};
  }
}

}  // namespace bpe_beam
