// Binds json_reader.hpp for tokenizer files: JSON to Python objects, and vocabularies to ids.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/py_text.hpp"
#include "bind/py_tokens.hpp"
#include "bind/subjects.hpp"
#include "read/json_reader.hpp"
#include "read/json_string.hpp"
#include "text/utf8_check.hpp"
#include "text/utf8_writer.hpp"

namespace bpe_beam {
namespace {

/// Pauses Python's garbage collector, which visits all objects repeatedly while many are made; none
/// of the objects made here is garbage.
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

/// Makes the objects that Python's `json` would make. It refuses a text whose error needs an
/// explanation: a key that occurs twice, half a surrogate pair, a string that is not UTF-8, a
/// number of many digits.
///
/// The list `model.merges` becomes a PyMerges; an invalid merge needs an explanation, too.
class PythonJson {
 public:
  /// Reads from `source`, bytes, which the merges keep alive.
  explicit PythonJson(py::object source) : source_(std::move(source)) {}

  bool begin_object() { return !in_merges_ && push(py::steal<py::object>(PyDict_New()), true); }

  bool begin_array() {
    if (in_merges_) return !std::exchange(in_pair_, true);
    if (!at_merges()) return push(py::steal<py::object>(PyList_New(0)), false);
    in_merges_ = true;
    merges_ = PyMerges();
    merges_.source = source_;
    return true;
  }

  bool end_object() { return pop(); }

  bool end_array() {
    if (!in_merges_) return pop();
    if (in_pair_) {
      in_pair_ = false;
      const bool is_pair = pair_.size() == 2 && merges_.add(pair_[0], pair_[1]);
      pair_.clear();
      return is_pair;
    }
    in_merges_ = false;
    return add(py::cast(std::move(merges_)));
  }

  bool key(const JsonString& string) {
    keys_.back() = text_of(string);
    return static_cast<bool>(keys_.back());
  }

  bool string(const JsonString& string) {
    if (!in_merges_) return add(text_of(string));
    std::string_view token = string.raw;
    if (string.escaped) {
      Strings resolved(string.raw.size());
      if (!append_unescaped(string, resolved)) return false;
      token = merges_.keep(std::string(resolved.bytes()));
    }
    if (valid_utf8_prefix(token) != token.size()) return false;
    if (!in_pair_) return merges_.add_spaced(token);
    pair_.push_back(token);
    return true;
  }

  bool number(std::string_view digits) {
    if (in_merges_) return false;
    std::int64_t integer = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), integer);
    if (error == std::errc() && end == digits.data() + digits.size()) {
      return add(py::steal<py::object>(PyLong_FromLongLong(integer)));
    }
    if (digits.find_first_of(".eE") == std::string_view::npos || digits.size() > kLongestNumber) {
      return false;
    }
    const double value = PyOS_string_to_double(std::string(digits).c_str(), nullptr, nullptr);
    return add(py::steal<py::object>(PyFloat_FromDouble(value)));
  }

  bool literal(char first) {
    if (in_merges_) return false;
    if (first == 'n') return add(py::none());
    return add(py::bool_(first == 't'));
  }

  [[nodiscard]] py::object result() { return std::move(result_); }

 private:
  static constexpr std::size_t kLongestNumber = 100;

  /// Null, and no error set, if the string is not a Unicode text.
  static py::object text_of(const JsonString& string) {
    PyObject* made = nullptr;
    if (!string.escaped) {
      made = PyUnicode_DecodeUTF8(string.raw.data(), static_cast<Py_ssize_t>(string.raw.size()),
                                  nullptr);
    } else {
      Strings resolved(string.raw.size());
      if (append_unescaped(string, resolved)) {
        const std::string_view bytes = resolved.bytes();
        made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), nullptr);
      }
    }
    if (made == nullptr) PyErr_Clear();
    return py::steal<py::object>(made);
  }

  /// Whether the next value is `model.merges`.
  [[nodiscard]] bool at_merges() const {
    return keys_.size() == 2 && objects_[0] && objects_[1] && is_key(0, "model") &&
           is_key(1, "merges");
  }

  [[nodiscard]] bool is_key(std::size_t depth, const char* name) const {
    return PyUnicode_CompareWithASCIIString(keys_[depth].ptr(), name) == 0;
  }

  bool push(py::object container, bool object) {
    if (!container) throw py::python_error();
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
      if (PyList_Append(container, value.ptr()) != 0) throw py::python_error();
      return true;
    }
    const Py_ssize_t before = PyDict_Size(container);
    if (PyDict_SetItem(container, keys_.back().ptr(), value.ptr()) != 0) {
      throw py::python_error();
    }
    return PyDict_Size(container) > before;  // else the key occurs twice
  }

  py::object source_;
  py::object result_;
  PyMerges merges_;                     // while the merges are read
  std::vector<std::string_view> pair_;  // the tokens of the current merge
  bool in_merges_ = false;
  bool in_pair_ = false;
  std::vector<py::object> containers_;
  std::vector<bool> objects_;
  std::vector<py::object> keys_;  // the last key of each container that is an object
};

