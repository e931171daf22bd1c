// The Python module bpe_beam._native: the kernels. The GIL is released while they run.
//
// An object that changes (a table, a learner) is locked during a call, so threads that share one by
// mistake wait for each other. Offsets and sizes are checked before a kernel trusts
// them.
#include <nanobind/nanobind.h>

#include <utility>

#include "bind/py_str.hpp"
#include "bind/subjects.hpp"

NB_MODULE(_native, m) {
  nanobind::set_leak_warnings(false);
  m.doc() = "The native kernels of bpe-beam: scanning, counting, learning, encoding.";
  bpe_beam::StrLayout::detect();
  m.def(
      "read_str_in_place",
      [](bool enabled) { return std::exchange(bpe_beam::StrLayout::in_place, enabled); },
      "Switches to the other way to read str, for tests. Returns whether str was read in place.");
  bpe_beam::bind_scanning(m);
  bpe_beam::bind_normalizing(m);
  bpe_beam::bind_pipeline(m);
  bpe_beam::bind_counting(m);
  bpe_beam::bind_learning(m);
  bpe_beam::bind_models(m);
  bpe_beam::bind_encoding(m);
  bpe_beam::bind_decoding(m);
  bpe_beam::bind_json(m);
  bpe_beam::bind_records(m);
  bpe_beam::bind_rounds(m);
  bpe_beam::bind_shards(m);
  bpe_beam::bind_unigram(m);
}
