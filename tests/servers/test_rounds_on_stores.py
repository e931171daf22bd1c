"""Distributed training with its state on a store: the tokenizer of a local run, nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from command_line import COMMAND, environment, run_whole
from made_text import documents, write
from read_back import tree
from stores import Store

from bpe_beam.errors import DataError

pytestmark = pytest.mark.servers

SECONDS = 600
LEARNING = ("--merge-rounds", "distributed", "--driver-memory", "1MB", "--vocab-size", "600")


@dataclass(frozen=True)
class Made:
    """A counts folder, and the tokenizer's folder that is learned of it without rounds."""

    counts: dict[str, bytes]
    expected: dict[str, bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    corpus = write(folder / "a.jsonl", documents(1500, seed=9))
    run_whole("count", "--input", corpus, "--output", folder / "counts")
    given = ("train", "--counts", folder / "counts", *LEARNING[-2:], "--merge-rounds", "local")
    run_whole(*given, "--output", folder / "local")
    return Made(tree(folder / "counts"), tree(folder / "local"))


def upload(store: Store, made: Made) -> tuple[str, ...]:
    """A new folder of a store with the counts in it: the job on it, its output last."""
    folder = store.folder()
    for name, data in made.counts.items():
        store.storage.write_bytes(f"{folder}/counts/{name}", data)
    given = ("train", "--counts", f"{folder}/counts", *LEARNING, *store.arguments)
    return (*given, "--output", f"{folder}/out")


def stored(store: Store, out: str) -> dict[str, bytes]:
    """Every file below a job's folder, but for the summary."""
    names = {each.url[len(out) + 1 :]: each.url for each in store.storage.expand(f"{out}/**")}
    names.pop("summary.json", None)
    return {name: store.storage.read_bytes(url) for name, url in names.items()}


@pytest.mark.parametrize("name", ["versitygw", "fake-gcs-server", "azurite"])
def test_rounds_on_a_store(name: str, start_store: Callable[[str], Store], made: Made) -> None:
    store = start_store(name)
    command = upload(store, made)
    summary = run_whole(*command).summary
    assert len(summary["rounds"]) >= 3
    assert stored(store, command[-1]) == made.expected
    assert not store.storage.exists(f"{command[-1]}/rounds")


def last_commit(store: Store, out: str) -> dict[str, Any]:
    """What was committed last; {}: nothing yet."""
    with contextlib.suppress(DataError):  # removed just now: the next one stands
        names = store.storage.list_names(f"{out}/rounds")
        commits = [name for name in names if name.startswith("commit-")]
        if commits:
            data = store.storage.read_bytes(f"{out}/rounds/{max(commits)}")
            found: dict[str, Any] = json.loads(data)["commit"]
            return found
    return {}


def test_a_killed_job_goes_on(start_store: Callable[[str], Store], made: Made) -> None:
    store = start_store("versitygw")
    command = upload(store, made)
    out = command[-1]
    for rounds in (1, 2):
        process = subprocess.Popen(
            [*COMMAND, *command, "--quiet"], env=environment(), start_new_session=True
        )
        end = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < end:
            if last_commit(store, out).get("number", 0) >= rounds:
                break
        assert process.poll() is None, "ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    history = last_commit(store, out)["history"]
    assert len(history) >= 2
    summary = run_whole(*command).summary
    assert summary["rounds"][: len(history)] == history
    assert summary["jobs"] == len(summary["rounds"]) - len(history)
    assert stored(store, out) == made.expected
    assert not store.storage.exists(f"{out}/rounds")
