// Binds records.hpp, jsonl.hpp and csv.hpp. The GIL is released while a window is read.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "read/csv.hpp"
#include "read/jsonl.hpp"
#include "read/records.hpp"

namespace bpe_beam {
namespace {

Array strings_as_array(Strings& strings) {
  const auto size = static_cast<Py_intptr_t>(strings.bytes().size());
  char* const bytes = strings.release_bytes().release();
  const py::capsule owner(bytes, [](void* held) noexcept { delete[] static_cast<char*>(held); });
  return py::steal<Array>(new_array(type_number<std::uint8_t>(), {size}, bytes, owner));
}

/// (text, text ends, ids, id ends, has id or empty, sources, source ends, starts, bad rows, start,
/// search, records)
py::tuple as_tuple(Records&& records) {
  std::vector<std::int64_t> rows;
  rows.reserve(5 * records.bad.size());
  for (const BadRecord& bad : records.bad) {
    rows.insert(rows.end(), {bad.begin, bad.end, bad.flaw, bad.position, bad.index});
  }
  return py::make_tuple(strings_as_array(records.text), as_array(records.text.release_offsets()),
                        strings_as_array(records.ids), as_array(records.ids.release_offsets()),
                        as_array(std::move(records.has_id)), strings_as_array(records.sources),
                        as_array(records.sources.release_offsets()),
                        as_array(std::move(records.starts)), as_array(std::move(rows), 5),
                        records.reached.start, records.reached.search, records.reached.records);
}

Cut checked_cut(std::span<const char> data, std::size_t start, std::size_t search, std::size_t stop,
                bool final, std::size_t max_records, std::size_t max_bytes) {
  if (start > data.size() || max_records == 0) {
    throw std::invalid_argument("start must be within the data, and max_records at least 1");
  }
  return {start, search, stop, final, max_records, max_bytes};
}

py::tuple text_records_of(const Buffer& data, const std::string& separator, std::size_t start,
                          std::size_t search, std::size_t stop, bool final, std::size_t max_records,
                          std::size_t max_bytes, const std::optional<std::string>& id_prefix,
                          std::uint64_t base) {
  const std::span<const char> bytes = bytes_of(data);
  const Cut cut = checked_cut(bytes, start, search, stop, final, max_records, max_bytes);
  if (valid_utf8_prefix(separator) < separator.size()) {
    throw std::invalid_argument("separator must be UTF-8");
  }
  Records records;
  {
    const py::gil_scoped_release release;
    records = text_records(bytes, separator, cut, id_prefix, base);
  }
  return as_tuple(std::move(records));
}

py::tuple jsonl_records_of(const Buffer& data, std::size_t start, std::size_t search,
                           std::size_t stop, bool final, std::size_t max_records,
                           std::size_t max_bytes, const std::vector<std::string>& text,
                           const std::vector<std::string>& id,
                           const std::vector<std::string>& source,
                           const std::string& other_source) {
  if (std::max({text.size(), id.size(), source.size()}) > kMaxPathDepth) {
    throw std::invalid_argument("a field path must have at most 16 names");
  }
  const std::span<const char> bytes = bytes_of(data);
  const Cut cut = checked_cut(bytes, start, search, stop, final, max_records, max_bytes);
  Records records;
  {
    const py::gil_scoped_release release;
    records = jsonl_records(bytes, cut, {text, id, source, other_source});
  }
  return as_tuple(std::move(records));
}

py::tuple csv_records_of(const Buffer& data, std::size_t start, std::size_t stop, bool final,
                         std::size_t max_records, std::size_t max_bytes, char delimiter,
                         std::size_t columns, const std::array<std::int64_t, 3>& taken,
                         const std::string& other_source) {
  const std::span<const char> bytes = bytes_of(data);
  const Cut cut = checked_cut(bytes, start, start, stop, final, max_records, max_bytes);
  CsvColumns wanted{delimiter, columns, {}, other_source};
  for (std::size_t i = 0; i < taken.size(); ++i)
    wanted.taken[i] = taken[i] < 0 ? kNotFound : static_cast<std::size_t>(taken[i]);
  Records records;
  {
    const py::gil_scoped_release release;
    records = csv_records(bytes, cut, wanted);
  }
  return as_tuple(std::move(records));
}

/// (the fields of the record that begins at `start`, the begin of the next record); None if the
/// record is not complete, or if its quotes are invalid.
py::object csv_fields_of(const Buffer& data, std::size_t start, bool final, char delimiter) {
  const std::span<const char> bytes = bytes_of(data);
  if (start > bytes.size()) throw std::invalid_argument("start must be within the data");
  py::list fields;
  const auto record =
      read_csv_record(bytes, start, final, delimiter, [&](std::size_t, const CsvField& field) {
        Strings text(field.raw.size());
        field.append_to(text);
        fields.append(py::bytes(text.bytes().data(), text.bytes().size()));
      });
  if (!record || record->flaw != Flaw::kNone) return py::none();
  return py::make_tuple(fields, record->next);
}

std::int64_t find_csv_record_of(const Buffer& data, std::size_t start, bool final, char delimiter,
                                std::size_t columns) {
  const std::span<const char> bytes = bytes_of(data);
  std::size_t position = kNotFound;
  {
    const py::gil_scoped_release release;
    position = find_csv_record(bytes, start, final, delimiter, columns);
  }
  return position == kNotFound ? -1 : static_cast<std::int64_t>(position);
}

py::tuple separator_end_of(const Buffer& data, const std::string& separator, std::size_t search,
                           std::size_t at_least) {
  const std::span<const char> bytes = bytes_of(data);
  if (separator.empty()) throw std::invalid_argument("separator must not be empty");
  SeparatorEnd separator_end{};
  {
    const py::gil_scoped_release release;
    separator_end = first_separator_end(bytes, separator, search, at_least);
  }
  const auto end = separator_end.end == kNotFound ? std::int64_t{-1}
                                                  : static_cast<std::int64_t>(separator_end.end);
  return py::make_tuple(end, separator_end.search);
}

std::int64_t last_gap_of(const Buffer& data, const std::string& separator) {
  const std::span<const char> bytes = bytes_of(data);
  std::size_t gap = kNotFound;
  {
    const py::gil_scoped_release release;
    gap = last_gap(bytes, separator);
  }
  return gap == kNotFound ? -1 : static_cast<std::int64_t>(gap);
}

}  // namespace

void bind_records(py::module_& m) {
  using namespace py::literals;
  py::list flaws;
  for (const std::string_view name : kFlawNames) flaws.append(std::string(name));
  m.attr("RECORD_FLAWS") = py::tuple(flaws);
  m.attr("MAX_JSON_DEPTH") = kMaxJsonDepth;
  m.attr("MAX_PATH_DEPTH") = kMaxPathDepth;
  m.def("text_records", &text_records_of, "data"_a, "separator"_a, "start"_a, "search"_a, "stop"_a,
        "final"_a, "max_records"_a, "max_bytes"_a, "id_prefix"_a, "base"_a,
        "Splits a window at a separator (empty: one record). Returns (text uint8[], its ends "
        "int64[n + 1], ids uint8[], their ends int64[n + 1] (without a prefix none: [1]), has id "
        "uint8[0], sources uint8[0], their ends int64[1], starts int64[n], bad int64[k, 5]: begin, "
        "end, flaw, position, index; and where to go on: start, search; records passed).");
  m.def("jsonl_records", &jsonl_records_of, "data"_a, "start"_a, "search"_a, "stop"_a, "final"_a,
        "max_records"_a, "max_bytes"_a, "text"_a, "id"_a, "source"_a, "other_source"_a,
        "The same for lines of JSON, of fields by their paths (an empty one: no such field): has "
        "id uint8[n]; the sources; blank lines count as records passed only.");
  m.def("csv_records", &csv_records_of, "data"_a, "start"_a, "stop"_a, "final"_a, "max_records"_a,
        "max_bytes"_a, "delimiter"_a, "columns"_a, "taken"_a, "other_source"_a,
        "The same for CSV of so many columns; `taken` are the numbers of those with text, id and "
        "source, or -1. The position of a wrong number of columns is that number.");
  m.def("csv_fields", &csv_fields_of, "data"_a, "start"_a, "final"_a, "delimiter"_a,
        "(fields of the record that begins at `start`, where the next begins), or None if it is "
        "not complete.");
  m.def("find_csv_record", &find_csv_record_of, "data"_a, "start"_a, "final"_a, "delimiter"_a,
        "columns"_a,
        "The speculative start of a record after a newline at `start` or later; -1 if there is "
        "none, or if deciding needs more data.");
  m.def("separator_end", &separator_end_of, "data"_a, "separator"_a, "search"_a, "at_least"_a,
        "Left to right from `search`: (the first end of a separator at or after `at_least`, or "
        "-1; where to go on).");
  m.def("last_gap", &last_gap_of, "data"_a, "separator"_a,
        "The last position that no occurrence of `separator` (2 bytes or more) crosses, or -1.");
}

}  // namespace bpe_beam
