// Binds the steps of merge rounds: packed words, pair counts, rewriting, segments.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "count/packed_words.hpp"
#include "rounds/frequent_pairs.hpp"
#include "rounds/pair_table.hpp"
#include "rounds/rewriter.hpp"

namespace bpe_beam {
namespace {

/// Returns words from Python with checked offsets and counts. They are valid while the arguments
/// live.
class CheckedWords {
 public:
  CheckedWords(const Buffer& data, const InputArray<std::int64_t>& offsets,
               const InputArray<std::int64_t>& counts)
      : words_{bytes_of(data), span_of(offsets), span_of(counts)} {
    check_offsets(words_.offsets, words_.data.size());
    check_length("counts", words_.counts.size(), words_.size());
  }

  [[nodiscard]] const PackedWords& words() const { return words_; }

 private:
  PackedWords words_;
};

py::tuple to_python(PackedColumns&& columns) {
  return py::make_tuple(py::memoryview(as_array(std::move(columns.data))),
                        as_array(std::move(columns.offsets)), as_array(std::move(columns.counts)));
}

py::tuple to_python(PairColumns&& columns) {
  return py::make_tuple(as_array(std::move(columns.lefts)), as_array(std::move(columns.rights)),
                        as_array(std::move(columns.counts)));
}

py::tuple pack_symbols(const InputArray<std::uint32_t>& symbols,
                       const InputArray<std::int64_t>& offsets) {
  const auto ids = span_of(symbols);
  const auto bounds = span_of(offsets);
  check_offsets(bounds, ids.size());
  PackedColumns packed;
  {
    py::gil_scoped_release release;
    std::vector<char> scratch;
    packed.offsets.reserve(bounds.size());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      append_packed(ids.subspan(static_cast<std::size_t>(bounds[i]),
                                static_cast<std::size_t>(bounds[i + 1] - bounds[i])),
                    scratch, packed.data);
      packed.offsets.push_back(static_cast<std::int64_t>(packed.data.size()));
    }
  }
  return py::make_tuple(py::memoryview(as_array(std::move(packed.data))),
                        as_array(std::move(packed.offsets)));
}

py::tuple unpack_symbols(const Buffer& data, const InputArray<std::int64_t>& offsets) {
  const PackedWords words{bytes_of(data), span_of(offsets), {}};
  check_offsets(words.offsets, words.data.size());
  std::vector<std::uint32_t> symbols;
  std::vector<std::int64_t> ends{0};
  {
    py::gil_scoped_release release;
    ends.reserve(words.offsets.size());
    for (std::size_t word = 0; word < words.size(); ++word) {
      unpack_word(words, word, symbols);
      ends.push_back(static_cast<std::int64_t>(symbols.size()));
    }
  }
  return py::make_tuple(as_array(std::move(symbols)), as_array(std::move(ends)));
}

class PyPairTable {
 private:
  /// Calls a function without the GIL and with the lock, and returns its result.
  template <typename Function>
  auto locked(Function function) {
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    return function();
  }

 public:
  void add_words(const Buffer& data, const InputArray<std::int64_t>& offsets,
                 const InputArray<std::int64_t>& counts,
                 const std::optional<InputArray<std::uint32_t>>& widths,
                 std::optional<std::uint64_t> max_length) {
    if (widths.has_value() != max_length.has_value()) {
      throw std::invalid_argument("widths and max_length must be set together");
    }
    const CheckedWords checked(data, offsets, counts);
    const auto by_id = widths ? span_of(*widths) : std::span<const std::uint32_t>();
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    if (max_length) {
      table_.add_words(checked.words(), PairWidths{by_id, *max_length});
    } else {
      table_.add_words(checked.words());
    }
  }

  void add(const InputArray<std::uint32_t>& lefts, const InputArray<std::uint32_t>& rights,
           const InputArray<std::int64_t>& counts) {
    check_length("lefts", lefts.size(), counts.size());
    check_length("rights", rights.size(), counts.size());
    const auto totals = span_of(counts);
    const std::uint32_t* const left = lefts.data();
    const std::uint32_t* const right = rights.data();
    py::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    table_.add(left, right, totals);
  }

  void add_table(PyPairTable& other) {
    if (this == &other) throw std::invalid_argument("a table must not be added to itself");
    py::gil_scoped_release release;
    const std::scoped_lock lock(mutex_, other.mutex_);
    table_.add_table(other.table_);
  }

  py::list split(std::uint32_t shards) {
    std::vector<PairColumns> parts = locked([&] { return table_.split(shards); });
    py::list result;
    for (PairColumns& part : parts) result.append(to_python(std::move(part)));
    return result;
  }

  py::tuple frequent(std::int64_t floor, std::size_t limit) {
    py::tuple columns = to_python(locked([&] { return table_.frequent(floor, limit); }));
    return py::make_tuple(columns[0], columns[1], columns[2], floor);
  }

  py::tuple best(std::size_t limit, const std::optional<InputArray<std::uint32_t>>& ranks) {
    std::optional<std::span<const std::uint32_t>> by_id;
    if (ranks) by_id = span_of(*ranks);
    return to_python(locked([&] { return table_.best(limit, by_id); }));
  }

