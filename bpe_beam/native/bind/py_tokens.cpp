// See py_tokens.hpp.
#include "bind/py_tokens.hpp"

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/py_str.hpp"
#include "encode/byte_level.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

/// The UTF-8 of a str. PyUnicode_AsUTF8 is not used, because Python would cache its result and
/// store each token twice.
std::string utf8_of(PyObject* text) {
  if (!PyUnicode_Check(text)) throw std::invalid_argument("a token must be a str");
  if (const StrMemory memory = StrMemory::of(text); memory.form == StrMemory::kUtf8) {
    return {static_cast<const char*>(memory.data), memory.size};
  }
  const auto bytes = py::steal<py::bytes>(PyUnicode_AsUTF8String(text));
  if (!bytes.is_valid()) throw py::python_error();
  return std::string(bytes_of(bytes));
}

std::uint32_t id_of(PyObject* number) {
  const unsigned long id = PyLong_AsUnsignedLong(number);
  if (id == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) {
    throw py::python_error();
  }
  if (id >= kNoId) throw std::invalid_argument("an id must be below 2^32 - 1");
  return static_cast<std::uint32_t>(id);
}

/// Returns whether a vocabulary needs no explanation: its tokens are str and not empty, and its ids
/// are ascending int from 0 to `max_id`.
bool is_plain_vocab(const py::dict& vocab, long max_id) {
  PyObject *token = nullptr, *id = nullptr;
  long last = -1;
  for (Py_ssize_t at = 0; PyDict_Next(vocab.ptr(), &at, &token, &id) != 0;) {
    if (!PyUnicode_Check(token) || PyUnicode_GetLength(token) == 0) return false;
    if (!PyLong_CheckExact(id)) return false;
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(id, &overflow);
    if (overflow != 0 || value <= last || value > max_id) return false;
    last = value;
  }
  return true;
}

/// Tokens from a dict of ids by str, or from pairs of (bytes, id).
TokenIds token_ids(const py::object& tokens) {
  if (!PyDict_Check(tokens.ptr())) return py::cast<TokenIds>(tokens);
  TokenIds ids;
  ids.reserve(static_cast<std::size_t>(PyDict_Size(tokens.ptr())));
  PyObject *token = nullptr, *id = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(tokens.ptr(), &at, &token, &id) != 0;) {
    ids.emplace_back(utf8_of(token), id_of(id));
  }
  return ids;
}

/// As `token_ids`, but the tokens of a dict are converted from the byte-level alphabet to bytes;
/// tokens outside of the alphabet are left out.
TokenIds byte_token_ids(const py::object& tokens) {
  TokenIds ids = token_ids(tokens);
  if (!PyDict_Check(tokens.ptr())) return ids;
  const ByteLevelAlphabet alphabet;
  std::erase_if(ids, [&](auto& entry) { return !alphabet.to_bytes(entry.first); });
  return ids;
}

/// Item i of a list or a tuple, borrowed.
PyObject* item_of(PyObject* items, Py_ssize_t i) {
  return PyList_Check(items) ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i);
}

/// Adds a merge: a list or tuple of two str, or one str with one space. Returns false for anything
/// else.
bool add_merge(PyMerges& merges, PyObject* merge) {
  if (PyUnicode_Check(merge)) return merges.add_spaced(merges.keep(utf8_of(merge)));
  if (!PyList_Check(merge) && !PyTuple_Check(merge)) return false;
  if (PySequence_Size(merge) != 2) return false;
  PyObject* const left = item_of(merge, 0);
  PyObject* const right = item_of(merge, 1);
  if (!PyUnicode_Check(left) || !PyUnicode_Check(right)) return false;
  const std::string_view first = merges.keep(utf8_of(left));
  return merges.add(first, merges.keep(utf8_of(right)));
}

/// The merges of a sequence, up to the first item that is not a merge.
PyMerges merges_of(const py::sequence& items) {
  PyMerges merges;
  const auto fast =
      py::steal<py::object>(PySequence_Fast(items.ptr(), "merges must be a sequence"));
  if (!fast) throw py::python_error();
  const Py_ssize_t count = PySequence_Size(fast.ptr());
  for (Py_ssize_t i = 0; i < count; ++i) {
    const std::size_t before = merges.pairs.size();
    if (!add_merge(merges, item_of(fast.ptr(), i))) {
      merges.pairs.resize(before);
      break;
    }
  }
  return merges;
}

/// The ids of each merge, up to the first merge with a token outside the vocabulary.
std::vector<MergeRow> merge_ids(const py::dict& vocab, const PyMerges& merges,
                                std::string_view prefix) {
  const TokenIds tokens = token_ids(vocab);
  const TokenMap ids(tokens);
  std::vector<MergeRow> rows;
  rows.reserve(merges.pairs.size());
  std::size_t next = 0;
  std::string joined;
  for (const auto& [left, right] : merges.pairs) {
    const std::uint32_t left_id = ids.find(left);
    const std::uint32_t right_id = ids.find(right);
    if (left_id == kNoId || right_id == kNoId) break;
    joined.assign(left);
    joined += right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    // Most files list the tokens in the order of the merges that make them.
    const bool is_next = next < tokens.size() && tokens[next].first == joined;
    const std::uint32_t joined_id = is_next ? tokens[next].second : ids.find(joined);
    if (joined_id == kNoId) break;
    next = is_next ? next + 1 : std::size_t{joined_id} + 1;  // its position, if ids have no holes
    rows.push_back({left_id, right_id, joined_id});
  }
  return rows;
}

}  // namespace bpe_beam
