"""Relative paths where workers have other working directories: they mean the command's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import elsewhere_runner
import pytest
from command_line import run
from made_text import documents, write
from read_back import read_shards, tree
from stream_by_hand import run_stream, stream_of

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.word_table import WordRules
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.transforms import ReadDocuments, Tokenize, WriteTokens
from bpe_beam.workers.count_split import CountTask, count_split
from bpe_beam.workers.split_task import split_tasks

ELSEWHERE = ("--runner", "elsewhere_runner.ElsewhereRunner", "--quiet")
READING = ("--input", "in/a.jsonl", "--range-bytes", "2000")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with a corpus; workers have another."""
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    write(tmp_path / "here" / "in" / "a.jsonl", documents(60, seed=4))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(elsewhere_runner, "FOLDERS", [tmp_path / "elsewhere"])
    yield tmp_path / "here"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_every_job_finds_its_files(here: Path) -> None:
    jobs = {
        "counts": ("count", *READING),
        "tok": ("train", "--counts", "counts", "--vocab-size", "300"),
        "rounds": (
            *("train", "--counts", "counts", "--vocab-size", "300"),
            *("--merge-rounds", "distributed"),
        ),
        "tokens": ("tokenize", *READING, "--tokenizer", "tok/tokenizer.json"),
    }
    for output, job in jobs.items():
        for name, how in ((output, ELSEWHERE), (f"{output}-here", ("--quiet",))):
            ran = run(*job, "--output", name, *how)
            assert ran.code == 0, ran.err
        assert tree(here / output) == tree(here / f"{output}-here")


def test_a_stream_finds_its_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("train", *READING, "--vocab-size", "300", "--output", "tok", "--quiet").code == 0
    storage = Storage()
    tokenizer = Tokenizer.from_file("tok/tokenizer.json")
    watched = Watched.of(storage, ["in/*.jsonl"], ["in/b*"], str(here / "out"))
    stream = stream_of(watched, here / "out", tokenizer, max_rejects="0")
    storage.make_folder(stream.output)
    monkeypatch.chdir(elsewhere_runner.FOLDERS[-1])
    run_stream(stream)
    assert (here / "out" / "window-00000000" / MANIFEST_FILE).exists()


def test_the_transforms_find_their_files(here: Path) -> None:
    assert run("train", *READING, "--vocab-size", "300", "--output", "tok", "--quiet").code == 0
    with (here / "in" / "a.jsonl").open("ab") as file:
        file.write(b"no JSON\n")
    tokenizer = Tokenizer.from_file("tok/tokenizer.json")
    with beam.Pipeline(runner=elsewhere_runner.ElsewhereRunner()) as pipeline:
        read = pipeline | ReadDocuments(["in/*.jsonl"], rejects="rejects")
        read | Tokenize(tokenizer) | WriteTokens("tokens", tokenizer)
    assert len(read_shards(here / "tokens")) == 60
    assert [path.name for path in (here / "rejects").iterdir()] != []


def test_a_worker_that_does_not_see_a_folder_says_so(here: Path) -> None:
    plan = ReadDocuments(["in/a.jsonl"]).plan
    task = CountTask(
        folder=TaskFolder(Storage(), str(here / "out" / "work" / "run-0"), "0"),
        reading=ReadSettings(),
        rules=WordRules(),
    )
    with pytest.raises(
        DataError, match=r"does not see the folder .*/out/work/run-0: .* URL of a store"
    ):
        count_split(task, split_tasks(plan)[0])
