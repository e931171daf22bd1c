// The sources of nanobind, which setup.py locates, as one translation unit of the module.
#include <nb_combined.cpp>
