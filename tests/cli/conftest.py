"""What the tests of the command line share: a job that is a function, and usage that is refused."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from bpe_beam.cli import main as cli
from bpe_beam.settings.jobs import JOBS


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs what must end with exit code 2, and returns its one message."""

    def run(*argv: str) -> str:
        assert cli.main(argv) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        name = f"bpe-beam {argv[0]}: " if argv and argv[0] in JOBS else "bpe-beam: "
        assert captured.err.startswith(name)
        return captured.err.removeprefix(name).rstrip("\n")

    return run


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any]], None]:
    """Return a function that puts another function in the place of a job."""

    def put(name: str, run: Callable[..., Any]) -> None:
        module = types.ModuleType(f"bpe_beam.jobs.{name}")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return put
