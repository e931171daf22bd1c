// What the kernels' tests need: a check that says what failed and where, and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(...)                                                                         \
  do {                                                                                     \
    if (!(__VA_ARGS__)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)

/// Checks that evaluating what follows the type throws it.
#define CHECK_THROWS(Type, ...)                                                            \
  do {                                                                                     \
    bool check_thrown = false;                                                             \
    try {                                                                                  \
      static_cast<void>(__VA_ARGS__);                                                      \
    } catch (const Type&) {                                                                \
      check_thrown = true;                                                                 \
    }                                                                                      \
    if (!check_thrown) {                                                                   \
      std::fprintf(stderr, "%s:%d: no %s: %s\n", __FILE__, __LINE__, #Type, #__VA_ARGS__); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)
