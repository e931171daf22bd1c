"""What a job may do to its process: logs, signals, closed pipes, threads that outlive it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import run_process

from bpe_beam.cli import main as cli
from bpe_beam.folders.artifact_names import MANIFEST_FILE

pytestmark = pytest.mark.quick


ROOT = Path(__file__).parents[2]


COUNT = ["count", "--input", "a.txt", "--output", "out"]


def test_beams_log_is_silent_unless_asked_for(job: Any, caplog: pytest.LogCaptureFixture) -> None:
    def run(settings: Any, progress: Any) -> dict[str, Any]:
        logging.getLogger("apache_beam.x").error("a thousand lines")
        return {}

    job("count", run)
    assert cli.main([*COUNT, "--quiet"]) == 0
    assert caplog.messages == []
    assert logging.root.manager.disable == logging.NOTSET
    assert cli.main([*COUNT, "--quiet", "--debug"]) == 0
    assert caplog.messages == ["a thousand lines"]


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "bpe_beam", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=600,
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141


# Of two threads that hold a buffer, either may be the one that releases it. Here pyarrow's takes
# its time over that, and is still at it when the interpreter ends.
LATE_RELEASE = """
import io, sys, threading, time
import pyarrow as pa

reader = threading.get_ident()
class Late(bytes):
    def __del__(self):
        if threading.get_ident() != reader:
            released.set()
            time.sleep(5)
class File(io.BytesIO):
    def read(self, count=-1):
        return Late(super().read(count))

released = threading.Event()
table = pa.table({"text": ["some text"] * 1000})
sink = io.BytesIO()
with pa.ipc.new_file(sink, table.schema) as writer:
    writer.write_table(table)
for attempt in range(10_000):
    if released.is_set():
        break
    pa.ipc.open_file(pa.PythonFile(File(sink.getvalue()), mode="r")).get_batch(0)
assert released.is_set()
from bpe_beam.cli import main as cli
cli.run(["--version"])
"""


def test_a_thread_that_releases_a_buffer_late_does_not_abort_the_process() -> None:
    ran = run_process(command=(sys.executable, "-c", LATE_RELEASE))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(b"bpe-beam ")


JOB_WITH_AN_EXIT_FUNCTION = """
import atexit, logging, sys, types
from bpe_beam.cli import main as cli
from bpe_beam.errors import DataError
def run(settings, progress):
    atexit.register(print, "stopping the job server")
    # A runner's thread may log a failure after the command has reported it.
    atexit.register(logging.getLogger("apache_beam.x").error, "a thousand lines")
    raise DataError("too many rejects")
module = types.ModuleType("bpe_beam.jobs.count")
module.run = run
sys.modules[module.__name__] = module
cli.run(["count", "--input", "a", "--output", "o"])
"""


def test_what_a_job_registers_for_the_exit_runs_and_the_exit_code_is_kept() -> None:
    ran = run_process(command=(sys.executable, "-c", JOB_WITH_AN_EXIT_FUNCTION))
    assert ran.code == 1
    assert ran.out == b"stopping the job server\n"
    assert ran.err == "bpe-beam count: too many rejects\n"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
def test_a_job_without_streams_does_its_work(tmp_path: Path, closed: tuple[int, ...]) -> None:
    (tmp_path / "a.txt").write_text("low lower")
    run = with_closed(closed, ["count", "--input", "a.txt", "--output", "out"], tmp_path)
    assert run.returncode == 0
    assert (tmp_path / "out" / MANIFEST_FILE).exists()
    assert run.stdout == ""
    assert ("documents" in run.stderr) == (2 not in closed)


@pytest.mark.parametrize(
    "job", ["doctor", "--help", "train --help", "--version", "count --summary-file -"]
)
def test_a_result_for_a_closed_stdout_is_refused_before_the_work(tmp_path: Path, job: str) -> None:
    arguments = job.split()
    if arguments[0] == "count":
        (tmp_path / "a.txt").write_text("low lower")
        arguments += ["--input", "a.txt", "--output", "out"]
    run = with_closed((1,), arguments, tmp_path)
    assert run.stderr.endswith(": cannot write to standard output: it is closed\n")
    assert run.returncode in (1, 2)
    assert not (tmp_path / "out").exists()


def test_a_closed_stdin_is_no_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("low lower")
    train = ["train", "--input", "a.txt", "--vocab-size", "257", "--output", "tok"]
    assert with_closed((), train, tmp_path).returncode == 0
    for job in ("encode", "decode"):
        run = with_closed((0,), [job, "--tokenizer", "tok/tokenizer.json"], tmp_path)
        assert run.stderr == f"bpe-beam {job}: cannot read standard input: it is closed\n"
        assert run.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
@pytest.mark.parametrize("job", ["--help", "train --help", "completion bash"])
def test_a_full_stdout_is_named(job: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "bpe_beam", *job.split()]
        run = subprocess.run(command, stdout=full, stderr=-1, text=True, cwd=ROOT, check=False)
    assert run.stderr.endswith(": cannot write to standard output: No space left on device\n")
    assert run.returncode == 1


def with_closed(
    streams: tuple[int, ...], arguments: list[str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with some of the standard streams closed."""
    shell = 'exec "$@" ' + " ".join(
        f"{'<' if number == 0 else f'{number}>'}&-" for number in streams
    )
    return subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", "bpe_beam", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_little_memory_is_called_so(job: Any, capsys: pytest.CaptureFixture[str]) -> None:
    errors = [MemoryError(), OSError(12, "Cannot allocate memory"),
              ImportError("libarrow.so: failed to map segment from shared object"),
              RuntimeError("can't start new thread"), RuntimeError("std::bad_alloc")]  # fmt: skip
    for error in errors:

        def run(settings: Any, progress: Any, error: Exception = error) -> dict[str, Any]:
            raise error

        job("count", run)
        assert cli.main([*COUNT, "--quiet"]) == 1
        assert capsys.readouterr().err.startswith("bpe-beam count: not enough memory (")


def test_an_import_that_is_interrupted_is_an_interrupt(
    job: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(settings: Any, progress: Any) -> dict[str, Any]:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    job("count", run)
    assert cli.main([*COUNT, "--quiet"]) == 130
    assert "bpe-beam count: interrupted; the same command resumes" in capsys.readouterr().err
