"""`bpe-beam stream-tokenize` as a file that starts its pipeline; no logic."""

import sys

if __name__ == "__main__":
    # Python looks for modules next to the script first, and `tokenize` there is not the standard
    # library's, which Beam's imports need.
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    from bpe_beam.cli.start import run

    run(["stream-tokenize", *sys.argv[1:]])
