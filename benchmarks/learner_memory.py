"""Measure the peak memory of a trainer, by the number of its unique words.

    python benchmarks/learner_memory.py COUNTS_FOLDER ... --vocab-size 32000

It tests the estimate of bpe_beam/training/merges/words.py on real text; `memory.py` does so on
random bytes. Each folder, made by `bpe-beam count`, is trained on in a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from bpe_beam.counts.manifest import read_manifest
from bpe_beam.counts.part_files import iter_words
from bpe_beam.storage import Storage
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import gather_words, memory_needed
from bpe_beam.training.recipe import BpeRecipe


def peak_bytes() -> int:
    """Return this process's peak memory so far in bytes (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(folder: str, vocab_size: int) -> None:
    """Train once, and print time and memory."""
    storage = Storage()
    manifest = read_manifest(storage, folder)
    before = peak_bytes()
    words = gather_words(iter_words(storage, folder, manifest), in_order_of_place=False)
    recipe = BpeRecipe(vocab_size)
    learn(words, recipe)
    taken = peak_bytes() - before
    estimate = memory_needed(manifest.word_bytes, manifest.unique_words, recipe)
    print(
        f"{folder}: {manifest.unique_words:,} words of {manifest.word_bytes:,} bytes took "
        f"{taken / 1e6:,.0f} MB, {taken / manifest.word_bytes:.0f} bytes a byte; the estimate is "
        f"{estimate / 1e6:,.0f} MB"
    )


def main() -> None:
    """Measure each folder in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--here", action="store_true", help="in this process: one folder")
    arguments = parser.parse_args()
    if arguments.here:
        measure(arguments.folders[0], arguments.vocab_size)
        return
    for folder in arguments.folders:
        size = str(arguments.vocab_size)
        command = [sys.executable, __file__, "--here", folder, "--vocab-size", size]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
