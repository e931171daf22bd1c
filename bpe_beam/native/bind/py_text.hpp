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
#include "bind/py_str.hpp"
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
      memory_ = {PyBytes_AsString(text), static_cast<std::size_t>(PyBytes_Size(text)), kBytes};
    } else {
      memory_ = StrMemory::of(text);
    }
  }

  [[nodiscard]] std::size_t size_of_memory() const {
    return memory_.form == kBytes ? memory_.size : memory_.size * std::max(memory_.form, 1u);
  }

  /// The text in UTF-8, until the writer writes again; nullopt if it has a lone surrogate, or if
  /// bytes are not UTF-8.
  std::optional<std::string_view> utf8(Utf8Writer& writer) const {
    const auto [data, size, form] = memory_;
    const std::string_view bytes(static_cast<const char*>(data), size);
    switch (form) {
      case StrMemory::kUtf8: return bytes;
      case StrMemory::kNotUtf8: return std::nullopt;
      case 1: return writer.write(std::span(static_cast<const std::uint8_t*>(data), size));
      case 2: return writer.write(std::span(static_cast<const std::uint16_t*>(data), size));
      case 4: return writer.write(std::span(static_cast<const std::uint32_t*>(data), size));
      default: break;
    }
    if (valid_utf8_prefix(bytes) != size) return std::nullopt;
    return bytes;
  }

 private:
  static constexpr unsigned kBytes = 8;  // a form: bytes, which may be UTF-8

  StrMemory memory_;
};

}  // namespace bpe_beam
