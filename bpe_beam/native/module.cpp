// The Python module bpe_beam._native: the kernels, the GIL released while they run.
//
// An object that changes (a table, a learner) is locked while a call works on it, so threads that
// share one by mistake wait for each other. Offsets and sizes are checked here, before a kernel
// trusts them.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bind_learning.hpp"
#include "bind_records.hpp"
#include "bind_scanning.hpp"
#include "binding.hpp"
#include "bpe_encoder.hpp"
#include "gpt2_scanner.hpp"
#include "special_tokens.hpp"
#include "word_table.hpp"

namespace bpe_beam {
namespace {

using Specials = std::vector<std::pair<std::string, std::uint32_t>>;

std::string_view text_at(std::string_view data, std::span<const std::int64_t> offsets,
                         std::size_t i) {
  return data.substr(static_cast<std::size_t>(offsets[i]),
                     static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
}

void check_length(const char* name, std::size_t found, std::size_t expected) {
  if (found != expected) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) +
                                " items, not " + std::to_string(expected));
  }
}

// ---- scanning ----

py::array_t<std::int64_t> scan(const py::buffer& text) {
  const py::buffer_info info = text.request();
  const std::string_view bytes = bytes_of(info);
  std::vector<std::int64_t> ends;
  {
    py::gil_scoped_release release;
    for (std::size_t at = 0; at < bytes.size();) {
      at = Gpt2Scanner::next(bytes, at);
      ends.push_back(static_cast<std::int64_t>(at));
    }
  }
  return as_array(std::move(ends));
}

// ---- counting ----

class PyWordTable {
 public:
  PyWordTable(bool with_places, Specials specials)
      : table_(with_places), specials_(std::move(specials)) {}

  std::uint64_t add_texts(const py::buffer& data, const InputArray<std::int64_t>& offsets,
                          const std::optional<InputArray<std::uint64_t>>& documents) {
    const py::buffer_info info = data.request();
    const std::string_view bytes = bytes_of(info);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    const auto places = places_of(documents, bounds.size() - 1);
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    std::uint64_t words = 0;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      words += table_.add_text(text_at(bytes, bounds, i), specials_,
                               places.empty() ? 0 : places[i]);
    }
    return words;
  }

  void add_words(const py::buffer& data, const InputArray<std::int64_t>& offsets,
                 const InputArray<std::int64_t>& counts,
                 const std::optional<InputArray<std::uint64_t>>& documents,
                 const std::optional<InputArray<std::uint64_t>>& words) {
    const py::buffer_info info = data.request();
    const std::string_view bytes = bytes_of(info);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    check_length("counts", counts.size(), bounds.size() - 1);
    const auto first_documents = places_of(documents, bounds.size() - 1);
    const auto first_words = places_of(words, bounds.size() - 1);
    const auto totals = span_of(counts);
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const Place place =
          first_documents.empty() ? Place{} : Place{first_documents[i], first_words[i]};
      table_.add(text_at(bytes, bounds, i), totals[i], place,
                 bytes.size() - static_cast<std::size_t>(bounds[i]));
    }
  }

  void add_table(PyWordTable& other) {
    if (this == &other) throw std::invalid_argument("a table cannot be added to itself");
    if (table_.with_places() && !other.table_.with_places()) {
      throw std::invalid_argument("a table without places cannot be added to one with places");
    }
    py::gil_scoped_release release;
    const std::scoped_lock lock(mutex_, other.mutex_);
    table_.add_table(other.table_);
  }

  py::list split(std::uint32_t partitions) {
    std::vector<WordColumns> parts;
    {
      py::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      parts = table_.split(partitions);
    }
    py::list result;
    for (WordColumns& part : parts) {
      result.append(py::make_tuple(as_array(std::move(part.offsets)),
                                   py::memoryview(as_array(std::move(part.bytes))),
                                   as_array(std::move(part.counts)),
                                   as_array(std::move(part.documents)),
                                   as_array(std::move(part.words))));
    }
    return result;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    table_.clear();
  }

  [[nodiscard]] std::size_t size() const { return table_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const { return table_.memory_bytes(); }
  [[nodiscard]] bool with_places() const { return table_.with_places(); }

 private:
  [[nodiscard]] std::span<const std::uint64_t> places_of(
      const std::optional<InputArray<std::uint64_t>>& places, std::size_t expected) const {
    if (!table_.with_places()) return {};
    if (!places) throw std::invalid_argument("this table keeps places, and none are given");
    check_length("places", places->size(), expected);
    return span_of(*places);
  }

  WordTable table_;
  SpecialTokens specials_;
  std::mutex mutex_;
};

// ---- encoding ----

/// The text holds a byte without an id; becomes a Python exception (document, offset).
struct MissingByteIn {
  std::size_t document;
  std::size_t offset;
};

class PyBpeEncoder {
 public:
  PyBpeEncoder(const InputArray<std::uint32_t>& merges, const InputArray<std::uint32_t>& byte_ids,
               Specials specials, std::size_t cache_bytes)
      : cache_bytes_(cache_bytes) {
    if (merges.ndim() != 2 || merges.shape(1) != 3) {
      throw std::invalid_argument("merges must be rows of (left id, right id, joined id)");
    }
    check_length("byte_ids", byte_ids.size(), 256);
    const std::span rows(reinterpret_cast<const MergeRow*>(merges.data()),
                         static_cast<std::size_t>(merges.shape(0)));
    model_ = std::make_unique<BpeModel>(rows, span_of(byte_ids).first<256>(),
                                        SpecialTokens(std::move(specials)));
  }

