// Vocabularies and merges from Python: dicts of ids by token, and pairs of tokens.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "encode/bpe_merges.hpp"
#include "encode/word_model.hpp"

namespace bpe_beam {

/// The UTF-8 of a str. PyUnicode_AsUTF8 is not used, because Python would cache its result and
/// store each token twice.
std::string utf8_of(PyObject* text);

std::uint32_t id_of(PyObject* number);

/// Returns whether a vocabulary needs no explanation: its tokens are str and not empty, and its ids
/// are ascending int from 0 to `max_id`.
bool is_plain_vocab(const py::dict& vocab, long max_id);

/// Tokens from a dict of ids by str, or from pairs of (bytes, id).
TokenIds token_ids(const py::object& tokens);

/// As `token_ids`, but the tokens of a dict are converted from the byte-level alphabet to bytes;
/// tokens outside of the alphabet are left out.
TokenIds byte_token_ids(const py::object& tokens);

/// Merges as a Python sequence of pairs of str. Each pair is made on request: a list of all pairs
/// would take ten times the size of the file, and encoding needs none.
struct PyMerges {
  PyMerges() = default;
  PyMerges(const PyMerges&) = delete;
  PyMerges& operator=(const PyMerges&) = delete;
  PyMerges(PyMerges&&) = default;
  PyMerges& operator=(PyMerges&&) = default;
  ~PyMerges() = default;

  std::vector<std::pair<std::string_view, std::string_view>> pairs;  // UTF-8
  std::deque<std::string> texts;  // the tokens that are not parts of `source`
  py::object source;              // bytes

  /// Adds a merge that was written as one string; false if it is not two tokens with one space.
  bool add_spaced(std::string_view merge) {
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos) return false;
    return add(merge.substr(0, space), merge.substr(space + 1)) &&
           pairs.back().second.find(' ') == std::string_view::npos;
  }

  bool add(std::string_view left, std::string_view right) {
    pairs.emplace_back(left, right);
    return !left.empty() && !right.empty();
  }

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

/// The merges of a sequence, up to the first item that is not a merge.
PyMerges merges_of(const py::sequence& items);

/// The ids of merges, as a Python object.
struct PyMergeIds {
  std::vector<MergeRow> rows;
};

/// The ids of each merge, up to the first merge with a token outside the vocabulary.
std::vector<MergeRow> merge_ids(const py::dict& vocab, const PyMerges& merges,
                                std::string_view prefix);

}  // namespace bpe_beam
