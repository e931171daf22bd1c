// Binds the steps of Unigram training. Doubles cross as their bits, in 64-bit integers, and counts
// of 128 bits as two of them, the low half first.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "text/text.hpp"
#include "unigram/best_paths.hpp"
#include "unigram/exact_math.hpp"
#include "unigram/expected_counts.hpp"
#include "unigram/pieces.hpp"
#include "unigram/pruning.hpp"
#include "unigram/seeds.hpp"
#include "unigram/segments.hpp"

namespace bpe_beam {
namespace {

using Bits = InputArray<std::uint64_t>;

std::vector<double> doubles_of(const Bits& bits) {
  std::vector<double> values;
  values.reserve(bits.size());
  for (const std::uint64_t each : span_of(bits)) values.push_back(std::bit_cast<double>(each));
  return values;
}

std::vector<std::uint64_t> bits_of(std::span<const double> values) {
  std::vector<std::uint64_t> bits;
  bits.reserve(values.size());
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

std::vector<Wide> wide_of(const Bits& halves) {
  if (halves.ndim() != 2 || halves.shape(1) != 2) {
    throw std::invalid_argument("counts of 128 bits must have two columns");
  }
  const auto items = span_of(halves);
  std::vector<Wide> counts;
  counts.reserve(items.size() / 2);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    counts.push_back(static_cast<Wide>(items[i + 1]) << 64 | items[i]);
  }
  return counts;
}

Array halves_of(std::span<const Wide> counts) {
  std::vector<std::uint64_t> halves;
  halves.reserve(2 * counts.size());
  for (const Wide count : counts) {
    halves.insert(halves.end(),
                  {static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(count >> 64)});
  }
  return as_array(std::move(halves), 2);
}

/// Calls `use(word, count)` for each word of Python's columns, without the GIL.
template <class Use>
void each_word(const Buffer& data, const InputArray<std::int64_t>& offsets,
               const InputArray<std::int64_t>& counts, Use&& use) {
  const std::string_view text = bytes_of(data);
  const auto bounds = span_of(offsets);
  check_offsets(bounds.first(std::min<std::size_t>(bounds.size(), 1)), text.size());
  check_length("counts", counts.size(), bounds.size() - 1);
  const auto numbers = span_of(counts);
  const py::gil_scoped_release release;
  constexpr std::size_t kSlice = 65536;
  std::vector<std::int64_t> some;  // a copy, which no other thread changes after the check
  for (std::size_t begin = 0; begin < numbers.size(); begin += kSlice) {
    const auto slice = bounds.subspan(begin, std::min(kSlice, numbers.size() - begin) + 1);
    some.assign(slice.begin(), slice.end());
    check_offsets(some, text.size());
    for (std::size_t i = 0; i + 1 < some.size(); ++i) {
      const std::int64_t count = numbers[begin + i];
      if (count < 0) throw std::invalid_argument("counts must not be negative");
      use(text_at(text, some, i), count);
    }
  }
}

py::tuple count_characters(const Buffer& data, const InputArray<std::int64_t>& offsets,
                           const InputArray<std::int64_t>& counts) {
  CharacterCounts totals;
  each_word(data, offsets, counts,
            [&](std::string_view word, std::int64_t count) { totals.add(word, count); });
  std::vector<std::uint32_t> points;
  std::vector<std::int64_t> numbers;
  const auto by_code_point = totals.by_code_point();
  for (std::uint32_t point = 0; point < kCodePoints; ++point) {
    if (by_code_point[point] == 0) continue;
    points.push_back(point);
    numbers.push_back(by_code_point[point]);
  }
  return py::make_tuple(as_array(std::move(points)), as_array(std::move(numbers)));
}

class PySegments {
 public:
  PySegments(const Buffer& data, const InputArray<std::int64_t>& offsets,
             const InputArray<std::int64_t>& counts, const InputArray<std::uint32_t>& kept,
             bool by_script, std::size_t max_characters)
      : data_(data) {
    const SegmentCutter cutter(span_of(kept), by_script, max_characters);
    SegmentTable table(counts.size());
    each_word(data_, offsets, counts, [&](std::string_view word, std::int64_t count) {
      if (count == 0) return;
      cutter.cut(word, [&](std::string_view text, std::uint32_t follower) {
        table.add({text.data(), static_cast<std::uint32_t>(text.size()), follower, count});
      });
    });
    const py::gil_scoped_release release;
    segments_ = std::move(table).sorted();
  }

  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }

