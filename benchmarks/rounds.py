"""Compare training in rounds with training in memory: time, memory, steps. Linux only.

    python benchmarks/long_words.py COUNTS_FOLDER --words 1000000
    python benchmarks/rounds.py COUNTS_FOLDER --driver-memory 500MB

Trains once with `--merge-rounds local`, with unlimited memory, and then with `distributed` in each
requested way. For each run it prints the seconds and CPU seconds of the whole command and the peaks
of resident memory, as in `benchmarks/runners.py`: on the local engine the workers are threads of
the driver, so its peak includes both. Then it prints a line for each round: the merges; the symbols
of all words, and of the segments from which the driver learned; the shuffled megabytes; the seconds
of the round, and the seconds in which the driver learned. For the local engine it also prints the
CPU seconds of each step in all rounds; the rest is imports, Beam, and Arrow's own threads. Ends
with 1 if the tokenizers differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from runners import KINDS, WAYS, Sampler, measure, runner

LOCAL = "local"
PLAIN = "plain"
STEPS = {
    "bpe_beam.workers.rounds.merge_steps": {
        "see_part": "see the symbols",
        "apply_merges": "rewrite, count pairs",
        "sum_pairs": "sum pairs",
        "segment_words": "cut",
        "add_segments": "add segments",
    },
    "bpe_beam.jobs.train.round_learning": {
        "gather": "read segments",
        "cut_to_fit": "read and cut segments",
        "learn_round": "learn",
    },
}


def timed(call: Callable[..., Any], name: str, seconds: dict[str, float]) -> Callable[..., Any]:
    """Return a function that adds its thread's CPU seconds to a sum."""
    lock = threading.Lock()

    @wraps(call)
    def timing(*args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        try:
            return call(*args, **kwargs)
        finally:
            with lock:
                seconds[name] += time.thread_time() - began

    return timing


def train_here(steps: Path, how: str, line: list[str]) -> None:
    """Run the command in this process, with a clock at each step."""
    import importlib

    from bpe_beam.cli.main import main as command
    from bpe_beam.jobs.train.round_learning import RoundLearner

    if how == PLAIN:
        RoundLearner._fitting_segments = lambda *_: None  # type: ignore[method-assign]
    seconds: dict[str, float] = defaultdict(float)
    for module_name, functions in STEPS.items():
        module = importlib.import_module(module_name)
        for function, name in functions.items():
            setattr(module, function, timed(getattr(module, function), name, seconds))
    code = command(line)
    steps.write_text(json.dumps(seconds))
    sys.exit(code)


def train(
    arguments: argparse.Namespace, folder: Path, way: str
) -> tuple[float, Sampler, dict[str, Any], dict[str, float]]:
    """Train one way; return the seconds, the sampler, the summary, and each step's seconds."""
    rounds = "local" if way == LOCAL else "distributed"
    memory = "1TB" if way == LOCAL else arguments.driver_memory
    line = ["train", "--counts", arguments.counts, "--vocab-size", str(arguments.vocab_size)]
    line += ["--merge-rounds", rounds, "--driver-memory", memory, "--quiet"]
    line += ["--output", str(folder / "out"), "--summary-file", str(folder / "summary.json")]
    steps = folder / "steps.json"
    steps.unlink(missing_ok=True)
    program = [sys.executable, "-m", "bpe_beam"]
    if way == LOCAL:
        seconds, seen = measure([*program, *line], set())
    else:
        if way.startswith("in process"):
            how = PLAIN if arguments.plain else "cuts"
            program = [sys.executable, __file__, "--here", str(steps), how]
        with runner(way, folder) as (flags, sessions):
            seconds, seen = measure([*program, *line, *flags], sessions)
    summary = json.loads((folder / "summary.json").read_text())
    return seconds, seen, summary, json.loads(steps.read_text()) if steps.exists() else {}


def print_rounds(summary: dict[str, Any]) -> None:
    """Print a line for each round."""
    names = ("merges", "threshold", "symbols", "pairs", "segment_symbols")
    print(f"  {'round':>5}" + "".join(f"{name:>17}" for name in names), end="")
    print(f"{'shuffled MB':>13}{'seconds':>9}{'learning':>10}  learned from")
    for row in summary["rounds"]:
        print(f"  {row['round']:5}" + "".join(f"{row[name]:17,}" for name in names), end="")
        print(f"{row['shuffled_bytes'] / 1e6:13.1f}{row['seconds']:9.1f}", end="")
        print(f"{row['learning_seconds']:10.1f}  {row['learned_from']}")


def print_steps(steps: dict[str, float], seen: Sampler) -> None:
    """Print what each step took, and the rest of the process."""
    rest = seen.cpu_seconds - sum(steps.values())
    for name, seconds in {**steps, "all else": rest}.items():
        share = seconds / seen.cpu_seconds
        print(f"  {name:24}{seconds:9.1f} CPU s{share:7.1%}")


def main() -> None:
    """Train each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", help="a counts folder")
    parser.add_argument("--driver-memory", default="500MB")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--only", nargs="*", default=["in process, 2 workers"], choices=WAYS)
    parser.add_argument("--plain", action="store_true", help="by the best pairs alone, in process")
    parser.add_argument("--no-local", action="store_true", help="where it takes too much memory")
    if sys.argv[1:2] == ["--here"]:
        train_here(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    arguments = parser.parse_args()
    print(f"{'':29}{'seconds':>9}{'CPU s':>9}", end="")
    print("".join(f"{kind + ' MB':>12}" for kind in KINDS) + f"{'rounds':>8}{'jobs':>6}")
    expected, different = None, []
    for way in [*([] if arguments.no_local else [LOCAL]), *arguments.only]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            seconds, seen, summary, steps = train(arguments, folder, way)
            made = (folder / "out" / "tokenizer.json").read_bytes()
        peaks = "".join(f"{seen.peaks[kind] / 1e6:12.0f}" for kind in KINDS)
        print(f"{way:29}{seconds:9.1f}{seen.cpu_seconds:9.1f}{peaks}", end="")
        print(f"{len(summary.get('rounds') or ()):8}{summary.get('jobs') or 0:6}", flush=True)
        if way != LOCAL:
            print_rounds(summary)
        if steps:
            print_steps(steps, seen)
        expected = expected or made
        different += [way] if made != expected else []
    print(f"different: {'; '.join(different)}" if different else "the same bytes each way")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
