"""Distributed training with its state on a store: the tokenizer of a local run, nothing left."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND, run_whole
from killed_jobs import kill_when
from made_text import documents, write
from read_back import tree
from stores import Store

from bpe_beam.errors import DataError

pytestmark = pytest.mark.servers

LEARNING = ("--merge-rounds", "distributed", "--driver-memory", "1MB")


@dataclass(frozen=True)
class Made:
    """A counts folder, and the tokenizer's folder that is learned of it without rounds."""

    size: str
    counts: dict[str, bytes]
    expected: dict[str, bytes]


def make(folder: Path, texts: int, size: str) -> Made:
    corpus = write(folder / "a.jsonl", documents(texts, seed=9))
    run_whole("count", "--input", corpus, "--output", folder / "counts")
    arguments = ("train", "--counts", folder / "counts", "--vocab-size", size)
    run_whole(*arguments, "--merge-rounds", "local", "--output", folder / "local")
    return Made(size, tree(folder / "counts"), tree(folder / "local"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A vocabulary of a few rounds."""
    return make(tmp_path_factory.mktemp("made"), 1500, "600")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """One of many."""
    return make(tmp_path_factory.mktemp("long"), 4000, "4000")


def upload(store: Store, made: Made) -> tuple[str, ...]:
    """A new folder of a store with the counts in it: the job on it, its output last."""
    folder = store.folder()
    for name, data in made.counts.items():
        store.storage.write_bytes(f"{folder}/counts/{name}", data)
    arguments = ("train", "--counts", f"{folder}/counts", "--vocab-size", made.size, *LEARNING)
    return (*arguments, *store.arguments, "--output", f"{folder}/out")


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
    with contextlib.suppress(DataError):  # removed just now: the next one is there
        names = store.storage.list_names(f"{out}/rounds")
        commits = [name for name in names if name.startswith("commit-")]
        if commits:
            data = store.storage.read_bytes(f"{out}/rounds/{max(commits)}")
            found: dict[str, Any] = json.loads(data)["commit"]
            return found
    return {}


def test_a_killed_job_goes_on(start_store: Callable[[str], Store], long: Made) -> None:
    store = start_store("versitygw")
    command = upload(store, long)
    out = command[-1]
    for rounds in (1, 2):
        assert kill_when(
            [*COMMAND, *command, "--quiet"],
            lambda rounds=rounds: last_commit(store, out).get("number", 0) >= rounds,  # type: ignore[misc]
            f"round {rounds}",
        ), "ended before it was killed"
    history = last_commit(store, out)["history"]
    assert len(history) >= 2
    summary = run_whole(*command).summary
    assert summary["rounds"][: len(history)] == history
    assert summary["jobs"] == len(summary["rounds"]) - len(history)
    assert stored(store, out) == long.expected
    assert not store.storage.exists(f"{out}/rounds")
