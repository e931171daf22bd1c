"""Distributed training on every runner: the tokenizer of a learner in one process.

Python workers, a task manager and clients are killed while rounds run. The moment is chosen
by what the job has committed and finished, never by the clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import run_whole
from engines import Cluster, Engine, children, finished_pieces, launched
from made_text import documents, write
from read_back import tree
from waiting import SECONDS, wait_until

pytestmark = pytest.mark.runners

# The driver cuts the words into pieces: smaller ones than users get, so that there are some.
SMALL_PIECES = (
    sys.executable,
    "-c",
    "import sys; from bpe_beam.cli import main as cli; "
    "from bpe_beam.jobs.train import commits as rounds_folder; "
    "rounds_folder.MINIMUM_WORD_BYTES = 15_000; sys.exit(cli.main(sys.argv[1:]))",
)


@dataclass(frozen=True)
class Counted:
    """A counts folder, and a vocabulary that takes so many rounds.

    Attributes:
        folder: The counts.
        size: Of the vocabulary.
        rounds: How many there are at least.
        expected: What is learned in one process.
    """

    folder: Path
    size: int
    rounds: int
    expected: dict[str, bytes]

    def launched(
        self, engine: Engine, out: Path
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Start to learn in rounds; the client is gone when the block ends."""
        learning = ("--merge-rounds", "distributed", "--driver-memory", "1MB")
        arguments = ("train", "--counts", self.folder, "--vocab-size", str(self.size), *learning)
        return launched(*arguments, *engine.flags, "--output", out, command=SMALL_PIECES)

    def look(self, out: Path) -> dict[str, Any]:
        """Looks at what came of it; gives the summary."""
        assert published(out) == self.expected
        summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
        assert len(summary["rounds"]) >= self.rounds
        return summary


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counts")
    corpus = write(folder / "a.jsonl", documents(2000, seed=9))
    run_whole("count", "--input", corpus, "--output", folder / "counts")
    return folder / "counts"


def learned_here(counts: Path, size: int, rounds: int) -> Counted:
    out = counts.parent / f"learned-{size}"
    arguments = ("train", "--counts", counts, "--vocab-size", str(size), "--merge-rounds", "local")
    run_whole(*arguments, "--output", out)
    return Counted(counts, size, rounds, tree(out))


@pytest.fixture(scope="module")
def few_rounds(counts: Path) -> Counted:
    return learned_here(counts, 600, 3)


def published(out: Path) -> dict[str, bytes]:
    """What a job's folder holds, but for what an orphan has left in its own corner."""
    return tree(out, corner="rounds/work/run-")


def ended(client: subprocess.Popen[bytes]) -> None:
    """Waits until it has ended well."""
    _, err = client.communicate(timeout=SECONDS)
    assert (client.returncode, err) == (0, b"")


def last_commit(out: Path) -> dict[str, Any]:
    """What was committed last; {}: nothing yet."""
    while True:
        with contextlib.suppress(FileNotFoundError):  # removed just now: the next one is there
            newest = max((out / "rounds").glob("commit-*.json"), default=None)
            found: dict[str, Any] = json.loads(newest.read_text())["commit"] if newest else {}
            return found


def wait_for_round(client: subprocess.Popen[bytes], out: Path, number: int, pieces: int) -> None:
    """Waits until a round runs, and so many of its pieces have receipts; or is over."""

    def reached() -> bool:
        commit = last_commit(out)
        if commit.get("number", 0) != number - 1:
            return bool(commit.get("number", 0) >= number)
        with contextlib.suppress(FileNotFoundError):
            runs = [*(out / "rounds").glob("work/run-*")]
            return any(
                finished_pieces(run) >= pieces for run in runs if run.name != commit.get("run")
            )
        return False

    wait_until(lambda: client.poll() is not None or reached(), f"round {number}")
    assert client.poll() is None, client.communicate()[1]


