"""`encode_batch` beside other tokenizers: one thread, cold and warm, equal ids first.

    python benchmarks/encode.py CORPUS.jsonl.gz ... --tokenizer gpt2.json [--runs 3]
        [--python rc=/path/to/other/venv/bin/python]

Each measurement is a process of its own, and the contestants take turns. It loads the tokenizer
(measured as "load"), encodes ten words ("first"), then the corpus twice: the first pass is "cold",
the second "warm". Times are CPU seconds, so that other processes of the machine matter less; MB are
10^6 bytes of UTF-8. Each contestant's ids are compared by a hash; one that differs is marked.

`--python NAME=PATH` runs `tokenizers` also with another interpreter, for another version of it.
Contestants that are not installed are left out (pip install gigatoken fastokens tiktoken).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP = "It's ten words that nothing else here depends on."
KEPT = ("load", "first", "cold", "warm")


def read_texts(path: Path) -> list[str]:
    """Return the documents of a corpus: JSON Lines with a field `text`, gzipped or not."""
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    return [json.loads(line)["text"] for line in lines]


def flat(rows: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return the ids of all rows in one array."""
    return np.concatenate([np.asarray(row, np.uint32) for row in rows])


def bpe_beam(path: str, *, arrow: bool) -> tuple[Callable[[list[str]], Any], Callable[[Any], Any]]:
    """Return how bpe-beam encodes, and how its ids are read.

    Args:
        path: A tokenizer.json.
        arrow: Whether texts are Arrow strings, as in the jobs, or a list of str.
    """
    import pyarrow as pa

    from bpe_beam import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    if not arrow:
        return tokenizer.encode_batch, lambda found: found.flatten().to_numpy()
    made: dict[int, pa.Array] = {}

    def encode(texts: list[str]) -> Any:
        return tokenizer.encode_batch(made[id(texts)])

    encode.prepare = lambda texts: made.update(  # type: ignore[attr-defined]
        {id(texts): pa.array(texts, pa.large_string())}
    )
    return encode, lambda found: found.flatten().to_numpy()


def gigatoken(path: str) -> tuple[Callable[[list[str]], Any], Callable[[Any], Any]]:
    """Return how gigatoken encodes, and how its ids are read."""
    import gigatoken as gt

    tokenizer = gt.Tokenizer.from_json(Path(path).read_bytes())

    def ids(found: Any) -> Any:
        import awkward as ak

        return ak.to_numpy(ak.flatten(found))

    return tokenizer.encode_batch, ids


def fastokens(path: str) -> tuple[Callable[[list[str]], Any], Callable[[Any], Any]]:
    """Return how fastokens encodes, and how its ids are read."""
    import fastokens as ft

    tokenizer = ft.Tokenizer.from_file(path)
    return tokenizer.encode_batch, lambda found: flat(getattr(row, "ids", row) for row in found)


def tokenizers(path: str) -> tuple[Callable[[list[str]], Any], Callable[[Any], Any]]:
    """Return how `tokenizers` encodes, by its fastest call, and how its ids are read."""
    import tokenizers as hf

    tokenizer = hf.Tokenizer.from_file(path)
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return (
        lambda texts: encode(texts, add_special_tokens=False),
        lambda found: flat(getattr(row, "ids", row) for row in found),
    )


