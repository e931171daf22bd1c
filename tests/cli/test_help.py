"""The help of jobs and options."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bpe_beam.cli import main as cli
from bpe_beam.cli.arguments import read_arguments, settings_of
from bpe_beam.settings.jobs import GROUPS, JOBS

pytestmark = pytest.mark.quick


def settings(*argv: str) -> Any:
    return settings_of(read_arguments(*cli.job_of(argv)))


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    most = min(100, columns - 1)
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= most
    for name, spec in JOBS.items():
        assert re.search(rf"^  {name}( |$)", text, re.MULTILINE)
        assert cli.main([*name.split(), "--help"]) == 0
        own = capsys.readouterr().out
        joined = re.sub(r" \\\n +", " ", own)
        assert re.sub(r" \\\n +", " ", spec.example).splitlines()[0] in joined
        for option in spec.options.values():
            assert (option.flag if option.flag[0] == "-" else option.metavar) in own
        assert max(map(len, own.splitlines())) <= most
    for name, jobs in GROUPS.items():
        assert cli.main([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= most
        assert all(any(line.startswith(f"  bpe-beam {job}") for line in lines) for job in jobs)
    assert cli.main(["count", "-h"]) == 0


def test_the_help_begins_with_what_every_job_needs(capsys: pytest.CaptureFixture[str]) -> None:
    for name, first in (
        ("train", ["--input", "--output", "--vocab-size"]),
        ("count", ["--input", "--output"]),
        ("tokenize", ["--input", "--tokenizer", "--output"]),
    ):
        assert cli.main([name, "--help"]) == 0
        flags = re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
        assert flags[: len(first)] == first


@pytest.mark.parametrize(
    "argv", [["help", "train"], ["--help", "train"], ["train", "help"], ["help", "counts merge"]]
)
def test_help_of_a_job_in_other_words(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    job = next(word for word in argv if "help" not in word).split()
    for words in ([*job, "--help"], [part for word in argv for part in word.split()]):
        assert cli.main(words) == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1]
    assert pages[0].startswith(f"usage: bpe-beam {' '.join(job)}")


def test_who_names_no_job_is_told_what_to_type(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("bpe-beam: no job given\n")
    for line in ("bpe-beam quickstart", "bpe-beam train --input", "bpe-beam --help"):
        assert f"\n  {line}" in captured.err


def test_the_examples_of_the_help_are_right() -> None:
    import shlex

    for name, spec in JOBS.items():
        for line in spec.example.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            assert " ".join(words).partition(name)[0] == "bpe-beam "
            settings(*words[1:])
