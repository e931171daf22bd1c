"""Runs what the README and docs/running.md tell users to type, on a small corpus."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import made_text
import pytest

import bpe_beam
from bpe_beam.settings.jobs import JOBS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
RUNNING = (ROOT / "docs/running.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
# Installing is what .ci/run does, by these very lines.
INSTALLS = "python3 -m venv"


def blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page that can be run: (language, content), in order."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, content) for language, content in found if INSTALLS not in content]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a user of the README stands: a corpus, the configs, and `bpe-beam` on the path."""
    folder = tmp_path_factory.mktemp("readme")
    for part in range(2):
        texts = made_text.documents(300, seed=part)
        made_text.write(folder / "data" / f"part-{part}.jsonl.gz", texts)
    (folder / "configs").symlink_to(ROOT / "configs")
    command = folder / "bin" / "bpe-beam"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bpe_beam "$@"\n')
    command.chmod(0o755)
    return folder


def run(folder: Path, language: str, content: str) -> str:
    command = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    where = {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(bpe_beam.__file__).parents[1]),
    }
    done = subprocess.run(
        [*command[language], content],
        cwd=folder,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{content}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_example_runs(folder: Path) -> None:
    shown = [run(folder, *block) for block in blocks(README) + blocks(RUNNING)]

    assert len(shown) == 8
    assert shown[0].startswith("token ")
    assert shown[2].split()[:5] == ["count", "share", "books", "web", "word"]
    assert "first documents" in shown[3]
    for output in ("tokenizer", "tokenizer-8k", "tokenizer-64k", "weighted"):
        assert (folder / output / "tokenizer.json").exists()
    for output in ("tokens", "tokens-of-mine"):
        assert (folder / output / "manifest.json").exists()
    run(folder, "sh", "bpe-beam verify tokens-of-mine")


@pytest.mark.quick
def test_the_two_commands_stand_there() -> None:
    commands = [line for line in README.splitlines() if line.startswith(INSTALLS)]
    assert len(commands) == 2
    assert commands[0].endswith("bpe-beam quickstart")
    assert ".venv/bin/pytest" in commands[1]


@pytest.mark.quick
def test_every_job_is_named() -> None:
    table = README.split("## What it does")[1].split("##")[0]
    assert set(JOBS) <= set(re.findall(r"`(?:bpe-beam )?([a-z -]+)`", table))


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link
