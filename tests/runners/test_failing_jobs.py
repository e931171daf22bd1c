"""Jobs that fail or are interrupted, on every runner: a message for people, and nothing left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_process, run_whole, with_options
from corpora import Long, Made, make_long
from engines import (
    Cluster,
    Engine,
    alive,
    children,
    finished_pieces,
    launched,
)
from waiting import SECONDS, wait_until

pytestmark = pytest.mark.runners

SPLITS = 600


def fails(engine: Engine, *args: str | Path) -> str:
    """Runs a job that must fail for its data; returns its one line."""
    ran = run_process(*args, *engine.flags, "--quiet", timeout=SECONDS)
    assert ran.code == 1, ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith(f"bpe-beam {args[0]}: ")
    return ran.err


def test_too_many_rejects(
    local_engine: Callable[[str], Engine], made: Made, tmp_path: Path
) -> None:
    """The driver judges what the receipts say, whatever the runner."""
    engine = local_engine("prism")
    arguments = with_options(made.command("count"), "--max-rejects", "1")
    said = fails(engine, *arguments, "--output", tmp_path / "out")
    assert "records are unusable. " in said
    assert not (tmp_path / "out" / "__manifest").exists()


def test_a_worker_that_raises(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "seen.txt").write_text("hello\n")
    (tmp_path / "other.txt").write_text("hello\nh\u00f6\n")
    arguments = ("--pretokenizer", "whitespace", "--alphabet", "seen", "--vocab-size", "20")
    run_whole("train", "--input", tmp_path / "seen.txt", *arguments, "--output", tmp_path / "tok")
    arguments = ("--tokenizer", str(tmp_path / "tok" / "tokenizer.json"))
    said = fails(
        engine,
        "tokenize",
        *arguments,
        "--input",
        tmp_path / "other.txt",
        "--output",
        tmp_path / "out",
    )
    assert "other.txt: the record at byte 6: character '\u00f6' (U+00F6)" in said
    assert not (tmp_path / "out" / "__manifest").exists()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Long:
    return make_long(tmp_path_factory.mktemp("long"), SPLITS)


@pytest.mark.parametrize(
    "engine",
    [
        *["prism", "cluster"],
        *(pytest.param(name, marks=pytest.mark.scheduled) for name in ("flink", "spark")),
    ],
    indirect=True,
)
def test_an_interrupted_client_leaves_nothing_running(
    engine: Engine, long: Long, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with launched(*long.command("count"), *engine.flags, "--output", out) as client:
        wait_until(lambda: client.poll() is not None or finished_pieces(out) >= 5, "first receipts")
        started = children(client.pid)
        assert client.poll() is None, "ended before it was interrupted"
        assert started, "Beam's job server, or Prism"
        client.send_signal(signal.SIGINT)
        _, err = client.communicate(timeout=SECONDS)
        assert client.returncode == 130, err
        assert err.decode() == "bpe-beam count: interrupted; the same command resumes\n"
        wait_until(lambda: not alive(started), "Beam's job server to end")
    if engine.name == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        wait_until(lambda: not cluster.running, "the job to end")
        assert list(cluster.jobs().values())[-1] == "CANCELED"
    wait_until(lambda: stands_still(out), "all work to end")
    assert finished_pieces(out) < SPLITS, "somebody has worked on"


def stands_still(out: Path) -> bool:
    """Whether no piece is finished for a while."""
    stood = finished_pieces(out)
    time.sleep(2)
    return finished_pieces(out) == stood
