"""Equal commands that run at the same time in one folder, as a scheduler's retry starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from read_back import tree

RUNS = 3

JOBS = {
    "count": "count --input c.txt --output out",
    "train": "train --input c.txt --vocab-size 300 --output out",
    "tokenize": "tokenize --input c.txt --tokenizer tok/tokenizer.json --output out",
    "packed": "tokenize --input c.txt --tokenizer tok/tokenizer.json --output out "
    "--sequence-length 16 --shuffle-seed 1",
    "several": "tokenize --input c.txt --tokenizer tok/tokenizer.json --output out "
    "--format flat --format parquet",
    "convert": "convert tokens --format parquet --output out",
    "merge": "counts merge tok/counts counts --output out",
    "filter": "counts filter tok/counts --min-count 2 --output out",
    "evaluate": "evaluate --input c.txt --tokenizer tok/tokenizer.json --work out --output r.json",
}


def start(folder: Path, job: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bpe_beam", *job.split()]
    return subprocess.Popen(command, cwd=folder, stdout=-1, stderr=-1, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("equal")
    (folder / "c.txt").write_text("".join(f"low lower {n}\n" for n in range(400)))
    for name, job in {"tok": "train", "tokens": "tokenize", "counts": "count"}.items():
        run = start(folder, JOBS[job].replace("output out", f"output {name}"))
        assert (run.communicate()[1], run.returncode)[1] == 0
    return folder


@pytest.mark.parametrize(
    "name",
    [name if name == "packed" else pytest.param(name, marks=pytest.mark.slow) for name in JOBS],
)
def test_one_succeeds_the_others_name_it_and_nothing_is_left(folder: Path, name: str) -> None:
    alone = JOBS[name].replace(" out", f" alone-{name}")
    assert start(folder, alone).wait() == 0
    job = JOBS[name].replace(" out", f" {name}")
    runs = [start(folder, job) for _ in range(RUNS)]
    messages = [run.communicate()[1] for run in runs]
    codes = [run.returncode for run in runs]
    assert 0 in codes
    for code, message in zip(codes, messages, strict=True):
        assert code == 0 or (code == 1 and "another run works in" in message), message
    assert tree(folder / name) == tree(folder / f"alone-{name}")
