"""Compare the training of pieces with SentencePiece's and with BPE: time, memory, compression.

    python benchmarks/unigram_training.py CORPUS.jsonl [MORE.jsonl ...] [--vocab-size 32000]
        [--held-out-megabytes 1] [--contestants unigram,mingram,bpe,sentencepiece]

A corpus is JSON Lines with a field `text`, such as files of benchmarks/corpora.py. Texts become
lines with single spaces, since SentencePiece trains on lines; the last of them are held out. Each
contestant is a process of its own that reads a file of lines and writes a model. Times are seconds
of all processors (and of the clock), memory is the peak of the process. Compression is bytes and
words of the held-out lines for each token.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONTESTANTS = ("unigram", "mingram", "mingram_any_script", "bpe", "sentencepiece")
"""With `_any_script`, pieces have letters, digits and signs together, as the tokens of BPE have."""


def lines_of(path: Path) -> list[str]:
    """Return the lines of all texts of a corpus, with single spaces."""
    found = []
    with path.open(encoding="utf-8") as rows:
        for row in rows:
            lines = (" ".join(line.split()) for line in json.loads(row)["text"].splitlines())
            found += [line for line in lines if line and "\0" not in line]
    return found


def divided(lines: list[str], megabytes: float) -> tuple[list[str], list[str]]:
    """Return the lines to train on, and the last ones, of so many megabytes."""
    left, end = megabytes * 1e6, len(lines)
    while left > 0 and end > 0:
        end -= 1
        left -= len(lines[end].encode()) + 1
    return lines[:end], lines[end:]


def train(contestant: str, file: Path, output: Path, vocab_size: int, threads: int) -> None:
    """Train in this process, or with the command."""
    if contestant == "sentencepiece":
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input=str(file), model_prefix=str(output / "tokenizer"), vocab_size=vocab_size,
            model_type="unigram", character_coverage=0.9995, num_threads=threads,
            normalization_rule_name="identity", max_sentence_length=1 << 30, bos_id=-1, eos_id=-1,
            unk_id=0, minloglevel=1,
        )  # fmt: skip
        return
    options = ["--normalizer", "dummy_prefix", "--pretokenizer", "metaspace", "--quiet"]
    contestant, any_script, _ = contestant.partition("_any_script")
    if any_script:
        options += ["--split-by-unicode-script", "false"]
    if contestant == "bpe":
        options += ["--unk-token", "<unk>", "--limit-alphabet", "2000"]
    command = [
        "train", "--model", contestant, "--input", str(file), "--input-format", "text",
        "--vocab-size", str(vocab_size), "--output", str(output / "out"), *options,
        "--workers", str(threads),
    ]  # fmt: skip
    subprocess.run([sys.executable, "-m", "bpe_beam", *command], check=True)


def measure(contestant: str, train_file: Path, held_out: list[str], options: list[str]) -> None:
    """Train in a process of its own, and print the figures."""
    from bpe_beam import Tokenizer

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(train_file), "--alone", contestant, folder]
        begun, before = time.monotonic(), os.times()
        process = subprocess.Popen([*command, *options])
        assert process.wait() == 0
        seconds, after = time.monotonic() - begun, os.times()
        cpu = after.children_user + after.children_system
        cpu -= before.children_user + before.children_system
        memory = Path(folder, "memory").read_text()
        names = ("tokenizer.model", "out/tokenizer.json")
        path = next(Path(folder, name) for name in names if Path(folder, name).exists())
        tokens = sum(map(len, Tokenizer.from_file(str(path)).encode_batch(held_out)))
    size = sum(len(line.encode()) for line in held_out)
    words = sum(len(line.split()) for line in held_out)
    print(
        f"{contestant:15} {cpu:8.1f} s of processors, {seconds:8.1f} s, "
        f"{int(memory) / 1000:8,.0f} MB; held out: {size / tokens:.4f} bytes a token, "
        f"{tokens / words:.4f} tokens a word",
        flush=True,
    )


def main() -> None:
    """Measure all contestants on each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--held-out-megabytes", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        contestant, folder = arguments.alone
        file = arguments.corpora[0]
        train(contestant, file, Path(folder), arguments.vocab_size, arguments.threads)
        processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        peak = max(resource.getrusage(process).ru_maxrss for process in processes)
        Path(folder, "memory").write_text(str(peak))
        return
    options = ["--vocab-size", str(arguments.vocab_size), "--threads", str(arguments.threads)]
    for corpus in arguments.corpora:
        training, held_out = divided(lines_of(corpus), arguments.held_out_megabytes)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "lines.txt")
            file.write_text("\n".join(training) + "\n", encoding="utf-8")
            print(f"{corpus.name}: {file.stat().st_size / 1e6:.1f} MB, {len(training):,} lines")
            for contestant in arguments.contestants.split(","):
                measure(contestant, file, held_out, options)


if __name__ == "__main__":
    main()
