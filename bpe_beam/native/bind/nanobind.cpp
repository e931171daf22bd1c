// The sources of nanobind, which setup.py finds, as one unit of the module.
#include <nb_combined.cpp>