  py::array_t<std::uint32_t> encode(const py::buffer& text, std::vector<std::uint32_t> allowed) {
    const py::buffer_info info = text.request();
    const std::string_view bytes = bytes_of(info);
    std::vector<std::uint32_t> ids;
    {
      py::gil_scoped_release release;
      std::sort(allowed.begin(), allowed.end());
      auto state = take_state();
      encode_document(bytes, 0, allowed, *state, ids);
      give_back(std::move(state));
    }
    return as_array(std::move(ids));
  }

  py::tuple encode_batch(const py::buffer& data, const InputArray<std::int64_t>& offsets,
                         std::vector<std::uint32_t> allowed) {
    const py::buffer_info info = data.request();
    const std::string_view bytes = bytes_of(info);
    const auto bounds = span_of(offsets);
    check_offsets(bounds, bytes.size());
    std::vector<std::uint32_t> ids;
    std::vector<std::int64_t> id_offsets{0};
    {
      py::gil_scoped_release release;
      std::sort(allowed.begin(), allowed.end());
      ids.reserve(bytes.size() / 4);
      id_offsets.reserve(bounds.size());
      auto state = take_state();
      for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        encode_document(text_at(bytes, bounds, i), i, allowed, *state, ids);
        id_offsets.push_back(static_cast<std::int64_t>(ids.size()));
      }
      give_back(std::move(state));
    }
    return py::make_tuple(as_array(std::move(ids)), as_array(std::move(id_offsets)));
  }

 private:
  void encode_document(std::string_view text, std::size_t document,
                       std::span<const std::uint32_t> allowed, BpeEncodingState& state,
                       std::vector<std::uint32_t>& ids) const {
    try {
      model_->encode(text, allowed, state, ids);
    } catch (const MissingByte& missing) {
      throw MissingByteIn{document, missing.offset};
    }
  }

  // States wait in a pool, so each thread finds a warm cache and there are no more than threads.
  std::unique_ptr<BpeEncodingState> take_state() {
    const std::lock_guard lock(mutex_);
    if (states_.empty()) return std::make_unique<BpeEncodingState>(cache_bytes_);
    auto state = std::move(states_.back());
    states_.pop_back();
    return state;
  }

  void give_back(std::unique_ptr<BpeEncodingState> state) {
    const std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }

  std::unique_ptr<BpeModel> model_;
  std::size_t cache_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BpeEncodingState>> states_;
};

}  // namespace
}  // namespace bpe_beam

PYBIND11_MODULE(_native, m) {
  using namespace bpe_beam;
  using namespace pybind11::literals;
  m.doc() = "The native kernels of bpe-beam: scanning, counting, learning, encoding.";

  static py::handle missing_byte_error =
      py::exception<MissingByteIn>(m, "MissingByteError", PyExc_ValueError).release();
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const MissingByteIn& missing) {
      const py::tuple place = py::make_tuple(missing.document, missing.offset);
      PyErr_SetObject(missing_byte_error.ptr(), place.ptr());
    }
  });

  m.def("scan", &scan, "text"_a,
        "The end of each word of UTF-8 `text` by the GPT-2 pattern, in bytes: int64[words].");
  m.def("partition_of", [](const py::bytes& word, std::uint32_t partitions) {
          return partition_of(std::string_view(word), partitions);
        }, "word"_a, "partitions"_a, "The word's partition: fixed for ever.");

  py::class_<PyWordTable>(m, "WordTable", "Words and their 64-bit counts.")
      .def(py::init<bool, Specials>(), "with_places"_a = false, "specials"_a = Specials{},
           "`specials`: (bytes, id) of the tokens that are cut out of texts.")
      .def("add_texts", &PyWordTable::add_texts, "data"_a, "offsets"_a,
           "documents"_a = py::none(),
           "Adds the words of texts i = data[offsets[i]:offsets[i + 1]]; returns how many.")
      .def("add_words", &PyWordTable::add_words, "data"_a, "offsets"_a, "counts"_a,
           "documents"_a = py::none(), "words"_a = py::none(), "Adds words with their counts.")
      .def("add_table", &PyWordTable::add_table, "other"_a)
      .def("split", &PyWordTable::split, "partitions"_a,
           "For each partition, sorted by bytes: (offsets, data, counts, documents, words).")
      .def("clear", &PyWordTable::clear)
      .def("__len__", &PyWordTable::size)
      .def_property_readonly("with_places", &PyWordTable::with_places)
      .def_property_readonly("memory_bytes", &PyWordTable::memory_bytes);

  py::class_<PyBpeEncoder>(m, "BpeEncoder", "Texts to ids by BPE merges.")
      .def(py::init<const InputArray<std::uint32_t>&, const InputArray<std::uint32_t>&, Specials,
                    std::size_t>(),
           "merges"_a, "byte_ids"_a, "specials"_a = Specials{}, "cache_bytes"_a = 16 << 20)
      .def("encode", &PyBpeEncoder::encode, "text"_a,
           "allowed"_a = std::vector<std::uint32_t>{}, "The ids of one text: uint32[n].")
      .def("encode_batch", &PyBpeEncoder::encode_batch, "data"_a, "offsets"_a,
           "allowed"_a = std::vector<std::uint32_t>{},
           "The ids of many texts: (uint32[ids], int64 offsets of the texts' first ids).");

  bind_learning(m);
  bind_records(m);
  bind_scanning(m);
}