/// Returns what Python's `json` makes of UTF-8 JSON; NotImplemented if `json` must explain an
/// error.
py::object read_json(const py::bytes& data) {
  const CollectorPause pause;
  PythonJson made(data);
  JsonReader<PythonJson> reader(bytes_of(data), made);
  if (!reader.read()) return py::borrow<py::object>(Py_NotImplemented);
  return made.result();
}

/// The merge of a rank, counted from the end if it is negative.
py::tuple merge_at(const PyMerges& merges, Py_ssize_t rank) {
  const auto count = static_cast<Py_ssize_t>(merges.pairs.size());
  if (rank < 0) rank += count;
  if (rank < 0 || rank >= count) throw py::index_error("no merge has this rank");
  const auto& [left, right] = merges.pairs[static_cast<std::size_t>(rank)];
  return py::make_tuple(py::str(left.data(), left.size()), py::str(right.data(), right.size()));
}

/// The text of a file that is written piece by piece.
class FileText {
 public:
  explicit FileText(std::size_t expected) { text_.reserve(expected); }

  void append(std::string_view more) { text_.append(more); }

  /// Appends a string of JSON. Texts beyond ASCII stay as they are.
  void append_string(std::string_view text) {
    const std::size_t begin = text_.size();
    text_.resize(begin + kMostEscaped * text.size() + 2);
    char* at = text_.data() + begin;
    *at++ = '"';
    for (const char c : text) {
      if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') [[likely]] {
        *at++ = c;
      } else {
        at = escape(c, at);
      }
    }
    *at++ = '"';
    text_.resize(static_cast<std::size_t>(at - text_.data()));
  }

  void append_number(std::uint32_t number) {
    std::array<char, 10> digits{};
    const char* const end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    append({digits.data(), end});
  }

  [[nodiscard]] py::bytes result() const { return py::bytes(text_.data(), text_.size()); }

 private:
  static constexpr std::size_t kMostEscaped = 6;  // bytes of one byte

  static char* escape(char c, char* at) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    *at++ = '\\';
    if (const std::size_t known = kEscaped.find(c); known != std::string_view::npos) {
      *at++ = kLetters[known];
      return at;
    }
    at = std::copy_n("u00", 3, at);
    *at++ = kDigits[static_cast<unsigned char>(c) >> 4];
    *at++ = kDigits[static_cast<unsigned char>(c) & 15];
    return at;
  }

  std::string text_;
};

/// Appends the merges as an array of pairs, with the line breaks that they have in tokenizer.json.
void append_merges(const PyMerges& merges, FileText& out) {
  const char* separator = "[\n      [\n        ";
  for (const auto& [left, right] : merges.pairs) {
    out.append(separator);
    separator = "\n      ],\n      [\n        ";
    out.append_string(left);
    out.append(",\n        ");
    out.append_string(right);
  }
  out.append(merges.pairs.empty() ? "[]" : "\n      ]\n    ]");
}

/// Appends ids by token as an object, with the line breaks that they have in tokenizer.json.
void append_vocab(const py::dict& vocab, FileText& out) {
  const char* separator = "{\n      ";
  Utf8Writer writer;
  PyObject *token = nullptr, *id = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(vocab.ptr(), &at, &token, &id) != 0;) {
    out.append(separator);
    separator = ",\n      ";
    if (!PyUnicode_Check(token)) throw std::invalid_argument("a token must be a str");
    const auto text = PyText(token).utf8(writer);
    if (!text) {
      // Python's own error, which says where the lone surrogate is.
      (void)py::steal<py::object>(PyUnicode_AsUTF8String(token));
      throw py::python_error();
    }
    out.append_string(*text);
    out.append(": ");
    out.append_number(id_of(id));
  }
  out.append(vocab.empty() ? "{}" : "\n    }");
}

