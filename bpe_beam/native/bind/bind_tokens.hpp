// Vocabularies and merges from Python: dicts of ids by token, and pairs of tokens.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encode/bpe_merges.hpp"
#include "bind/binding.hpp"
#include "encode/byte_level.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

/// The UTF-8 of a str. Python would keep what PyUnicode_AsUTF8 makes, and hold each token twice.
inline std::string utf8_of(PyObject* text) {
  if (!PyUnicode_Check(text)) throw std::invalid_argument("a token must be a str");
  if (PyUnicode_IS_COMPACT_ASCII(text)) {
    return {static_cast<const char*>(PyUnicode_DATA(text)),
            static_cast<std::size_t>(PyUnicode_GET_LENGTH(text))};
  }
  const auto bytes = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(text));
  if (!bytes) throw py::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

inline std::uint32_t id_of(PyObject* number) {
  const unsigned long id = PyLong_AsUnsignedLong(number);
  if (id == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) {
    throw py::error_already_set();
  }
  if (id >= kNoId) throw std::invalid_argument("an id must be below 2^32 - 1");
  return static_cast<std::uint32_t>(id);
}

/// Tokens from a dict of ids by str, or from pairs of (bytes, id).
inline TokenIds token_ids(const py::object& tokens) {
  if (!PyDict_Check(tokens.ptr())) return tokens.cast<TokenIds>();
  TokenIds found;
  found.reserve(static_cast<std::size_t>(PyDict_Size(tokens.ptr())));
  PyObject *token = nullptr, *id = nullptr;
  for (py::ssize_t at = 0; PyDict_Next(tokens.ptr(), &at, &token, &id) != 0;) {
    found.emplace_back(utf8_of(token), id_of(id));
  }
  return found;
}

/// As `token_ids`; a dict's tokens are written in the byte-level alphabet, others are left out.
inline TokenIds byte_token_ids(const py::object& tokens) {
  TokenIds found = token_ids(tokens);
  if (!PyDict_Check(tokens.ptr())) return found;
  const ByteLevelAlphabet alphabet;
  std::erase_if(found, [&](auto& entry) { return !alphabet.to_bytes(entry.first); });
  return found;
}

/// The ids of merges, as a Python object.
struct PyMergeIds {
  std::vector<MergeRow> rows;
};

/// The id of a token, kNoId if the vocabulary has none.
inline std::uint32_t id_in(const py::dict& vocab, PyObject* token) {
  PyObject* const id = PyDict_GetItemWithError(vocab.ptr(), token);
  if (id == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return id == nullptr ? kNoId : id_of(id);
}

/// Finds the id of a joined token. Most files list the tokens in the order of the merges that make
/// them, so the token after the last one that was found is tried first.
class JoinedIds {
 public:
  explicit JoinedIds(const py::dict& vocab) : vocab_(vocab) {
    entries_.reserve(static_cast<std::size_t>(PyDict_Size(vocab.ptr())));
    PyObject *token = nullptr, *id = nullptr;
    for (py::ssize_t at = 0; PyDict_Next(vocab.ptr(), &at, &token, &id) != 0;) {
      if (!PyUnicode_Check(token)) throw std::invalid_argument("a token must be a str");
      entries_.emplace_back(token, id);
    }
  }

  /// The id of `left` and `right` joined, kNoId if the vocabulary has none.
  std::uint32_t find(PyObject* left, PyObject* right) {
    if (!PyUnicode_Check(left) || !PyUnicode_Check(right)) {
      throw std::invalid_argument("the tokens of a merge must be str");
    }
    if (next_ < entries_.size() && is_joined(entries_[next_].first, left, right)) {
      return id_of(entries_[next_++].second);
    }
    const auto joined = py::reinterpret_steal<py::object>(PyUnicode_Concat(left, right));
    if (!joined) throw py::error_already_set();
    const std::uint32_t id = id_in(vocab_, joined.ptr());
    if (id != kNoId) next_ = std::size_t{id} + 1;  // the position of the token, if ids have no holes
    return id;
  }

 private:
  static bool is_joined(PyObject* token, PyObject* left, PyObject* right) {
    const py::ssize_t left_size = PyUnicode_GET_LENGTH(left);
    return PyUnicode_GET_LENGTH(token) == left_size + PyUnicode_GET_LENGTH(right) &&
           PyUnicode_Tailmatch(token, left, 0, left_size, -1) == 1 &&
           PyUnicode_Tailmatch(token, right, left_size, PY_SSIZE_T_MAX, -1) == 1;
  }

  const py::dict& vocab_;
  std::vector<std::pair<PyObject*, PyObject*>> entries_;  // borrowed from the vocabulary
  std::size_t next_ = 0;
};

/// The ids of each merge, up to the first of which a token is not in the vocabulary.
inline std::vector<MergeRow> merge_ids(const py::dict& vocab, const py::sequence& merges,
                                       const py::str& prefix) {
  const auto items = py::reinterpret_steal<py::object>(
      PySequence_Fast(merges.ptr(), "merges must be a sequence"));
  if (!items) throw py::error_already_set();
  const py::ssize_t prefix_size = PyUnicode_GET_LENGTH(prefix.ptr());
  JoinedIds joined_ids(vocab);
  std::vector<MergeRow> rows;
  const py::ssize_t count = PySequence_Fast_GET_SIZE(items.ptr());
  rows.reserve(static_cast<std::size_t>(count));
  for (py::ssize_t i = 0; i < count; ++i) {
    PyObject* const merge = PySequence_Fast_GET_ITEM(items.ptr(), i);
    if (!PyTuple_Check(merge) || PyTuple_GET_SIZE(merge) != 2) {
      throw std::invalid_argument("a merge must be a pair");
    }
    PyObject* const left = PyTuple_GET_ITEM(merge, 0);
    PyObject* const right = PyTuple_GET_ITEM(merge, 1);
    const std::uint32_t left_id = id_in(vocab, left);
    const std::uint32_t right_id = left_id == kNoId ? kNoId : id_in(vocab, right);
    if (right_id == kNoId) break;
    auto rest = py::reinterpret_borrow<py::object>(right);
    if (prefix_size > 0 && PyUnicode_Tailmatch(right, prefix.ptr(), 0, PY_SSIZE_T_MAX, -1) == 1) {
      rest = py::reinterpret_steal<py::object>(
          PyUnicode_Substring(right, prefix_size, PyUnicode_GET_LENGTH(right)));
    }
    const std::uint32_t joined_id = joined_ids.find(left, rest.ptr());
    if (joined_id == kNoId) break;
    rows.push_back({left_id, right_id, joined_id});
  }
  return rows;
}

}  // namespace bpe_beam
