"""What jobs show on terminals of several widths."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from command_line import COMMAND, ROOT, run, run_whole
from made_text import documents, write

from bpe_beam import terminal
from bpe_beam.terminal import width_of

STYLES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two tokenizers, counts by source, and tokens."""
    root = tmp_path_factory.mktemp("made")
    for number in range(3):
        write(root / "corpus" / f"language-{number}.jsonl", documents(100, number, words=100))
    sources = [f"--source=language-{number}=*{number}.jsonl" for number in range(3)]
    corpus = ("--input", root / "corpus", *sources)
    run_whole("train", *corpus, "--vocab-size", 500, "--output", root / "a")
    counts = ("--counts", root / "a" / "counts", "--special-token", "<|" + "世" * 30 + "|>")
    run_whole("train", *counts, "--vocab-size", 600, "--output", root / "b")
    run_whole("tokenize", *corpus, "--tokenizer", root / "b", "--output", root / "tokens")
    return root


@pytest.mark.sampled(2)
@pytest.mark.parametrize("columns", [24, 40, 60, 80, 200])
def test_lines_fit(made: Path, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Only paths and hashes, which people copy, may be wider than the terminal."""
    counts = made / "a" / "counts"
    text = "Hello, 世界 " + "token 한국어 " * 20
    jobs: list[tuple[object, ...]] = [
        *(("inspect", made / name) for name in ("a", "b", "tokens")),
        ("inspect", counts),
        ("diff", made / "a", made / "b", "--counts", counts, "--quiet"),
        ("encode", "--tokenizer", made / "b", "--show", text),
        ("evaluate", "--tokenizer", made / "b", "--counts", counts, "--format", "text"),
        ("plan", "--input", made / "corpus"),
    ]
    for job in jobs:
        whole = run(*job, "--progress", "none") if job[0] in ("diff", "evaluate") else run(*job)
        with monkeypatch.context() as patched:
            patched.setattr(terminal, "is_terminal", lambda stream: True)
            patched.setattr(terminal, "columns_of", lambda stream: columns)
            patched.delenv("NO_COLOR", raising=False)
            args = ("--progress", "none") if job[0] in ("diff", "evaluate") else ()
            narrow = run(*job, *args)
        lines = STYLES.sub("", narrow.out.decode()).splitlines()
        assert lines
        assert whole.code == narrow.code
        for line in lines:
            last = line.split()[-1] if line.split() else ""
            copied = last.startswith((str(made), "language-")) or len(last) == 64
            assert width_of(line) <= columns or copied, (job, line)
        if columns == 200 and job[0] == "evaluate":
            assert lines == whole.out.decode().splitlines()


@pytest.mark.parametrize("columns", [30, 80])
def test_a_real_terminal(made: Path, tmp_path: Path, columns: int) -> None:
    """The bar, the summary, and an error with a path."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)
    shown = []
    for inputs in (made / "corpus", tmp_path / ("missing" * 9)):
        process = subprocess.Popen(
            [*COMMAND, "count", "--input", str(inputs), "--output", "out/counts"],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            env={**environment, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
        )
        process.wait()
        shown.append(os.read(leader, 1 << 20).decode().replace("\r\n", "\n"))
    os.close(follower)
    os.close(leader)
    counted, failed = shown
    for line in counted.replace("\r", "\n").splitlines():
        assert width_of(line) <= columns, line
    if columns == 30:
        assert "  bpe-beam train \\\n      --counts out/counts \\\n" in counted
    else:
        assert "  bpe-beam train --counts out/counts --vocab-size 32000 --output" in counted
    assert str(tmp_path / ("missing" * 9)) in failed
    assert len(failed.splitlines()) > 1
    assert json.loads((tmp_path / "out" / "counts" / "__manifest").read_bytes())
