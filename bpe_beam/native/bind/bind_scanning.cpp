// The scanners by name, for Python.
#include <nanobind/nanobind.h>

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

Array scan_words(const Buffer& text, const std::string& scanner) {
  const std::string_view bytes = bytes_of(text);
  std::vector<std::int64_t> offsets;
  bool known = false;
  {
    const py::gil_scoped_release release;
    auto use = [&](std::span<const Word> words) {
      for (const Word& word : words) {
        offsets.push_back(static_cast<std::int64_t>(word.begin));
        offsets.push_back(static_cast<std::int64_t>(word.end));
      }
    };
    known = scan_by_name(scanner, bytes, BlockClasses::best(), WordsUse(use));
  }
  if (!known) throw std::invalid_argument("scanner must be one of SCANNERS, got " + scanner);
  return as_array(std::move(offsets), 2);
}

}  // namespace

void bind_scanning(py::module_& m) {
  using namespace py::literals;
  py::list names;
  for (const std::string_view name : kScannerNames) names.append(std::string(name));
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
