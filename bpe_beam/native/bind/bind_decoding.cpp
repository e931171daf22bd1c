// Binds ids to bytes, and the readers of ids and texts in Python objects.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/py_tokens.hpp"
#include "bind/subjects.hpp"
#include "encode/byte_level.hpp"
#include "encode/token_bytes.hpp"
#include "text/utf8_check.hpp"

namespace bpe_beam {
namespace {

/// Return (bytes, int64 offsets of the texts in them), or None if an id has no token or another
/// thread changes the ids meanwhile. kBehind bytes follow the last text.
py::object decode_batch(const TokenBytes& tokens, const InputArray<std::uint32_t>& ids,
                        const InputArray<std::int64_t>& offsets) {
  const auto all = span_of(ids);
  const auto bounds = checked_offsets(offsets, all.size());
  const auto ids_at = [&](std::size_t text) {
    const auto begin = static_cast<std::size_t>(bounds[text]);
    return all.subspan(begin, static_cast<std::size_t>(bounds[text + 1]) - begin);
  };
  std::vector<std::int64_t> ends{0};
  {
    const py::gil_scoped_release release;
    ends.reserve(bounds.size());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const std::optional<std::size_t> size = tokens.size_of(ids_at(i));
      if (!size) break;
      ends.push_back(ends.back() + static_cast<std::int64_t>(*size));
    }
  }
  if (ends.size() < bounds.size()) return py::none();
  const auto size = ends.back() + static_cast<std::int64_t>(TokenBytes::kBehind);
  const auto data = py::steal<py::object>(PyBytes_FromStringAndSize(nullptr, size));
  if (!data) throw py::python_error();
  char* const begin = PyBytes_AsString(data.ptr());
  bool joined = true;
  {
    const py::gil_scoped_release release;
    for (std::size_t i = 0; joined && i + 1 < bounds.size(); ++i) {
      char* const end = begin + ends[i + 1];
      joined = tokens.join(ids_at(i), begin + ends[i], end + TokenBytes::kBehind) == end;
    }
    std::fill_n(begin + ends.back(), TokenBytes::kBehind, '\0');
  }
  if (!joined) return py::none();
  return py::make_tuple(data, as_array(std::move(ends)));
}

/// The ids in lists of int, and the offset of each list's first id; None if a row is not a list, or
/// has anything but int from 0 to 2^32 - 1.
py::object ids_of_lists(const py::list& rows) {
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> offsets{0};
  offsets.reserve(rows.size() + 1);
  for (const py::handle row : rows) {
    if (PyList_CheckExact(row.ptr()) == 0) return py::none();
    for (const py::handle item : py::borrow<py::list>(row)) {
      if (PyLong_CheckExact(item.ptr()) == 0) return py::none();
      int overflow = 0;
      const long long id = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
      if (overflow != 0 || id < 0 || id > std::numeric_limits<std::uint32_t>::max()) {
        return py::none();
      }
      ids.push_back(static_cast<std::uint32_t>(id));
    }
    offsets.push_back(static_cast<std::int64_t>(ids.size()));
  }
  return py::make_tuple(as_array(std::move(ids)), as_array(std::move(offsets)));
}

/// The bytes of tokens in the byte-level alphabet; for other tokens, the bytes of their texts.
/// `replaced` has the bytes of tokens with different bytes.
TokenBytes token_bytes(const py::dict& tokens, const py::dict& replaced) {
  const ByteLevelAlphabet alphabet;
  TokenIds ids;
  ids.reserve(tokens.size() + replaced.size());
  for (const auto& [id, token] : tokens) {
    std::string bytes = utf8_of(token.ptr());
    static_cast<void>(alphabet.to_bytes(bytes));
    ids.emplace_back(std::move(bytes), id_of(id.ptr()));
  }
  for (const auto& [id, bytes] : replaced) {
    ids.emplace_back(py::cast<std::string>(bytes), id_of(id.ptr()));
  }
  return TokenBytes(ids);
}

bool texts_are_utf8_bytes(const Buffer& data, const InputArray<std::int64_t>& offsets) {
  const std::string_view bytes = bytes_of(data);
  const auto bounds = checked_offsets(offsets, bytes.size());
  const py::gil_scoped_release release;
  return texts_are_utf8(bytes, bounds);
}

}  // namespace

void bind_decoding(py::module_& m) {
  using namespace py::literals;
  m.def("texts_are_utf8", &texts_are_utf8_bytes, "data"_a, "offsets"_a,
        "Return whether each text data[offsets[i]:offsets[i + 1]] is well-formed UTF-8.");

  m.def("ids_of_lists", &ids_of_lists, "rows"_a,
        "The ids in lists of int, uint32[ids], and the offsets of each list's first one, "
        "int64[rows + 1]; None if there is anything else in them, or beyond 32 bits.");

  py::class_<TokenBytes>(m, "TokenBytes", "Ids to the joined bytes of their tokens.")
      .def(
          "__init__",
          [](TokenBytes* self, const py::dict& tokens, const py::dict& replaced) {
            new (self) TokenBytes(token_bytes(tokens, replaced));
          },
          "tokens"_a, "replaced"_a,
          "`tokens`: a str by id, in the byte-level alphabet or as they are; `replaced`: bytes by "
          "id.")
      .def("decode_batch", &decode_batch, "ids"_a, "offsets"_a,
           "The bytes of many texts and their int64 offsets, or None if an id has no token.");
}

}  // namespace bpe_beam
