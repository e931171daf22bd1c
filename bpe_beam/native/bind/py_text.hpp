// Python's texts, str or bytes, as UTF-8 without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bind/binding.hpp"
#include "text/utf8_check.hpp"
#include "text/utf8_writer.hpp"

namespace bpe_beam {

/// A view of a str or bytes that the caller keeps alive; it can be read without the GIL.
class PyText {
 public:
  /// Returns whether an object is a text that this class reads.
  static bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

  explicit PyText(PyObject* text) {
    if (PyBytes_Check(text)) {
      data_ = PyBytes_AS_STRING(text);
      size_ = static_cast<std::size_t>(PyBytes_GET_SIZE(text));
      form_ = kBytes;
      return;
    }
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text) != 0) throw py::python_error();
#endif
    data_ = PyUnicode_DATA(text);
    size_ = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
    form_ = PyUnicode_IS_ASCII(text) ? kAscii : static_cast<unsigned>(PyUnicode_KIND(text));
  }

  [[nodiscard]] std::size_t size_of_memory() const {
    return form_ == kBytes ? size_ : size_ * std::max(form_, 1u);
  }

  /// The text in UTF-8, until the writer writes again; nullopt if it has a lone surrogate, or if
  /// bytes are not UTF-8.
  std::optional<std::string_view> utf8(Utf8Writer& writer) const {
    const std::string_view bytes(static_cast<const char*>(data_), size_);
    switch (form_) {
      case kAscii: return bytes;
      case 1: return writer.write(std::span(static_cast<const std::uint8_t*>(data_), size_));
      case 2: return writer.write(std::span(static_cast<const std::uint16_t*>(data_), size_));
      case 4: return writer.write(std::span(static_cast<const std::uint32_t*>(data_), size_));
      default: break;
    }
    if (valid_utf8_prefix(bytes) != size_) return std::nullopt;
    return bytes;
  }

 private:
  static constexpr unsigned kAscii = 0;
  static constexpr unsigned kBytes = 8;

  const void* data_;
  std::size_t size_;
  unsigned form_;  // kAscii, kBytes, or the bytes of a character
};

}  // namespace bpe_beam