  [[nodiscard]] py::tuple columns() const {
    std::vector<std::uint8_t> data;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int64_t> counts;
    std::vector<std::uint32_t> followers;
    for (const Segment& segment : segments_) {
      data.insert(data.end(), segment.begin, segment.begin + segment.size);
      offsets.push_back(static_cast<std::int64_t>(data.size()));
      counts.push_back(segment.count);
      followers.push_back(segment.follower);
    }
    return py::make_tuple(as_array(std::move(data)), as_array(std::move(offsets)),
                          as_array(std::move(counts)), as_array(std::move(followers)));
  }

 private:
  Buffer data_;
  std::vector<Segment> segments_;
};

class PyPieces {
 public:
  explicit PyPieces(Pieces pieces) : pieces_(std::move(pieces)) {}

  explicit PyPieces(const std::vector<std::string>& texts)
      : pieces_({texts.begin(), texts.end()}) {}

  [[nodiscard]] std::size_t size() const { return pieces_.size(); }

  [[nodiscard]] py::list texts() const {
    py::list result;
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
      const std::string_view text = pieces_.text(piece);
      result.append(py::bytes(text.data(), text.size()));
    }
    return result;
  }

  [[nodiscard]] PyPieces subset(const InputArray<std::uint8_t>& kept) const {
    check_length("kept", kept.size(), size());
    const py::gil_scoped_release release;
    return PyPieces(pieces_.subset(span_of(kept)));
  }

  Array expected(const PySegments& segments, const Bits& probabilities, std::size_t threads) {
    check_length("probabilities", probabilities.size(), size());
    const auto values = doubles_of(probabilities);
    std::vector<Wide> counts;
    {
      const py::gil_scoped_release release;
      counts = expected_counts(pieces_, values, segments.segments(), threads);
    }
    return halves_of(counts);
  }

  Array in_paths(const PySegments& segments, const InputArray<std::int64_t>& scores,
                 std::size_t threads) {
    check_length("scores", scores.size(), size());
    std::vector<std::int64_t> counts;
    {
      const py::gil_scoped_release release;
      counts = path_counts(pieces_, span_of(scores), segments.segments(), threads);
    }
    return as_array(std::move(counts));
  }

  py::tuple estimated(const Bits& expected) {
    const auto counts = wide_of(expected);
    check_length("expected", counts.size(), size());
    Estimate result;
    {
      const py::gil_scoped_release release;
      result = estimate(pieces_, counts);
    }
    return py::make_tuple(as_array(std::move(result.kept)), halves_of(result.counts),
                          as_array(bits_of(result.scores)));
  }

  Array pruned(const InputArray<std::int64_t>& scores, const InputArray<std::int64_t>& counts,
               const Bits& expected, std::size_t desired, std::size_t target, std::size_t threads) {
    const auto wide = wide_of(expected);
    check_length("scores", scores.size(), size());
    check_length("counts", counts.size(), size());
    check_length("expected", wide.size(), size());
    std::vector<std::uint8_t> kept;
    {
      const py::gil_scoped_release release;
      kept = prune({pieces_, span_of(scores), span_of(counts), wide, desired, target, threads});
    }
    return as_array(std::move(kept));
  }

 private:
  Pieces pieces_;
};