/// Returns the bytes of a tokenizer.json from its parts: bytes, a vocabulary, and merges.
py::bytes join_json(const py::list& parts) {
  std::size_t expected = 0;
  for (const py::handle part : parts) {
    constexpr std::size_t kEntry = 28, kMerge = 56;  // bytes, most of them spaces
    expected += PyBytes_Check(part.ptr())  ? py::len(part)
                : PyDict_Check(part.ptr()) ? kEntry * py::len(part)
                                           : kMerge * py::len(part);
  }
  FileText out(expected);
  for (const py::handle part : parts) {
    if (PyBytes_Check(part.ptr())) {
      out.append(bytes_of(py::borrow<py::bytes>(part)));
    } else if (PyDict_Check(part.ptr())) {
      append_vocab(py::borrow<py::dict>(part), out);
    } else {
      append_merges(py::cast<const PyMerges&>(part), out);
    }
  }
  return out.result();
}

}  // namespace

void bind_json(py::module_& m) {
  using namespace py::literals;
  m.def("read_json", &read_json, "data"_a,
        "Return what json.loads makes of UTF-8 JSON; NotImplemented if it may be refused.");
  m.def("is_plain_vocab", &is_plain_vocab, "vocab"_a, "max_id"_a,
        "Return whether tokens are str and not empty, and ids ascending int from 0 to max_id.");
  m.def(
      "join_json", &join_json, "parts"_a,
      "The bytes of a tokenizer.json from its parts in order: bytes, Merges, and a dict of ids by "
      "token. Merges and vocabulary get the line breaks that they have in the file's model.");
  py::class_<PyMerges>(m, "Merges", "Merges by rank: a sequence of pairs of str.")
      .def(
          "__init__",
          [](PyMerges* self, const py::sequence& merges) {
            new (self) PyMerges(merges_of(merges));
          },
          "merges"_a, "Of two str or one with a space each, up to the first that is neither.")
      .def("__len__", [](const PyMerges& merges) { return merges.pairs.size(); })
      .def("__getitem__", &merge_at, "rank"_a)
      .def(
          "__eq__", [](const PyMerges& a, const PyMerges& b) { return a.pairs == b.pairs; },
          py::is_operator())
      .def("__reduce__", [](const py::object& merges) {
        return py::make_tuple(merges.type(), py::make_tuple(py::list(merges)));
      });
  py::class_<PyMergeIds>(m, "MergeIds", "The ids of merges: left, right and joined token of each.")
      .def(
          "__init__",
          [](PyMergeIds* self, const py::dict& vocab, const py::object& merges,
             const std::string& prefix) {
            if (py::isinstance<PyMerges>(merges)) {
              new (self) PyMergeIds{merge_ids(vocab, py::cast<const PyMerges&>(merges), prefix)};
              return;
            }
            const PyMerges pairs = merges_of(py::cast<py::sequence>(merges));
            if (pairs.pairs.size() != py::len(merges)) {
              throw std::invalid_argument("a merge must be a pair");
            }
            new (self) PyMergeIds{merge_ids(vocab, pairs, prefix)};
          },
          "vocab"_a, "merges"_a, "prefix"_a,
          "Of pairs of tokens, up to the first pair of which a token is not in the vocabulary; the "
          "right token's prefix is dropped.")
      .def("__len__", [](const PyMergeIds& merges) { return merges.rows.size(); })
      .def(
          "ids",
          [](const PyMergeIds& merges) {
            std::vector<std::uint32_t> ids;
            ids.reserve(3 * merges.rows.size());
            for (const auto& [left, right, joined] : merges.rows) {
              ids.insert(ids.end(), {left, right, joined});
            }
            return as_array(std::move(ids));
          },
          "uint32[3 * merges]: the left, the right and the joined id of each.");
}

}  // namespace bpe_beam
