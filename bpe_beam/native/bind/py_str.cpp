// See py_str.hpp.
#include "bind/py_str.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace bpe_beam {
namespace {

namespace py = nanobind;

StrMemory utf8_from_python(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (utf8 == nullptr) {
    PyErr_Clear();
    return {nullptr, 0, StrMemory::kNotUtf8};
  }
  return {utf8, static_cast<std::size_t>(size), StrMemory::kUtf8};
}

#ifdef Py_LIMITED_API

// The structs of CPython 3.12, 3.13 and 3.14 for 64 bits with a GIL.
struct AsciiStr {  // characters follow
  PyObject head;
  Py_ssize_t length;
  Py_hash_t hash;
  std::uint32_t state;
};
struct CompactStr {  // characters follow
  AsciiStr ascii;
  Py_ssize_t utf8_size;
  char* utf8;
};
struct OtherStr {  // of a subclass of str
  CompactStr compact;
  void* characters;
};

/// The position of three bits in `state`: the bytes of a character. Next: compact, ASCII. Before
/// them is `interned`, of two bits or, in some releases, of sixteen.
unsigned kind_bit = 2;

StrMemory memory_of(PyObject* text) {
  const auto* const ascii = reinterpret_cast<const AsciiStr*>(text);
  const std::uint32_t state = ascii->state >> kind_bit;
  const bool is_compact = (state & 8) != 0;
  const bool is_ascii = (state & 16) != 0;
  // Each of the structs is read only where it is whole: a short str is smaller than the others.
  const void* data = nullptr;
  if (!is_compact) {
    data = reinterpret_cast<const OtherStr*>(text)->characters;
  } else if (is_ascii) {
    data = ascii + 1;
  } else {
    data = reinterpret_cast<const CompactStr*>(text) + 1;
  }
  return {data, static_cast<std::size_t>(ascii->length), is_ascii ? StrMemory::kUtf8 : state & 7};
}

std::size_t number(const py::object& number) { return py::cast<std::size_t>(number); }

/// Returns whether `memory_of` gives the characters that Python's own functions give for a str
/// whose characters have `form` bytes.
bool reads(const py::object& text, unsigned form, bool compact) {
  const std::size_t characters = py::len(text);
  // As the sizes are right, nothing is read beyond the str.
  const std::size_t head = form == StrMemory::kUtf8 ? sizeof(AsciiStr) : sizeof(CompactStr);
  const std::size_t width = form == StrMemory::kUtf8 ? 1 : form;
  const std::size_t size = head + (characters + 1) * width;
  if (compact && number(text.attr("__sizeof__")()) != size) return false;
  const StrMemory memory = memory_of(text.ptr());
  if (memory.form != form || memory.size != characters) return false;
  const auto* const begin = static_cast<const char*>(static_cast<const void*>(text.ptr()));
  if (compact && memory.data != begin + head) return false;
  for (std::size_t i = 0; i < characters; ++i) {
    const Py_UCS4 expected = PyUnicode_ReadChar(text.ptr(), static_cast<Py_ssize_t>(i));
    Py_UCS4 character = 0;
    switch (width) {
      case 1: character = static_cast<const std::uint8_t*>(memory.data)[i]; break;
      case 2: character = static_cast<const std::uint16_t*>(memory.data)[i]; break;
      default: character = static_cast<const std::uint32_t*>(memory.data)[i];
    }
    if (character != expected) return false;
  }
  return true;
}

bool is_known() {
  const bool known_version = Py_Version >= 0x030C0000 && Py_Version < 0x030F0000;
  const py::module_ builtins = py::module_::import_("builtins");
  if (!known_version || number(builtins.attr("object").attr("__basicsize__")) != sizeof(PyObject)) {
    return false;
  }
  struct Sample {
    const char* text;
    unsigned form;
  };
  constexpr std::array<Sample, 5> kSamples{{{"", StrMemory::kUtf8},
                                            {"ASCII", StrMemory::kUtf8},
                                            {"caf\xc3\xa9", 1},
                                            {"\xe2\x82\xac 5", 2},
                                            {"\xf0\x9f\x98\x80 ok", 4}}};
  const py::object subclass =
      builtins.attr("type")("Text", py::make_tuple(builtins.attr("str")), py::dict());
  for (const unsigned bit : {2, 16}) {
    kind_bit = bit;
    const bool right = std::all_of(kSamples.begin(), kSamples.end(), [&](const Sample& sample) {
      const py::str plain(sample.text);
      return reads(plain, sample.form, true) && reads(subclass(plain), sample.form, false);
    });
    if (right) return true;
  }
  return false;
}

#else

StrMemory memory_of(PyObject* text) {
#if PY_VERSION_HEX < 0x030C0000
  if (PyUnicode_READY(text) != 0) throw py::python_error();
#endif
  return {
      PyUnicode_DATA(text), static_cast<std::size_t>(PyUnicode_GET_LENGTH(text)),
      PyUnicode_IS_ASCII(text) ? StrMemory::kUtf8 : static_cast<unsigned>(PyUnicode_KIND(text))};
}

bool is_known() { return true; }

#endif

}  // namespace

StrMemory StrMemory::of(PyObject* text) {
  return StrLayout::in_place ? memory_of(text) : utf8_from_python(text);
}

void StrLayout::detect() { in_place = is_known(); }

}  // namespace bpe_beam
