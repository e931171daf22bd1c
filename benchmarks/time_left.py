"""Measure how good the time left is that jobs show.

    python benchmarks/time_left.py english.jsonl chinese.jsonl --vocab-sizes 32000 128000
    python benchmarks/time_left.py 'mixed/*.jsonl' --together --jobs count tokenize

The corpora are any files of text, such as those of benchmarks/corpora.py; `--together` makes one
corpus of them all. Each job runs in this process. While a stage goes on, the time left that it says
is noted twenty times a second, and compared with what was left in truth.

A row is a stage: its seconds; from its first tenth on, the share of moments at which what was said
is within 20 % of all time, the same within 20 % of what was left, and the largest error; then the
errors after each tenth, in percent of all time. Positive: it said more than was left. With `--clock
cpu`, the default, time is this process's CPU time, so that other programs disturb less; a stage
whose last task runs alone then seems shorter at its end. Moments without an estimate are counted as
wrong.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from itertools import count as numbers
from pathlib import Path
from typing import Any, NamedTuple

from bpe_beam import progress
from bpe_beam.jobs import count, evaluate, tokenize, train
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.settings.tokenize import ArrangementSettings, TokenizeSettings
from bpe_beam.settings.train import TrainSettings

JOBS = ("count", "train", "tokenize", "arrange", "evaluate")
PAUSE = 0.05
TOLERANCE = 0.2


class Moment(NamedTuple):
    """What a stage said: the seconds since it began, and the seconds left."""

    seconds: float
    left: float | None


class RecordedStage(Stage):
    """A stage that notes what it says; `moments` are complete when it has ended."""

    def __init__(self, name: str, total: int | None, unit: str) -> None:
        super().__init__(name, total, unit, None)
        self.moments: list[Moment] = []
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> RecordedStage:
        super().__enter__()
        self._watcher.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._watcher.join()
        self._note()
        super().__exit__(*error)

    def _watch(self) -> None:
        while not self._ended.wait(PAUSE):
            self._note()

    def _note(self) -> None:
        now = self.snapshot()
        self.moments.append(Moment(now.seconds, now.eta_seconds))


class Recorder(Progress):
    """Makes stages that are recorded."""

    def __init__(self) -> None:
        super().__init__("none")
        self.stages: list[RecordedStage] = []

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """See `Progress.stage`."""
        self.stages.append(RecordedStage(name, total, unit))
        return self.stages[-1]


def row_of(moments: list[Moment]) -> str:
    """Return the figures of a stage."""
    end = moments[-1].seconds
    late = [moment for moment in moments[:-1] if moment.seconds >= end / 10]
    errors = [
        (moment.left - (end - moment.seconds)) / end for moment in late if moment.left is not None
    ]
    if not errors:
        return f"{end:7.2f} s  too short"
    of_left = [
        moment
        for moment in late
        if moment.left is not None
        and abs(moment.left - (end - moment.seconds)) <= TOLERANCE * (end - moment.seconds)
    ]
    right = sum(abs(error) <= TOLERANCE for error in errors) / len(late)
    tenths = []
    for tenth in range(1, 10):
        nearest = min(late, key=lambda moment: abs(moment.seconds - end * tenth / 10))
        left = nearest.left
        said = "?" if left is None else f"{(left - (end - nearest.seconds)) / end:+.0%}"
        tenths.append(f"{said:>5}")
    worst = max(errors, key=abs)
    return f"{end:7.2f} s {right:6.0%} {len(of_left) / len(late):6.0%} {worst:+6.0%}  " + " ".join(
        tenths
    )


class Bench:
    """Runs jobs on one corpus, each into a folder of its own."""

    def __init__(self, folder: Path, inputs: tuple[str, ...], workers: int | None) -> None:
        self._input = InputSettings(inputs=inputs)
        self._run = RunSettings(workers=workers, quiet=True)
        self._names = (str(folder / f"{number}") for number in numbers())
        self._counts: str | None = None
        self._tokenizer: str | None = None

    def counts(self, recorder: Progress) -> str:
        """Count; return the folder."""
        folder = next(self._names)
        count.run(CountSettings(output=folder, input=self._input, run=self._run), recorder)
        self._counts = folder
        return folder

    def train(self, recorder: Progress, vocab_size: int) -> str:
        """Train from counts; return the tokenizer's file."""
        counts = self._counts or self.counts(Progress("none"))
        folder = next(self._names)
        settings = TrainSettings(output=folder, vocab_size=vocab_size, counts=counts, run=self._run)
        train.run(settings, recorder)
        self._tokenizer = f"{folder}/tokenizer.json"
        return self._tokenizer

    def tokenize(self, recorder: Progress, vocab_size: int, **options: Any) -> None:
        """Tokenize, with any options."""
        tokenizer = self._tokenizer or self.train(Progress("none"), vocab_size)
        settings = TokenizeSettings(
            tokenizer=tokenizer,
            output=next(self._names),
            input=self._input,
            run=self._run,
            **options,
        )
        tokenize.run(settings, recorder)

    def evaluate(self, recorder: Progress, vocab_size: int) -> None:
        """Evaluate on counts."""
        tokenizer = self._tokenizer or self.train(Progress("none"), vocab_size)
        settings = EvaluateSettings(
            tokenizers=(tokenizer,),
            counts=self._counts,
            output=f"{next(self._names)}.json",
            run=self._run,
        )
        evaluate.run(settings, recorder)


def main() -> None:
    """Print a row for each stage of each job."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--together", action="store_true", help="one corpus of all")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=JOBS)
    parser.add_argument("--vocab-sizes", nargs="+", type=int, default=[32_000])
    parser.add_argument("--workers", type=int)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    arguments = parser.parse_args()
    if arguments.clock == "cpu":
        progress._now = time.process_time
    corpora = [tuple(arguments.corpora)]
    if not arguments.together:
        corpora = [(corpus,) for corpus in arguments.corpora]
    print(f"{'':40} {'time':>9} {'of all':>6} {'of left':>7} {'worst':>6}  after each tenth")
    for corpus in corpora:
        name = "together" if arguments.together else Path(corpus[0]).stem
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), corpus, arguments.workers)
            for job in arguments.jobs:
                for size in (
                    arguments.vocab_sizes if job == "train" else [max(arguments.vocab_sizes)]
                ):
                    recorder = Recorder()
                    if job == "count":
                        bench.counts(recorder)
                    elif job == "train":
                        bench.train(recorder, size)
                    elif job == "evaluate":
                        bench.evaluate(recorder, size)
                    else:
                        packed = {
                            "arranging": ArrangementSettings(sequence_length=2048, shuffle_seed=1)
                        }
                        bench.tokenize(recorder, size, **(packed if job == "arrange" else {}))
                    for stage in recorder.stages:
                        label = f"{name}: {job} {size if job == 'train' else ''} ({stage.name})"
                        print(f"{label:40} {row_of(stage.moments)}", flush=True)


if __name__ == "__main__":
    main()
