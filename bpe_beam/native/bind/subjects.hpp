// The parts of the module by subject: each function adds the classes and functions of one to it.
#pragma once

#include <pybind11/pybind11.h>

namespace bpe_beam {

void bind_counting(pybind11::module_& m);
void bind_decoding(pybind11::module_& m);
void bind_encoding(pybind11::module_& m);
void bind_json(pybind11::module_& m);
void bind_learning(pybind11::module_& m);
void bind_models(pybind11::module_& m);
void bind_normalizing(pybind11::module_& m);
void bind_pipeline(pybind11::module_& m);
void bind_records(pybind11::module_& m);
void bind_rounds(pybind11::module_& m);
void bind_scanning(pybind11::module_& m);
void bind_shards(pybind11::module_& m);

}  // namespace bpe_beam
