// Bindings of the records of shards.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "shards/array_records.hpp"
#include "shards/id_dictionary.hpp"
#include "shards/stored_ids.hpp"
#include "shards/tf_records.hpp"

namespace bpe_beam {

/// About the bytes of the records of some documents, or more: what is not used costs nothing.
inline std::size_t expected_bytes(std::span<const std::uint32_t> ids,
                                  std::span<const std::int64_t> bounds) {
  constexpr std::size_t kId = 3;
  constexpr std::size_t kAroundIds = 80;
  return kId * ids.size() + kAroundIds * bounds.size();
}

inline py::array_t<std::uint8_t> tf_records(const InputArray<std::uint32_t>& ids,
                                            const InputArray<std::int64_t>& offsets) {
  const auto values = span_of(ids);
  const auto bounds = checked_offsets(offsets, values.size());
  std::vector<std::uint8_t> records;
  {
    const py::gil_scoped_release released;
    records.reserve(expected_bytes(values, bounds));
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto start = static_cast<std::size_t>(bounds[i]);
      append_tf_record(values.subspan(start, static_cast<std::size_t>(bounds[i + 1]) - start),
                       records);
    }
  }
  return as_array(std::move(records));
}

inline std::span<const std::uint8_t> byte_span_of(const py::buffer_info& info) {
  const auto bytes = bytes_of(info);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

inline py::tuple read_tf_records_of(const py::buffer& data) {
  const py::buffer_info info = data.request();
  const auto bytes = byte_span_of(info);
  TfRecords found;
  {
    const py::gil_scoped_release released;
    found = read_tf_records(bytes);
  }
  return py::make_tuple(as_array(std::move(found.ids)), as_array(std::move(found.lengths)),
                        as_array(std::move(found.ends)), found.needed,
                        static_cast<std::int64_t>(found.flaw));
}

/// A position in an ArrayRecord file; throws std::invalid_argument if no chunk can begin there.
inline std::uint64_t chunk_position(std::int64_t position) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  if (position < 0 || position > kMax || !is_chunk_begin(static_cast<std::uint64_t>(position))) {
    throw std::invalid_argument("position must be one where a chunk can begin, got " +
                                std::to_string(position));
  }
  return static_cast<std::uint64_t>(position);
}

inline py::tuple array_records(const InputArray<std::uint32_t>& ids,
                               const InputArray<std::int64_t>& offsets, std::int64_t position) {
  const auto values = span_of(ids);
  const auto bounds = checked_offsets(offsets, values.size());
  ArrayRecordAppender records(chunk_position(position), expected_bytes(values, bounds));
  ArrayRecordBytes made;
  {
    const py::gil_scoped_release released;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto start = static_cast<std::size_t>(bounds[i]);
      records.add(values.subspan(start, static_cast<std::size_t>(bounds[i + 1]) - start));
    }
    made = std::move(records).take();
  }
  return py::make_tuple(as_array(std::move(made.bytes)), as_array(std::move(made.begins)),
                        as_array(std::move(made.sizes)));
}

inline py::tuple read_array_records_of(const py::buffer& data, std::int64_t position) {
  const py::buffer_info info = data.request();
  const auto bytes = byte_span_of(info);
  const std::uint64_t first = chunk_position(position);
  ArrayRecords found;
  {
    const py::gil_scoped_release released;
    found = read_array_records(bytes, first);
  }
  return py::make_tuple(as_array(std::move(found.ids)), as_array(std::move(found.lengths)),
                        as_array(std::move(found.begins)), as_array(std::move(found.sizes)),
                        found.end, static_cast<std::int64_t>(found.flaw));
}

/// An `ArrayRecordTail` that holds its rows.
class BoundArrayRecordTail {
 public:
  explicit BoundArrayRecordTail(InputArray<std::int64_t> rows)
      : held_(std::move(rows)), tail_(checked(held_)) {}

  py::array_t<std::uint8_t> next() {
    std::vector<std::uint8_t> bytes;
    {
      const py::gil_scoped_release released;
      bytes = tail_.next();
    }
    return as_array(std::move(bytes));
  }

 private:
  static std::span<const std::int64_t> checked(const InputArray<std::int64_t>& rows) {
    constexpr auto kColumns = static_cast<py::ssize_t>(ArrayRecordTail::kColumns);
    if (rows.ndim() != 2 || rows.shape(1) != kColumns || rows.shape(0) == 0) {
      throw std::invalid_argument("rows must be int64[records + 1, 3]");
    }
    chunk_position(rows.at(rows.shape(0) - 1, 1));
    return span_of(rows);
  }

  InputArray<std::int64_t> held_;
  ArrayRecordTail tail_;
};

