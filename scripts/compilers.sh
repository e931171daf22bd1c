#!/bin/sh
# Check that the native module compiles without a warning, with each compiler that is named.
#
#   scripts/compilers.sh g++-11 clang++-19
#
# It takes half a minute of a core for each. The Python in .venv, or $PYTHON, has nanobind.
set -eu
cd "$(dirname "$0")/.."
: "${PYTHON:=.venv/bin/python}"
folders=$("$PYTHON" -c "
import pathlib, sysconfig, nanobind
nanobind = pathlib.Path(nanobind.include_dir()).parent
found = [nanobind / 'include', nanobind / 'src', nanobind / 'ext/robin_map/include']
print(*(f'-isystem {folder}' for folder in [sysconfig.get_paths()['include'], *found]))")
# Newer Clangs warn of what std::stable_sort of older libraries calls.
for compiler in "$@"; do
  echo "$compiler: $("$compiler" --version | head -n 1)"
  # shellcheck disable=SC2086 # several options
  find bpe_beam/native -name '*.cpp' -print0 | xargs -0 -n 1 -P 2 "$compiler" -std=c++20 \
    -fsyntax-only -fvisibility=hidden -fno-strict-aliasing -Wall -Wextra -Werror -Wno-deprecated-declarations -DNDEBUG \
    -DNB_COMPACT_ASSERTIONS -Ibpe_beam/native $folders
done