  void clear() {
    locked([&] { table_.clear(); });
  }

  std::size_t size() {
    return locked([&] { return table_.size(); });
  }

  std::size_t memory_bytes() {
    return locked([&] { return table_.memory_bytes(); });
  }

 private:
  PairTable table_;
  std::mutex mutex_;
};

/// Immutable, so threads share one without a lock.
class PyRewriter {
 public:
  explicit PyRewriter(const std::vector<InputArray<std::uint32_t>>& batches) {
    std::vector<std::vector<MergeRow>> rows;
    for (const InputArray<std::uint32_t>& batch : batches) {
      if (batch.ndim() != 2 || batch.shape(1) != 3) {
        throw std::invalid_argument("a batch of merges must be uint32[n, 3]: left, right, joined");
      }
      rows.emplace_back();
      for (Py_ssize_t i = 0; i < batch.shape(0); ++i) {
        rows.back().push_back({batch.at(i, 0), batch.at(i, 1), batch.at(i, 2)});
      }
    }
    py::gil_scoped_release release;
    for (const std::vector<MergeRow>& batch : rows) rewriter_.add_batch(batch);
  }

  [[nodiscard]] py::tuple rewrite(const Buffer& data, const InputArray<std::int64_t>& offsets,
                                  const InputArray<std::int64_t>& counts) const {
    const CheckedWords checked(data, offsets, counts);
    PackedColumns out;
    {
      py::gil_scoped_release release;
      out = rewriter_.rewrite(checked.words());
    }
    return to_python(std::move(out));
  }

 private:
  Rewriter rewriter_;
};

/// Immutable, like a rewriter.
class PyFrequentPairs {
 public:
  PyFrequentPairs(const InputArray<std::uint32_t>& lefts, const InputArray<std::uint32_t>& rights) {
    check_length("rights", rights.size(), lefts.size());
    const auto left = span_of(lefts);
    const auto right = span_of(rights);
    py::gil_scoped_release release;
    pairs_.emplace(left, right);
  }

  [[nodiscard]] py::tuple segments(const Buffer& data, const InputArray<std::int64_t>& offsets,
                                   const InputArray<std::int64_t>& counts, bool singles) const {
    const CheckedWords checked(data, offsets, counts);
    PackedColumns out;
    {
      py::gil_scoped_release release;
      out = pairs_->segments(checked.words(), singles);
    }
    return to_python(std::move(out));
  }

 private:
  std::optional<FrequentPairs> pairs_;
};

}  // namespace

void bind_rounds(py::module_& m) {
  using namespace py::literals;
  m.def("pack_symbols", &pack_symbols, "symbols"_a, "offsets"_a,
        "Words of symbols as packed words: (data, offsets).");
  m.def("unpack_symbols", &unpack_symbols, "data"_a, "offsets"_a,
        "The symbols of packed words: (symbols, offsets).");

  py::class_<PyPairTable>(m, "PairTable", "Adjacent pairs of symbols and their 64-bit counts.")
      .def(py::init<>())
      .def("add_words", &PyPairTable::add_words, "data"_a, "offsets"_a, "counts"_a,
           "widths"_a = py::none(), "max_length"_a = py::none(),
           "Counts the adjacent pairs of packed words, overlapping ones each. With widths (by id) "
           "no pair of max_length or more characters, unless of two.")
      .def("add", &PyPairTable::add, "lefts"_a, "rights"_a, "counts"_a,
           "Adds pairs with their counts.")
      .def("add_table", &PyPairTable::add_table, "other"_a)
      .def("split", &PyPairTable::split, "shards"_a,
           "For each shard, sorted: (lefts, rights, counts).")
      .def("frequent", &PyPairTable::frequent, "floor"_a, "limit"_a,
           "The pairs that count floor and more, sorted, and the floor: raised as far as it must "
           "be for at most limit pairs.")
      .def("best", &PyPairTable::best, "limit"_a, "ranks"_a = py::none(),
           "The first pairs by falling count, then the ranks (by id) of left and right.")
      .def("clear", &PyPairTable::clear)
      .def("__len__", &PyPairTable::size)
      .def_prop_ro("memory_bytes", &PyPairTable::memory_bytes);

  py::class_<PyRewriter>(m, "Rewriter", "Applies batches of merges to packed words.")
      .def(py::init<const std::vector<InputArray<std::uint32_t>>&>(), "batches"_a)
      .def("rewrite", &PyRewriter::rewrite, "data"_a, "offsets"_a, "counts"_a,
           "The words after the merges, without words of one symbol: (data, offsets, counts).");

  py::class_<PyFrequentPairs>(m, "FrequentPairs",
                              "Splits packed words at boundaries whose pair is none of these.")
      .def(py::init<const InputArray<std::uint32_t>&, const InputArray<std::uint32_t>&>(),
           "lefts"_a, "rights"_a)
      .def("segments", &PyFrequentPairs::segments, "data"_a, "offsets"_a, "counts"_a, "singles"_a,
           "The segments, not added up: (data, offsets, counts).");
}

}  // namespace bpe_beam
