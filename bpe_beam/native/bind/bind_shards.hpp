// Bindings of the records of shards.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "shards/tf_records.hpp"

namespace bpe_beam {

inline py::array_t<std::uint8_t> tf_records(const InputArray<std::uint32_t>& ids,
                                            const InputArray<std::int64_t>& offsets) {
  const auto values = span_of(ids);
  const auto bounds = checked_offsets(offsets, values.size());
  std::vector<std::uint8_t> records;
  {
    const py::gil_scoped_release released;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto start = static_cast<std::size_t>(bounds[i]);
      append_tf_record(values.subspan(start, static_cast<std::size_t>(bounds[i + 1]) - start),
                       records);
    }
  }
  return as_array(std::move(records));
}

inline py::tuple read_tf_records_of(const py::buffer& data) {
  const py::buffer_info info = data.request();
  const auto bytes = bytes_of(info);
  TfRecords found;
  {
    const py::gil_scoped_release released;
    found = read_tf_records({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  return py::make_tuple(as_array(std::move(found.ids)), as_array(std::move(found.lengths)),
                        as_array(std::move(found.ends)), found.needed,
                        static_cast<std::int64_t>(found.flaw));
}

inline void bind_shards(py::module_& m) {
  m.def("tf_records", &tf_records, py::arg("ids"), py::arg("offsets"));
  m.def("read_tf_records", &read_tf_records_of, py::arg("data"));
  m.attr("TF_RECORD_FLAWS") =
      py::make_tuple("", "the checksum of its length does not match", "its checksum does not match",
                     "it is no Example with one list input_ids, as this format has it");
}

}  // namespace bpe_beam
