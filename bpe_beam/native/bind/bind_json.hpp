// Binds json_reader.hpp for tokenizer files: JSON to Python objects, and vocabularies to ids.
#pragma once

#include <pybind11/pybind11.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/bind_tokens.hpp"
#include "bind/binding.hpp"
#include "read/json_reader.hpp"
#include "read/json_string.hpp"

namespace bpe_beam {

/// Python's collector looks at all objects again and again while many are made; here none is waste.
class CollectorPause {
 public:
  CollectorPause() : was_on_(PyGC_Disable() != 0) {}
  CollectorPause(const CollectorPause&) = delete;
  CollectorPause& operator=(const CollectorPause&) = delete;
  ~CollectorPause() {
    if (was_on_) PyGC_Enable();
  }

 private:
  bool was_on_;
};

/// Makes the objects that Python's `json` would make; refuses what needs an explanation: a key that
/// occurs twice, half a surrogate pair, a string that is not UTF-8, a number of many digits.
class PythonJson {
 public:
  bool begin_object() { return push(py::reinterpret_steal<py::object>(PyDict_New()), true); }
  bool begin_array() { return push(py::reinterpret_steal<py::object>(PyList_New(0)), false); }
  bool end_object() { return pop(); }
  bool end_array() { return pop(); }

  bool key(const JsonString& string) {
    keys_.back() = text_of(string);
    return static_cast<bool>(keys_.back());
  }

  bool string(const JsonString& string) { return add(text_of(string)); }

  bool number(std::string_view digits) {
    std::int64_t integer = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), integer);
    if (error == std::errc() && end == digits.data() + digits.size()) {
      return add(py::reinterpret_steal<py::object>(PyLong_FromLongLong(integer)));
    }
    if (digits.find_first_of(".eE") == std::string_view::npos || digits.size() > kLongestNumber) {
      return false;
    }
    const double value = PyOS_string_to_double(std::string(digits).c_str(), nullptr, nullptr);
    return add(py::reinterpret_steal<py::object>(PyFloat_FromDouble(value)));
  }

  bool literal(char first) {
    if (first == 'n') return add(py::none());
    return add(py::bool_(first == 't'));
  }

  [[nodiscard]] py::object result() { return std::move(result_); }

 private:
  static constexpr std::size_t kLongestNumber = 100;

  /// Null, and no error set, if the string is no Unicode text.
  static py::object text_of(const JsonString& string) {
    PyObject* made = nullptr;
    if (!string.escaped) {
      made = PyUnicode_DecodeUTF8(string.raw.data(), static_cast<py::ssize_t>(string.raw.size()),
                                  nullptr);
    } else {
      Strings resolved(string.raw.size());
      if (append_unescaped(string, resolved)) {
        const std::string_view bytes = resolved.bytes();
        made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), nullptr);
      }
    }
    if (made == nullptr) PyErr_Clear();
    return py::reinterpret_steal<py::object>(made);
  }

  bool push(py::object container, bool object) {
    if (!container) throw py::error_already_set();
    containers_.push_back(std::move(container));
    objects_.push_back(object);
    keys_.emplace_back();
    return true;
  }

  bool pop() {
    py::object container = std::move(containers_.back());
    containers_.pop_back();
    objects_.pop_back();
    keys_.pop_back();
    return add(std::move(container));
  }

  bool add(py::object value) {
    if (!value) return false;
    if (containers_.empty()) {
      result_ = std::move(value);
      return true;
    }
    PyObject* const container = containers_.back().ptr();
    if (!objects_.back()) {
      if (PyList_Append(container, value.ptr()) != 0) throw py::error_already_set();
      return true;
    }
    const py::ssize_t before = PyDict_Size(container);
    if (PyDict_SetItem(container, keys_.back().ptr(), value.ptr()) != 0) {
      throw py::error_already_set();
    }
    return PyDict_Size(container) > before;  // else the key occurs twice
  }

  py::object result_;
  std::vector<py::object> containers_;
  std::vector<bool> objects_;
  std::vector<py::object> keys_;  // the last of each container that is an object
};

/// What Python's `json` makes of UTF-8 JSON; NotImplemented for what it must explain.
inline py::object read_json(const py::buffer& data) {
  const py::buffer_info info = data.request();
  const CollectorPause pause;
  PythonJson made;
  JsonReader<PythonJson> reader(bytes_of(info), made);
  if (!reader.read()) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  return made.result();
}

/// The two tokens of a merge: a list of two strings, or one string with one space. Null if it is
/// neither.
inline py::object merge_pair(PyObject* merge) {
  PyObject* left = nullptr;
  PyObject* right = nullptr;
  if (PyList_Check(merge) && PyList_GET_SIZE(merge) == 2) {
    left = Py_NewRef(PyList_GET_ITEM(merge, 0));
    right = Py_NewRef(PyList_GET_ITEM(merge, 1));
  } else if (PyUnicode_Check(merge)) {
    const py::ssize_t size = PyUnicode_GET_LENGTH(merge);
    const py::ssize_t space = PyUnicode_FindChar(merge, ' ', 0, size, 1);
    if (space < 0 || PyUnicode_FindChar(merge, ' ', space + 1, size, 1) >= 0) return {};
    left = PyUnicode_Substring(merge, 0, space);
    right = PyUnicode_Substring(merge, space + 1, size);
  } else {
    return {};
  }
  const py::object first = py::reinterpret_steal<py::object>(left);
  const py::object second = py::reinterpret_steal<py::object>(right);
  for (const py::object& part : {first, second}) {
    if (!PyUnicode_Check(part.ptr()) || PyUnicode_GET_LENGTH(part.ptr()) == 0) return {};
  }
  return py::reinterpret_steal<py::object>(PyTuple_Pack(2, first.ptr(), second.ptr()));
}

/// The merges of a file as pairs, up to the first that is none.
inline py::list merge_pairs(const py::list& merges) {
  const CollectorPause pause;
  py::list pairs;
  for (const py::handle merge : merges) {
    const py::object pair = merge_pair(merge.ptr());
    if (!pair) break;
    pairs.append(pair);
  }
  return pairs;
}

inline void bind_json(py::module_& m) {
  using namespace pybind11::literals;
  m.def("read_json", &read_json, "data"_a,
        "What json.loads makes of UTF-8 JSON; NotImplemented where it may be refused.");
  m.def("merge_pairs", &merge_pairs, "merges"_a,
        "The merges of a file, two strings or one with a space each, as pairs of strings, up to "
        "the first that is none.");
  py::class_<PyMergeIds>(m, "MergeIds", "The ids of merges: left, right and joined token of each.")
      .def(py::init([](const py::dict& vocab, const py::sequence& merges, const py::str& prefix) {
             return PyMergeIds{merge_ids(vocab, merges, prefix)};
           }),
           "vocab"_a, "merges"_a, "prefix"_a,
           "Of pairs of tokens, up to the first pair of which a token is not in the vocabulary; the "
           "right token's prefix is dropped.")
      .def("__len__", [](const PyMergeIds& merges) { return merges.rows.size(); });
}

}  // namespace bpe_beam