def tiktoken(path: str) -> tuple[Callable[[list[str]], Any], Callable[[Any], Any]]:
    """Return how tiktoken encodes with the file's tokens and pattern, and how its ids are read."""
    import tiktoken as tk

    from bpe_beam.tokenizer import byte_level
    from bpe_beam.tokenizer.patterns import NAMED_PATTERNS

    spec = json.loads(Path(path).read_text())
    to_byte = {char: byte for byte, char in enumerate(byte_level.BYTE_TO_CHAR)}
    special = {token["content"]: token["id"] for token in spec["added_tokens"]}
    ranks = {
        bytes(to_byte[char] for char in token): rank
        for token, rank in spec["model"]["vocab"].items()
        if token not in special
    }
    steps = spec["pre_tokenizer"].get("pretokenizers", [spec["pre_tokenizer"]])
    named = NAMED_PATTERNS["gpt2"].expression
    pattern = next((step["pattern"]["Regex"] for step in steps if "pattern" in step), named)
    encoding = tk.Encoding("corpus", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    return lambda texts: encoding.encode_ordinary_batch(texts, num_threads=1), flat


CONTESTANTS: dict[str, Callable[[str], tuple[Callable[[list[str]], Any], Callable[[Any], Any]]]] = {
    "bpe-beam": lambda path: bpe_beam(path, arrow=True),
    "bpe-beam, str": lambda path: bpe_beam(path, arrow=False),
    "gigatoken": gigatoken,
    "fastokens": fastokens,
    "tokenizers": tokenizers,
    "tiktoken": tiktoken,
}


def measure(name: str, tokenizer: str, corpus: Path) -> None:
    """Measure one contestant in this process, and print a line of JSON.

    Args:
        name: One of CONTESTANTS.
        tokenizer: A tokenizer.json.
        corpus: The corpus.
    """
    texts = read_texts(corpus)

    def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
        started = time.process_time()
        result = work()
        return time.process_time() - started, result

    result: dict[str, Any] = {}
    result["load"], (encode, ids) = seconds(lambda: CONTESTANTS[name](tokenizer))
    prepare = getattr(encode, "prepare", lambda _: None)
    few = [WARM_UP]
    prepare(few)
    prepare(texts)
    result["first"], _ = seconds(lambda: encode(few))
    result["cold"], found = seconds(lambda: encode(texts))
    array = np.asarray(ids(found), np.uint32)
    result["ids"] = len(array)
    result["hash"] = hashlib.sha256(array.tobytes()).hexdigest()[:16]
    del found, array
    result["warm"], _ = seconds(lambda: encode(texts))
    print(json.dumps(result))


def run_one(python: str, name: str, tokenizer: str, corpus: Path) -> dict[str, Any] | None:
    """Return a measurement by a process of its own, or None with the reason on standard error.

    Args:
        python: The interpreter.
        name: One of CONTESTANTS.
        tokenizer: A tokenizer.json.
        corpus: The corpus.
    """
    command = [python, __file__, "--measure", name, "--tokenizer", tokenizer, str(corpus)]
    threads = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **threads}
    )
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(corpus: Path, arguments: argparse.Namespace) -> None:
    """Measure every contestant on a corpus, and print a row for each.

    Args:
        corpus: The corpus.
        arguments: The command line's.
    """
    size = sum(len(text.encode()) for text in read_texts(corpus))
    print(f"\n{corpus.name}: {size / 1e6:.1f} MB, {Path(arguments.tokenizer).name}")
    wanted = arguments.only or list(CONTESTANTS)
    rows = [(name, sys.executable, name) for name in CONTESTANTS if name in wanted]
    others = [pair.split("=", 1) for pair in arguments.python]
    rows += [(f"tokenizers {label}", python, "tokenizers") for label, python in others]
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.runs):
        for label, python, name in rows:
            result = run_one(python, name, arguments.tokenizer, corpus)
            if result is not None:
                found.setdefault(label, []).append(result)
    print(f"{'':20} {'cold':>12} {'warm':>12} {'load, ms':>9} {'first, ms':>9}")
    reference = next(iter(found.values()))[0]["hash"]
    for label, results in found.items():
        load, first, cold, warm = (
            statistics.median(result[key] for result in results) for key in KEPT
        )
        print(
            f"{label:20} {size / cold / 1e6:7.1f} MB/s {size / warm / 1e6:7.1f} MB/s "
            f"{load * 1e3:9.0f} {first * 1e3:9.1f}"
            f"{'' if results[0]['hash'] == reference else '   OTHER IDS'}",
            flush=True,
        )


def main() -> None:
    """Compare, or measure one contestant for the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path, help="JSON Lines with a field text")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, help="the contestants")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--measure", choices=CONTESTANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        if arguments.measure:
            measure(arguments.measure, arguments.tokenizer, corpus)
        else:
            compare(corpus, arguments)


if __name__ == "__main__":
    main()
