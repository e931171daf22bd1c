// The characters of a str in Python's memory, so that they can be read without a copy or the GIL.
//
// A build for one version of Python uses the macros of its headers. The stable ABI has none, so a
// build for all versions reads the memory by the layout of the public headers, which does not
// change within a version. Where the layout is unknown, Python makes UTF-8.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace bpe_beam {

/// The characters of a str that the caller keeps alive.
struct StrMemory {
  static constexpr unsigned kUtf8 = 0;      // UTF-8, often because all is ASCII
  static constexpr unsigned kNotUtf8 = 16;  // has a lone surrogate, and `data` is null

  const void* data;
  std::size_t size;  // in units of `form`
  unsigned form;     // kUtf8, kNotUtf8, or the bytes of a character: 1, 2 or 4

  /// The memory as it is; needs the GIL.
  static StrMemory of(PyObject* text);
};

/// How this process reads the memory of str. Changed only while the module is imported, and by
/// tests.
struct StrLayout {
  static inline bool in_place = true;  // false: Python makes UTF-8 of each str, and keeps it

  /// Sets `in_place` to whether the layout of this interpreter is known.
  static void detect();
};

}  // namespace bpe_beam
