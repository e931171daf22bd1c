#!/bin/sh
# Run the exhaustive tests that CI runs a smaller case of: every code point in every context,
# thousands of random files and patterns, jobs killed by the clock, and long fuzzing.
#
#   scripts/scheduled_tests.sh [options of pytest]
#
# Run it before a release, and after a change of what they test. It takes about an hour of two
# cores, 12 GB of temporary files, and the environment in .venv with the extra `test`. Those on
# runners want what the marker `runners` wants: pytest -m 'scheduled and runners'. 100 faults of hosts,
# three hours and more: BPE_BEAM_TRIALS_LOG=FILE pytest -m 'scheduled and hosts'. On every Python:
# BPE_BEAM_ALL_PYTHONS=1 .ci/run
set -eu
cd "$(dirname "$0")/.."
.venv/bin/pytest -m 'scheduled and not runners and not hosts' "$@"
BPE_BEAM_FUZZ_ROUNDS="${BPE_BEAM_FUZZ_ROUNDS:-2000000}" .venv/bin/pytest -m slow \
  tests/native/test_fuzz.py "$@"
