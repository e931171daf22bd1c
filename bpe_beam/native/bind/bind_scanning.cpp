// The scanners by name, for Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bind/binding.hpp"
#include "bind/subjects.hpp"
#include "scan/scanners.hpp"
#include "scan/word_batches.hpp"

namespace bpe_beam {
namespace {

py::array_t<std::int64_t> scan_words(const py::buffer& text, const std::string& scanner) {
  const py::buffer_info info = text.request();
  const std::string_view bytes = bytes_of(info);
  std::vector<std::int64_t> offsets;
  bool known = false;
  {
    const py::gil_scoped_release release;
    known = with_scanner(scanner, [&](auto scan) {
      scan_batches(scan, bytes, BlockClasses::best(), [&](std::span<const Word> words) {
        for (const Word& word : words) {
          offsets.push_back(static_cast<std::int64_t>(word.begin));
          offsets.push_back(static_cast<std::int64_t>(word.end));
        }
      });
    });
  }
  if (!known) throw std::invalid_argument("scanner must be one of SCANNERS, got " + scanner);
  const auto words = static_cast<py::ssize_t>(offsets.size() / 2);
  return as_array(std::move(offsets)).reshape({words, py::ssize_t{2}});
}

}  // namespace

void bind_scanning(py::module_& m) {
  using namespace pybind11::literals;
  py::list names;
  for (const std::string_view name : kScannerNames) names.append(py::str(std::string(name)));
  m.attr("SCANNERS") = py::tuple(names);
  m.attr("UPPER_LIKE") = kUpperLike;
  m.attr("CLASS_BITS") = kClassBits;
  m.attr("NUMBER") = static_cast<int>(CharClass::kNumber);
  m.def(
      "char_bits",
      [](std::uint32_t code_point) {
        if (code_point >= 0x110000) {
          throw std::invalid_argument("code_point must be below 0x110000");
        }
        return char_bits(code_point);
      },
      "code_point"_a, "The properties of a code point, as unicode_classes.hpp has them.");
  m.def("scan_words", &scan_words, "text"_a, "scanner"_a,
        "Begin and end, in bytes, of each word of UTF-8 `text`: int64[words, 2].");
}

}  // namespace bpe_beam
