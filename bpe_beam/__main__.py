"""`python -m bpe_beam`: the command line, where its script is not on the path."""

from bpe_beam.cli.start import run

if __name__ == "__main__":
    run()