def test_rounds_on_every_runner(engine: Engine, few_rounds: Counted, tmp_path: Path) -> None:
    """The same bytes, and one job server for all rounds."""
    out = tmp_path / "out"
    servers: set[int] = set()
    with few_rounds.launched(engine, out) as client:

        def look() -> bool:
            found = children(client.pid).items()
            servers.update(each for each, args in found if "python" not in args)
            return client.poll() is not None

        wait_until(look, "the job to end")
        ended(client)
    summary = few_rounds.look(out)
    assert not (out / "rounds").exists()
    assert summary["jobs"] == len(summary["rounds"])
    assert len(servers) == 1
    assert summary["runner"].lower().startswith(engine.name.replace("cluster", "flink"))


@pytest.mark.scheduled
@pytest.mark.parametrize(("model", "memory"), [("mingram", "10MB"), ("unigram", "1GB")])
def test_passes_on_a_runner(
    model: str, memory: str, local_engine: Callable[[str], Engine], counts: Path, tmp_path: Path
) -> None:
    """Pieces of `mingram`: merge rounds and passes, on Flink; of `unigram`: passes."""
    words = ("--normalizer", "dummy_prefix", "--pretokenizer", "metaspace")
    corpus = counts.parent / "a.jsonl"
    run_whole("count", "--input", corpus, *words, "--output", tmp_path / "counts")
    training = ("--model", model, "--vocab-size", "400")
    arguments = ("train", "--counts", tmp_path / "counts", *training)
    run_whole(*arguments, "--output", tmp_path / "here")
    rounds = ("--merge-rounds", "distributed", "--driver-memory", memory)
    engine = local_engine("flink")
    with launched(
        *arguments, *rounds, *engine.flags, "--output", tmp_path / "far", command=SMALL_PIECES
    ) as client:
        ended(client)
    here, far = ((tmp_path / way / "tokenizer.json").read_bytes() for way in ("here", "far"))
    assert here == far
    summary = json.loads((tmp_path / "far" / "summary.json").read_text())
    alone = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert summary["passes"] == alone["passes"] >= 4
    assert summary["runner"].lower().startswith("flink")


@pytest.mark.scheduled
def test_workers_and_a_task_manager_are_killed(
    cluster: Cluster, few_rounds: Counted, tmp_path: Path
) -> None:
    """A Python worker in each of two rounds, a task manager in the third; the client goes on.

    CI kills task managers in other jobs.
    """
    out = tmp_path / "out"
    made = random.Random(3)
    with few_rounds.launched(cluster.engine(2), out) as client:
        for number in (1, 2):
            wait_for_round(client, out, number, made.randint(1, 4))
            kill_a_worker(client, cluster, made)
        wait_for_round(client, out, 3, made.randint(1, 4))
        os.kill(cluster.processes["taskmanager-1"], signal.SIGKILL)
        ended(client)
    summary = few_rounds.look(out)
    assert summary["jobs"] == len(summary["rounds"])
    assert not cluster.whole


def kill_a_worker(client: subprocess.Popen[bytes], cluster: Cluster, made: random.Random) -> None:
    """Kills a Python worker; they come and go with the steps of a job."""

    def killed() -> bool:
        assert client.poll() is None, "the job has ended before a worker was seen"
        workers = cluster.workers()
        with contextlib.suppress(ProcessLookupError):
            if workers:
                os.kill(made.choice(workers), signal.SIGKILL)
                return True
        return False

    wait_until(killed, "a worker to kill")


@pytest.mark.scheduled
def test_a_client_is_killed_beside_its_round(
    cluster: Cluster, few_rounds: Counted, tmp_path: Path
) -> None:
    """The next one goes on from the last commit, while the round of the first still runs.

    CI kills the client of a count so, and one that learns in rounds in process.
    """
    out = tmp_path / "out"
    for _ in range(3):
        number = last_commit(out).get("number", 0) + 1
        with few_rounds.launched(cluster.engine(1), out) as client:
            wait_for_round(client, out, max(2, number), 1)
        if cluster.running:  # or it was killed between two rounds
            break
    assert cluster.running, "the round has ended with its client"
    done = last_commit(out)["number"]
    with few_rounds.launched(cluster.engine(2), out) as client:
        ended(client)
    summary = few_rounds.look(out)
    assert summary["jobs"] == len(summary["rounds"]) - done
    cluster.wait_until_idle()
    few_rounds.look(out)
