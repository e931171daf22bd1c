"""Run a job in a process of its own, on little input, and measure it.

What a job takes besides its input is measured, not guessed: the start of Python, imports, the files
that every output folder has, and waiting for the disk.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from bpe_beam.errors import DataError
from bpe_beam.progress import Progress, Stage

_MOST_DOCUMENTS, _MOST_CHARACTERS = 20, 10_000
"""The documents of a trial's input, and the characters of each that it has."""


class Trial(NamedTuple):
    """What a job took.

    Attributes:
        seconds: The seconds from the start of the process to its end.
        start: Those of them before and after the job.
        stages: The seconds of each stage by name.
        memory: The peak of the process's resident memory, in bytes.
        memory_before: The same when the job began.
        files: The bytes of each file of the output, by its name in the folder.
        summary: The summary of the job; empty if it failed.
    """

    seconds: float
    start: float
    stages: dict[str, float]
    memory: int
    memory_before: int
    files: dict[str, int]
    summary: dict[str, Any]

    def bytes_of(self, ending: str) -> int:
        """Return the bytes of the files whose names end so."""
        return sum(size for name, size in self.files.items() if name.endswith(ending))


def try_job(run: Callable[..., Any], *args: Any, output: str) -> Trial:
    """Run a job in a process of its own.

    Args:
        run: The function that runs it, of a module; its last argument is a `Progress`.
        *args: The other arguments, which must be picklable.
        output: The folder that the job writes.

    Returns:
        What it took. If the job fails, this is what it took until then.

    Raises:
        DataError: The process died.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        code = (
            f"import sys; sys.path[:] = {[str(path) for path in sys.path]!r}; "
            # What the command itself imports.
            "import bpe_beam.cli.arguments, bpe_beam.cli.main, bpe_beam.cli.summary; "
            f"from {__name__} import _serve; _serve({str(answer)!r})"
        )
        started = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps((run, args)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        seconds = time.monotonic() - started
        if not answer.exists():
            raise DataError(
                f"the process that tried the job ended with exit code {ran.returncode}: memory may "
                "have run out"
            )
        said = json.loads(answer.read_bytes())
    root = Path(output)
    files = {
        str(path.relative_to(root)): path.stat().st_size
        for path in root.rglob("*")
        if path.is_file()
    }
    start = seconds - said.pop("seconds")
    return Trial(seconds, start, files=files, **said)


def write_documents(batch: pa.RecordBatch | None, path: str) -> None:
    """Write a few documents as JSON Lines with the fields `id`, `source` and `text`.

    Args:
        batch: The documents; None: one that is made up.
        path: The file.
    """
    rows = [{"text": "a document"}] if batch is None else batch[:_MOST_DOCUMENTS].to_pylist()
    with Path(path).open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            fields = {
                "id": str(number),
                "source": row.get("source") or "a",
                "text": row["text"][:_MOST_CHARACTERS],
            }
            file.write(json.dumps(fields) + "\n")


class _TimedStage(Stage):
    """A stage that notes how long it took."""

    taken: dict[str, float]

    def __exit__(self, *error: Any) -> None:
        self.taken[self.name] = self.snapshot().seconds
        super().__exit__(*error)


class _TimedProgress(Progress):
    """Shows nothing, and has the seconds of each stage."""

    def __init__(self) -> None:
        super().__init__("none", stream=io.StringIO())
        self.taken: dict[str, float] = {}

    def stage(self, name: str, total: int | None, unit: str) -> Stage:
        """See `Progress.stage`."""
        stage = _TimedStage(name, total, unit, None)
        stage.taken = self.taken
        return stage


def _serve(answer: str) -> None:
    """Run the job that stdin has, and write what it took."""
    run, args = pickle.loads(sys.stdin.buffer.read())
    before = peak_memory()
    progress = _TimedProgress()
    started = time.monotonic()
    summary: dict[str, Any] = {}
    # The job itself, not the estimate, is to say what is wrong.
    with contextlib.suppress(Exception):
        summary = msgspec.to_builtins(run(*args, progress))
    said = {
        "seconds": time.monotonic() - started,
        "stages": progress.taken,
        "memory": peak_memory(),
        "memory_before": before,
        "summary": summary,
    }
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


def peak_memory() -> int:
    """Return the peak of this process's resident memory, in bytes."""
    try:
        # Not by `getrusage`, which counts the process that this one was forked from.
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
