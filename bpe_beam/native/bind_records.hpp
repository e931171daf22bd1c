#pragma once
#include <pybind11/pybind11.h>
inline void bind_records(pybind11::module_&) {}
