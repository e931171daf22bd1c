// Binds the records of shards.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "shards/id_dictionary.hpp"
#include "shards/stored_ids.hpp"
#include "shards/tf_example.hpp"
#include "shards/tf_records.hpp"

namespace bpe_beam {
namespace {

/// An estimate of the bytes of the records of some documents, or more: unused memory costs nothing.
std::size_t expected_bytes(std::span<const std::uint32_t> ids,
                           std::span<const std::int64_t> bounds) {
  constexpr std::size_t kId = 3;
  constexpr std::size_t kAroundIds = 80;
  return kId * ids.size() + kAroundIds * bounds.size();
}

Array tf_records(const InputArray<std::uint32_t>& ids, const InputArray<std::int64_t>& offsets) {
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

std::span<const std::uint8_t> byte_span_of(const Buffer& data) {
  const auto bytes = bytes_of(data);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

py::tuple read_tf_records_of(const Buffer& data) {
  const auto bytes = byte_span_of(data);
  TfRecords records;
  {
    const py::gil_scoped_release released;
    records = read_tf_records(bytes);
  }
  return py::make_tuple(as_array(std::move(records.ids)), as_array(std::move(records.lengths)),
                        as_array(std::move(records.ends)), records.needed,
                        static_cast<std::int64_t>(records.flaw));
}

/// The Examples of documents, one after the other, and the position at which each ends.
py::tuple examples_of(const InputArray<std::uint32_t>& ids,
                      const InputArray<std::int64_t>& offsets) {
  const auto values = span_of(ids);
  const auto bounds = checked_offsets(offsets, values.size());
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> ends;
  {
    const py::gil_scoped_release released;
    bytes.reserve(expected_bytes(values, bounds));
    ends.reserve(bounds.size());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto start = static_cast<std::size_t>(bounds[i]);
      const auto document = values.subspan(start, static_cast<std::size_t>(bounds[i + 1]) - start);
      const ExampleSizes sizes(document);
      const std::size_t before = bytes.size();
      bytes.resize(before + static_cast<std::size_t>(sizes.example));
      put_example(document, sizes, bytes.data() + before);
      ends.push_back(static_cast<std::int64_t>(bytes.size()));
    }
  }
  return py::make_tuple(as_array(std::move(bytes)), as_array(std::move(ends)));
}

/// The ids of Examples and the number of ids of each, up to the first record that is not an
/// Example.
py::tuple read_examples(const Buffer& data, const InputArray<std::int64_t>& ends) {
  const std::string_view bytes = bytes_of(data);
  const auto stops = span_of(ends);
  if (!stops.empty() && (stops.front() < 0 || !std::ranges::is_sorted(stops) ||
                         static_cast<std::size_t>(stops.back()) > bytes.size())) {
    throw std::invalid_argument("ends must ascend within the data");
  }
  std::vector<std::uint32_t> ids;
  std::vector<std::int64_t> lengths;
  {
    const py::gil_scoped_release released;
    std::size_t start = 0;
    for (const std::int64_t end : stops) {
      const auto stop = static_cast<std::size_t>(end);
      const std::size_t before = ids.size();
      if (!read_example(bytes.substr(start, stop - start), ids)) {
        ids.resize(before);
        break;
      }
      lengths.push_back(static_cast<std::int64_t>(ids.size() - before));
      start = stop;
    }
  }
  return py::make_tuple(as_array(std::move(ids)), as_array(std::move(lengths)));
}

/// `StoredIds` that keeps its arrays alive.
class BoundStoredIds {
 public:
  BoundStoredIds(const Array& ids, InputArray<std::uint8_t> bounds, std::size_t unit,
                 bool without_first, bool without_last)
      : held_ids_(bytes_of_ids(ids)),
        held_bounds_(std::move(bounds)),
        stored_(span_of(held_ids_), kind_of(ids), span_of(held_bounds_), unit, without_first,
                without_last) {}

  /// A new array of the type with this number; None if there is no such document or the type is not
  /// supported.
  py::object document(std::int64_t index, int type) const {
    if (index < 0) return py::none();
    const auto range = stored_.document(static_cast<std::size_t>(index));
    if (!range) return py::none();
    if (type == type_number<std::uint32_t>()) return copied<std::uint32_t>(*range);
    if (type == type_number<std::int64_t>()) return copied<std::int64_t>(*range);
    return py::none();
  }

 private:
  /// From this number of ids on, other threads run while the ids are copied.
  static constexpr std::size_t kLong = 4096;

  static InputArray<std::uint8_t> bytes_of_ids(const Array& ids) {
    return py::cast<InputArray<std::uint8_t>>(ids.attr("view")("uint8"));
  }

  static IdKind kind_of(const Array& ids) {
    const auto name = py::cast<std::string>(ids.attr("dtype").attr("name"));
    if (name == "uint8") return IdKind::kUint8;
    if (name == "uint16") return IdKind::kUint16;
    if (name == "uint32") return IdKind::kUint32;
    if (name == "int32") return IdKind::kInt32;
    throw std::invalid_argument("ids must be uint8, uint16, uint32 or int32");
  }

  template <typename To>
  Array copied(StoredIds::Range range) const {
    auto array = py::steal<Array>(new_array(
        type_number<To>(), {static_cast<Py_intptr_t>(range.count)}, nullptr, py::handle()));
    auto* const out = static_cast<To*>(array_data(array.ptr()));
    if (range.count >= kLong) {
      const py::gil_scoped_release released;
      stored_.copy(range, out);
    } else {
      stored_.copy(range, out);
    }
    return array;
  }

  InputArray<std::uint8_t> held_ids_;
  InputArray<std::uint8_t> held_bounds_;
  StoredIds stored_;
};

void bind_id_dictionary(py::module_& m) {
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
            const std::string_view before = bytes_of(head);
            std::vector<std::uint8_t> page;
            {
              const py::gil_scoped_release released;
              page = dictionary.take(before);
            }
            return as_array(std::move(page));
          },
          py::arg("head"));
}

}  // namespace

void bind_shards(py::module_& m) {
  py::class_<BoundStoredIds>(m, "StoredIds")
      .def(py::init<const Array&, InputArray<std::uint8_t>, std::size_t, bool, bool>(),
           py::arg("ids"), py::arg("bounds"), py::kw_only(), py::arg("unit"),
           py::arg("without_first"), py::arg("without_last"))
      .def("document", &BoundStoredIds::document, py::arg("index"), py::arg("type"));
  m.def("tf_records", &tf_records, py::arg("ids"), py::arg("offsets"));
  m.def("read_tf_records", &read_tf_records_of, py::arg("data"));
  m.attr("TF_RECORD_FLAWS") =
      py::make_tuple("", "the checksum of its length does not match", "its checksum does not match",
                     "it is no Example with one list input_ids, as this format has it");
  m.def("examples", &examples_of, py::arg("ids"), py::arg("offsets"));
  m.def("read_examples", &read_examples, py::arg("data"), py::arg("ends"));
  bind_id_dictionary(m);
}

}  // namespace bpe_beam
