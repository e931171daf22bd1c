// The module by subjects: each function adds the classes and functions of one subject to it.
#pragma once

#include <nanobind/nanobind.h>

namespace bpe_beam {

void bind_counting(nanobind::module_& m);
void bind_decoding(nanobind::module_& m);
void bind_encoding(nanobind::module_& m);
void bind_json(nanobind::module_& m);
void bind_learning(nanobind::module_& m);
void bind_models(nanobind::module_& m);
void bind_normalizing(nanobind::module_& m);
void bind_pipeline(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_rounds(nanobind::module_& m);
void bind_scanning(nanobind::module_& m);
void bind_shards(nanobind::module_& m);
void bind_unigram(nanobind::module_& m);

}  // namespace bpe_beam
