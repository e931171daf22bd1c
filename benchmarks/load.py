"""Measure how long a tokenizer file takes to load, beside `tokenizers`.

    python benchmarks/load.py --runs 7 [tokenizer.json ...]

Without files, three are made, of the sizes of GPT-2's, Llama 3's and BERT's: a vocabulary of
random words, and merges that make them. Each library loads the same file in turn, in one
process (imports done) and in fresh processes (imports included); `first` adds the encoding of one
short text, for which this package builds its tables. Medians in milliseconds; the ratios are
medians of pairs, and below 1 where this package is faster.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_beam.tokenizer.byte_level import BYTE_TO_CHAR

SIZES = {"gpt2": 50_257, "llama3": 128_256}
WORDPIECE = 30_522
OURS = "from bpe_beam import Tokenizer; t = Tokenizer.from_file({!r})"
THEIRS = "from tokenizers import Tokenizer; t = Tokenizer.from_file({!r})"


def byte_level_file(size: int, rng: random.Random) -> dict[str, Any]:
    """Return a byte-level BPE tokenizer of `size` tokens as tokenizer.json."""
    vocab = {char: number for number, char in enumerate(BYTE_TO_CHAR)}
    tokens, merges = list(vocab), []
    while len(vocab) < size:
        left, right = rng.choice(tokens), rng.choice(tokens[:2000])
        if left + right not in vocab and len(left + right) < 12:
            vocab[left + right] = len(vocab)
            tokens.append(left + right)
            merges.append([left, right])
    bytes_alone = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", **bytes_alone},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", **bytes_alone},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": size > SIZES["gpt2"],
            "vocab": vocab,
            "merges": merges,
        },
    }


def wordpiece_file(size: int, rng: random.Random) -> dict[str, Any]:
    """Return a WordPiece tokenizer of `size` tokens as tokenizer.json."""
    vocab = {"[UNK]": 0}
    while len(vocab) < size:
        word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(1, 8)))
        vocab.setdefault(rng.choice(["", "##"]) + word, len(vocab))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def made_files(folder: Path) -> list[str]:
    """Write the three files; return their paths."""
    rng = random.Random(1)
    files = {name: byte_level_file(size, rng) for name, size in SIZES.items()}
    files["bert"] = wordpiece_file(WORDPIECE, rng)
    for name, file in files.items():
        text = json.dumps(file, ensure_ascii=False, indent=2)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return [str(folder / f"{name}.json") for name in files]


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def run(code: str) -> None:
    """Run code in a fresh process."""
    subprocess.run([sys.executable, "-c", code], check=True)


def in_one_process(path: str, first: bool) -> tuple[float, float]:
    """Return the seconds of both libraries, one after the other."""
    import tokenizers

    import bpe_beam

    def load(library: Any) -> None:
        tokenizer = library.Tokenizer.from_file(path)
        if first:
            tokenizer.encode("Hello")

    return seconds(lambda: load(bpe_beam)), seconds(lambda: load(tokenizers))


def in_fresh_processes(path: str, first: bool) -> tuple[float, float]:
    """Return the same with the start of Python and the imports."""
    end = "; t.encode('Hello')" if first else ""
    ours, theirs = OURS.format(path) + end, THEIRS.format(path) + end
    return seconds(lambda: run(ours)), seconds(lambda: run(theirs))


def main() -> None:
    """Measure, and print a row for each file and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'file':24} {'way':24} {'ours ms':>8} {'theirs ms':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.files or made_files(Path(folder)):
            for name, measure in (("one", in_one_process), ("fresh", in_fresh_processes)):
                for first in (False, True):
                    pairs = [measure(path, first) for _ in range(arguments.runs + 1)][1:]
                    ours, theirs = (
                        1000 * statistics.median(column) for column in zip(*pairs, strict=True)
                    )
                    ratio = statistics.median(a / b for a, b in pairs)
                    way = f"{name} process{', first' if first else ''}"
                    print(f"{Path(path).name:24} {way:24} {ours:8.0f} {theirs:9.0f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