inline void bind_array_records(py::module_& m) {
  m.def("array_records", &array_records, py::arg("ids"), py::arg("offsets"), py::arg("position"));
  m.def("read_array_records", &read_array_records_of, py::arg("data"), py::arg("position"));
  m.def("array_record_start", [] { return as_array(array_record_start()); });
  m.def(
      "array_record_index",
      [](const py::buffer& last_block) {
        const py::buffer_info info = last_block.request();
        return array_record_index(byte_span_of(info));
      },
      py::arg("last_block"));
  py::class_<BoundArrayRecordTail>(m, "ArrayRecordTail")
      .def(py::init<InputArray<std::int64_t>>(), py::arg("rows"))
      .def("next", &BoundArrayRecordTail::next);
  py::class_<ArrayRecordIndexReader>(m, "ArrayRecordIndexReader")
      .def(py::init([](std::int64_t begin) {
             return ArrayRecordIndexReader(chunk_position(begin));
           }),
           py::arg("begin"))
      .def(
          "add",
          [](ArrayRecordIndexReader& reader, const py::buffer& data) {
            const py::buffer_info info = data.request();
            std::vector<std::int64_t> positions;
            std::vector<std::int64_t> sizes;
            const bool good = reader.add(byte_span_of(info), positions, sizes);
            return py::make_tuple(as_array(std::move(positions)), as_array(std::move(sizes)), good);
          },
          py::arg("data"))
      .def("done", &ArrayRecordIndexReader::done);
  m.attr("CHUNK_CUT") = static_cast<std::int64_t>(ChunkFlaw::kCut);
  m.attr("CHUNK_FLAWS") = py::make_tuple(
      "", "it is cut off", "the checksum of its head does not match",
      "the head of a block in it does not match", "its checksum does not match",
      "it is no Example with one list input_ids, as this format has it");
}

/// `StoredIds` that holds its arrays.
class BoundStoredIds {
 public:
  BoundStoredIds(py::array ids, InputArray<std::uint8_t> bounds, std::size_t unit,
                 bool without_first, bool without_last)
      : held_ids_(InputArray<std::uint8_t>(ids.attr("view")("uint8"))),
        held_bounds_(std::move(bounds)),
        stored_(span_of(held_ids_), kind_of(ids.dtype()), span_of(held_bounds_), unit,
                without_first, without_last),
        uint32_(py::dtype::of<std::uint32_t>()),
        int64_(py::dtype::of<std::int64_t>()) {}

  /// A new array of the type with this number; None if the document or the type is another case.
  py::object document(std::int64_t index, int type) const {
    if (index < 0) return py::none();
    const auto range = stored_.document(static_cast<std::size_t>(index));
    if (!range) return py::none();
    if (type == uint32_.num()) return copied<std::uint32_t>(*range, uint32_);
    if (type == int64_.num()) return copied<std::int64_t>(*range, int64_);
    return py::none();
  }

 private:
  /// From this number of ids on, other threads run while the ids are copied.
  static constexpr std::size_t kLong = 4096;

  static IdKind kind_of(const py::dtype& type) {
    const auto size = type.itemsize();
    if (type.kind() == 'u' && size == 1) return IdKind::kUint8;
    if (type.kind() == 'u' && size == 2) return IdKind::kUint16;
    if (type.kind() == 'u' && size == 4) return IdKind::kUint32;
    if (type.kind() == 'i' && size == 4) return IdKind::kInt32;
    throw std::invalid_argument("ids must be uint8, uint16, uint32 or int32");
  }

  template <typename To>
  py::array copied(StoredIds::Range range, const py::dtype& type) const {
    // Without the vectors that py::array makes of a shape.
    const auto& numpy = py::detail::npy_api::get();
    const auto size = static_cast<Py_intptr_t>(range.count);
    auto made = py::reinterpret_steal<py::array>(
        numpy.PyArray_NewFromDescr_(numpy.PyArray_Type_, py::dtype(type).release().ptr(), 1, &size,
                                    nullptr, nullptr, 0, nullptr));
    if (!made) throw py::error_already_set();
    auto* const out = static_cast<To*>(made.mutable_data());
    if (range.count >= kLong) {
      const py::gil_scoped_release released;
      stored_.copy(range, out);
    } else {
      stored_.copy(range, out);
    }
    return made;
  }

  InputArray<std::uint8_t> held_ids_;
  InputArray<std::uint8_t> held_bounds_;
  StoredIds stored_;
  py::dtype uint32_;
  py::dtype int64_;
};

inline void bind_id_dictionary(py::module_& m) {
  py::class_<IdDictionary>(m, "IdDictionary")
      .def(py::init<>())
      .def(
          "add",
          [](IdDictionary& dictionary, const InputArray<std::uint32_t>& ids) {
            const auto values = span_of(ids);
            const py::gil_scoped_release released;
            dictionary.add(values);
          },
          py::arg("ids"))
      .def("ids",
           [](const IdDictionary& dictionary) {
             const auto ids = dictionary.ids();
             return as_array(std::vector<std::uint32_t>(ids.begin(), ids.end()));
           })
      .def("width", &IdDictionary::width)
      .def(
          "take",
          [](IdDictionary& dictionary, const py::bytes& head) {
            const auto before = static_cast<std::string_view>(head);
            std::vector<std::uint8_t> page;
            {
              const py::gil_scoped_release released;
              page = dictionary.take(before);
            }
            return as_array(std::move(page));
          },
          py::arg("head"));
}

inline void bind_shards(py::module_& m) {
  py::class_<BoundStoredIds>(m, "StoredIds")
      .def(py::init<py::array, InputArray<std::uint8_t>, std::size_t, bool, bool>(), py::arg("ids"),
           py::arg("bounds"), py::kw_only(), py::arg("unit"), py::arg("without_first"),
           py::arg("without_last"))
      .def("document", &BoundStoredIds::document, py::arg("index"), py::arg("type"));
  m.def("tf_records", &tf_records, py::arg("ids"), py::arg("offsets"));
  m.def("read_tf_records", &read_tf_records_of, py::arg("data"));
  m.attr("TF_RECORD_FLAWS") =
      py::make_tuple("", "the checksum of its length does not match", "its checksum does not match",
                     "it is no Example with one list input_ids, as this format has it");
  bind_array_records(m);
  bind_id_dictionary(m);
}

}  // namespace bpe_beam
