"""Each job once as the command that users start: streams, exit codes, launchers, configs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers
from command_line import COMMAND, ROOT, Ran, environment, run, run_process
from made_text import write
from read_back import read_shards, tree

END = "<|endoftext|>"
LAUNCHERS = sorted((ROOT / "pipelines").glob("*.py"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """A folder with a corpus in it, and what the jobs made there, run as users run them."""
    folder = tmp_path_factory.mktemp("place")
    write(folder / "data" / "a.jsonl.gz", texts[:200])
    write(folder / "data" / "b.jsonl.gz", texts[200:])
    return folder


@pytest.fixture(scope="module")
def jobs(place: Path) -> dict[str, Ran]:
    """count, train, tokenize, verify, inspect, encode, decode; each with relative paths."""
    data = ("--input", "data/*.jsonl.gz")
    tokenizer = ("--tokenizer", "tok/tokenizer.json")
    commands = {
        "count": (*data, "--output", "counts", "--special-token", END),
        "train": ("--counts", "counts", "--vocab-size", "500", "--output", "tok"),
        "tokenize": (*data, *tokenizer, "--output", "tokens", "--append", END, "--quiet"),
        "verify": ("tokens", "--full", *data, "--summary-file", "verify.json"),
        "inspect": ("tokens", "--quiet"),
        "encode": (*tokenizer, "Hello, 世界"),
        "decode": (*tokenizer,),
    }
    ran: dict[str, Ran] = {}
    for job, args in commands.items():
        stdin = ran["encode"].out if job == "decode" else b""
        ran[job] = run_process(job, *args, cwd=place, stdin=stdin)
    return ran


def test_every_job_ends_well(jobs: dict[str, Ran]) -> None:
    assert {job: (ran.code, ran.err) for job, ran in jobs.items() if ran.code} == {}


def test_results_go_to_stdout_and_the_rest_to_stderr(jobs: dict[str, Ran]) -> None:
    for job in ("count", "train", "verify"):
        assert jobs[job].out == b""
        assert ": done, " in jobs[job].err
        # On a busy machine progress is more than its last line.
        assert jobs[job].message.splitlines()[0] == f"bpe-beam {job}"
    for job in ("inspect", "encode", "decode"):
        assert jobs[job].out
        assert jobs[job].err == ""


def test_quiet_is_silent(jobs: dict[str, Ran]) -> None:
    assert (jobs["tokenize"].out, jobs["tokenize"].err) == (b"", "")


def test_what_they_made_is_right(jobs: dict[str, Ran], place: Path, texts: list[str]) -> None:
    loaded = tokenizers.Tokenizer.from_file(str(place / "tok" / "tokenizer.json"))
    loaded.encode_special_tokens = True
    shards = read_shards(place / "tokens")
    assert [loaded.decode(ids[:-1], skip_special_tokens=False) for ids in shards] == texts
    assert [int(i) for i in jobs["encode"].out.split()] == loaded.encode("Hello, 世界").ids
    assert jobs["decode"].out == "Hello, 世界".encode()
    summary = json.loads((place / "verify.json").read_bytes())
    assert (summary["whole"], summary["documents"]) == (True, len(texts))


def test_nothing_else_is_written(jobs: dict[str, Ran], place: Path) -> None:
    made = {"counts", "tok", "tokens", "data", "verify.json"}
    assert {path.name for path in place.iterdir()} <= made | {"launched"}
    top = {path.name for path in (place / "tokens").iterdir()}
    shards = {name for name in top if name.startswith("shard-")}
    assert top - shards == {"__job", "__manifest", "__tokenizer", "__token_counts"}
    assert {path.name for path in (place / "tok").iterdir()} == {
        *("__job", "tokenizer.json", "vocab.json", "merges.txt", "summary.json"),
        *("tokenizer_config.json", "special_tokens_map.json"),
    }
    parts = {path.name for path in (place / "counts").glob("part-*.parquet")}
    assert {path.name for path in (place / "counts").iterdir()} - parts == {
        *("__job", "__manifest", "__plan")
    }


def test_no_artifact_knows_where_or_when_it_was_made(jobs: dict[str, Ran], place: Path) -> None:
    for name in ("counts", "tok", "tokens"):
        for file, data in tree(place / name).items():
            assert str(place).encode() not in data, file


# That of the streaming job needs a runner that streams: tests/runners/.
@pytest.mark.parametrize(
    "launcher", [p for p in LAUNCHERS if p.stem != "stream_tokenize"], ids=lambda path: path.stem
)
def test_launchers_run_their_jobs(launcher: Path, jobs: dict[str, Ran], place: Path) -> None:
    assert jobs["verify"].code == 0
    data = ("--input", "data/*.jsonl.gz")
    job, made, args = {
        "count": ("count", "counts", (*data, "--special-token", END)),
        "train": ("train", "tok", ("--counts", "counts", "--vocab-size", "500")),
        "tokenize": (
            *("tokenize", "tokens"),
            (*data, "--tokenizer", "tok/tokenizer.json", "--append", END),
        ),
        "verify": ("verify", "", ("tokens",)),
    }[launcher.stem]
    out = Path("launched", launcher.stem)
    output = ("--output", out, "--quiet", "--summary-file", "-") if made else ()
    ran = run_process(*args, *output, command=(sys.executable, str(launcher)), cwd=place)
    assert ran.code == 0, ran.err
    if made:
        assert ran.summary["job"] == job
        assert tree(place / out) == tree(place / made)
    else:
        assert "whole" in ran.err
    refused = run_process(command=(sys.executable, str(launcher)), cwd=place)
    assert refused.code == 2
    assert refused.message.startswith(f"bpe-beam {job}: ")
    assert "required" in refused.message


def test_there_is_a_launcher_for_each_job_of_long_standing() -> None:
    assert [path.stem for path in LAUNCHERS] == [*("count", "stream_tokenize", "tokenize", "train")]


def test_the_module_itself_can_be_run(jobs: dict[str, Ran]) -> None:
    ran = run_process("--version", command=(sys.executable, "-m", "bpe_beam"))
    assert ran.code == 0
    assert ran.out.startswith(b"bpe-beam ")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    args = ("inspect", tmp_path / "nothing")
    plain, debug = run_process(*args), run_process(*args, "--debug")
    assert (plain.code, debug.code) == (2, 2)
    assert "Traceback" not in plain.err
    assert "Traceback (most recent call last)" in debug.err
    assert debug.err.splitlines()[-1] == plain.err.splitlines()[-1]


def test_a_reader_that_goes_away_is_no_error_to_shout_about(
    jobs: dict[str, Ran], place: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [*COMMAND, "inspect", "tok"],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=place,
            env=environment(),
            check=False,
            timeout=600,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("tran",), "did you mean train?"),
        (("--quiet", "count"), "the first word must be a job"),
        (("count", "--inputt", "x"), "did you mean --input?"),
        (("count", "--vocab-size", "3"), "--vocab-size is an option of train, not of count"),
        (("count",), "--input is required"),
        (("count", "--input", "x"), "--output is required"),
        (("count", "--input"), "--input"),
        (("train", "--output", "x", "--vocab-size", "300"), "are both missing; give --counts"),
        (("train", "--output", "x", "--vocab-size", "8e3"), "must be a whole number"),
        (("verify",), "DIR is required"),
        (("verify", "x", "--full"), "--input"),
        (("tokenize", "--input", "x", "--output", "y"), "--tokenizer is required"),
        (("count", "--input", "a", "stray", "--output", "b", "--workers", "0"), "workers"),
        (("encode", "--tokenizer", "t", "a", "b"), "unexpected: b"),
        (("count", "--parallelism", "x", "--input", "a", "--output", "b"), "--parallelism"),
    ],
)
def test_wrong_usage_is_refused_by_name(
    args: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = run(*args)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1, "one message"
    assert list(tmp_path.iterdir()) == []
