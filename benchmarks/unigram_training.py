"""Compare the training of pieces with SentencePiece's and with BPE: time, memory, compression.

    python benchmarks/unigram_training.py CORPUS.jsonl [MORE.jsonl ...] [--vocab-size 32000]
        [--held-out-megabytes 1] [--threads 2] [--character-coverage 0.9995]
        [--contestants sentencepiece,unigram,mingram,bpe]

A corpus is JSON Lines with a field `text`, such as files of benchmarks/corpora.py. Texts become
lines with single spaces, since SentencePiece trains on lines; the last of them are held out. Each
contestant is a process of its own that reads a file of lines and writes a model. Times are seconds
of all processors (and of the clock), memory is the peak of the process. Compression is bytes and
words of the held-out lines for each token. Pieces are compared with the first contestant's. `bpe`
has as many characters as the others; `tokenizers` has all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

CONTESTANTS = (
    "sentencepiece", "unigram", "mingram", "mingram_any_script", "bpe", "tokenizers",
)  # fmt: skip
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


def characters_of(lines: list[str], coverage: float) -> int:
    """Return how many characters, the most frequent first, cover a share of the text."""
    counts = Counter("".join(lines))
    left, number = coverage * counts.total(), 0
    for _, count in counts.most_common():
        left, number = left - count, number + (left > 0)
    return number


def train(
    contestant: str, file: Path, output: Path, vocab_size: int, threads: int, coverage: float
) -> None:
    """Train with another package in this process."""
    if contestant == "sentencepiece":
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input=str(file), model_prefix=str(output / "tokenizer"), vocab_size=vocab_size,
            model_type="unigram", character_coverage=coverage, num_threads=threads,
            normalization_rule_name="identity", max_sentence_length=1 << 30, bos_id=-1, eos_id=-1,
            unk_id=0, minloglevel=1,
        )  # fmt: skip
        return
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    os.environ["RAYON_NUM_THREADS"] = str(threads)
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    with file.open(encoding="utf-8") as lines:
        tokenizer.train_from_iterator((line.removesuffix("\n") for line in lines), trainer)
    tokenizer.save(str(output / "tokenizer.json"))


def command_of(
    contestant: str, file: Path, output: Path, vocab_size: int, threads: int, coverage: float,
    characters: int,
) -> list[str]:  # fmt: skip
    """Return the arguments of Python that train."""
    if contestant in ("sentencepiece", "tokenizers"):
        return [
            __file__, str(file), "--alone", contestant, str(output), "--vocab-size",
            str(vocab_size), "--threads", str(threads), "--character-coverage", str(coverage),
        ]  # fmt: skip
    contestant, any_script, _ = contestant.partition("_any_script")
    options = ["--normalizer", "dummy_prefix", "--pretokenizer", "metaspace", "--quiet"]
    if any_script:
        options += ["--split-by-unicode-script", "false"]
    if contestant == "bpe":
        options += ["--unk-token", "<unk>", "--limit-alphabet", str(characters)]
    else:
        options += ["--character-coverage", str(coverage)]
    return [
        "-m", "bpe_beam", "train", "--model", contestant, "--input", str(file), "--input-format",
        "text", "--vocab-size", str(vocab_size), "--output", str(output / "out"), *options,
        "--workers", str(threads),
    ]  # fmt: skip


# A process begins with the peak of the one that starts it, which therefore has to be small.
_MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, *sys.argv[1:]], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss, used.ru_utime + used.ru_stime)
"""


def measure(contestant: str, held_out: list[str], **settings: object) -> set[str]:
    """Train in a process of its own, print the figures, and return the pieces."""
    from bpe_beam import Tokenizer

    with tempfile.TemporaryDirectory() as folder:
        command = command_of(contestant, output=Path(folder), **settings)  # type: ignore[arg-type]
        begun = time.monotonic()
        small = [sys.executable, "-c", _MEASURED, *command]
        ran = subprocess.run(small, check=True, stdout=subprocess.PIPE, text=True)
        seconds = time.monotonic() - begun
        memory, cpu = ran.stdout.split()[-2:]
        names = ("tokenizer.model", "out/tokenizer.json", "tokenizer.json")
        path = next(Path(folder, name) for name in names if Path(folder, name).exists())
        tokenizer = Tokenizer.from_file(str(path))
        tokens = sum(map(len, tokenizer.encode_batch(held_out)))
    size = sum(len(line.encode()) for line in held_out)
    words = sum(len(line.split()) for line in held_out)
    print(
        f"{contestant:18} {float(cpu):8.1f} s of processors, {seconds:8.1f} s, "
        f"{int(memory) / 1000:8,.0f} MB; held out: {size / tokens:.4f} bytes a token, "
        f"{tokens / words:.4f} tokens a word",
        end="",
    )
    return set(tokenizer.vocab)


def main() -> None:
    """Measure all contestants on each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--held-out-megabytes", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--character-coverage", type=float, default=0.9995)
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = {
        "vocab_size": arguments.vocab_size,
        "threads": arguments.threads,
        "coverage": arguments.character_coverage,
    }
    if arguments.alone:
        contestant, folder = arguments.alone
        train(contestant, arguments.corpora[0], Path(folder), **settings)
        return
    for corpus in arguments.corpora:
        training, held_out = divided(lines_of(corpus), arguments.held_out_megabytes)
        characters, first = characters_of(training, arguments.character_coverage), set[str]()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "lines.txt")
            file.write_text("\n".join(training) + "\n", encoding="utf-8")
            print(
                f"{corpus.name}, {arguments.vocab_size:,} entries: "
                f"{file.stat().st_size / 1e6:.1f} MB, {len(training):,} lines, "
                f"{characters:,} characters"
            )
            del training
            for contestant in arguments.contestants.split(","):
                more = {"file": file, "characters": characters, **settings}
                pieces = measure(contestant, held_out, **more)
                first = first or pieces
                print(f"; {len(pieces & first) / len(pieces):.1%} of the pieces", flush=True)


if __name__ == "__main__":
    main()