py::tuple seeds_of(const PySegments& segments, const InputArray<std::uint32_t>& characters,
                   const InputArray<std::int64_t>& counts, std::size_t max_characters,
                   std::size_t limit, const std::vector<std::string>& reserved,
                   std::size_t threads) {
  check_length("counts", counts.size(), characters.size());
  std::vector<Wide> weights;
  std::optional<PyPieces> pieces;
  {
    const py::gil_scoped_release release;
    auto seeds = find_seeds(segments.segments(), max_characters, limit + reserved.size(), threads);
    const std::unordered_set<std::string_view> names(reserved.begin(), reserved.end());
    std::erase_if(seeds, [&](const Seed& seed) { return names.contains(seed.text()); });
    keep_best(seeds, limit);
    std::vector<std::string> texts(characters.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      append_utf8(span_of(characters)[i], texts[i]);
      const auto size = static_cast<std::uint32_t>(texts[i].size());
      seeds.push_back({texts[i].data(), size, 1, span_of(counts)[i]});
    }
    std::sort(seeds.begin(), seeds.end(),
              [](const Seed& a, const Seed& b) { return a.text() < b.text(); });
    std::vector<std::string_view> in_order;
    in_order.reserve(seeds.size());
    weights.reserve(seeds.size());
    for (const Seed& seed : seeds) {
      in_order.push_back(seed.text());
      weights.push_back(seed.weight());
    }
    seeds = {};
    pieces.emplace(Pieces(in_order));
  }
  return py::make_tuple(py::cast(std::move(*pieces)), halves_of(weights));
}

/// Each weight divided by the sum of all.
Array shares(const Bits& weights) {
  const auto counts = wide_of(weights);
  Wide total = 0;
  for (const Wide count : counts) total += count;
  std::vector<double> values;
  for (const Wide count : counts) {
    values.push_back(static_cast<double>(count) / static_cast<double>(total));
  }
  return as_array(bits_of(values));
}

template <double (*function)(double)>
Array applied(const Bits& values) {
  auto results = doubles_of(values);
  for (double& value : results) value = function(value);
  return as_array(bits_of(results));
}

}  // namespace

void bind_unigram(py::module_& m) {
  using namespace py::literals;
  m.def("count_characters", &count_characters, "data"_a, "offsets"_a, "counts"_a,
        "The characters of words: (uint32[n] code points, int64[n] how often each occurs).");
  m.def("shares", &shares, "weights"_a);
  m.def("exact_exp", &applied<exact_exp>, "values"_a);
  m.def("exact_log", &applied<exact_log>, "values"_a);
  py::class_<PySegments>(m, "Segments", "The segments of words, sorted and added up.")
      .def(py::init<const Buffer&, const InputArray<std::int64_t>&, const InputArray<std::int64_t>&,
                    const InputArray<std::uint32_t>&, bool, std::size_t>(),
           "data"_a, "offsets"_a, "counts"_a, "kept"_a, "by_script"_a,
           "max_characters"_a = SegmentCutter::kMaxCharacters)
      .def("__len__", [](const PySegments& segments) { return segments.segments().size(); })
      .def("columns", &PySegments::columns,
           "(uint8 data, int64 offsets, int64 counts, uint32 followers).")
      .def("seeds", &seeds_of, "characters"_a, "counts"_a, "max_characters"_a, "limit"_a,
           "reserved"_a, "threads"_a, "(Pieces, uint64[n, 2] weights).");
  py::class_<PyPieces>(m, "Pieces", "Pieces in the order of their bytes.")
      .def(py::init<const std::vector<std::string>&>(), "texts"_a)
      .def("__len__", &PyPieces::size)
      .def("texts", &PyPieces::texts)
      .def("subset", &PyPieces::subset, "kept"_a)
      .def("expected_counts", &PyPieces::expected, "segments"_a, "probabilities"_a, "threads"_a)
      .def("path_counts", &PyPieces::in_paths, "segments"_a, "scores"_a, "threads"_a)
      .def("estimate", &PyPieces::estimated, "expected"_a,
           "(uint8[n] kept; of the kept pieces uint64[m, 2] counts, uint64[m] scores).")
      .def("prune", &PyPieces::pruned, "scores"_a, "counts"_a, "expected"_a, "desired"_a,
           "target"_a, "threads"_a, "uint8[n]: which pieces stay.");
}

}  // namespace bpe_beam
