"""Errors are one message, without tracebacks."""

from __future__ import annotations

import io
from typing import TextIO, cast

import pytest

from bpe_beam.cli.error_reporting import WithoutTracebacks, describe, write_message

pytestmark = pytest.mark.quick


def test_descriptions() -> None:
    assert describe(ValueError("x y")) == "ValueError: x y"
    assert describe(MemoryError()) == "MemoryError"
    numpys = ImportError("PLEASE READ\n\nOriginal error was: a.so: failed to map")
    assert describe(numpys) == "ImportError: a.so: failed to map"
    assert describe(RuntimeError("Traceback (most recent call last):\n  File\nOSError: gone")) == (
        "OSError: gone"
    )


def test_a_closed_stderr_does_not_undo_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    assert write_message("a (b)", 2) == 2
    assert stream.getvalue() == "a (b)\n"
    stream.close()
    assert write_message("c") == 0


def test_a_stream_without_tracebacks() -> None:
    stream = io.StringIO()
    filtered = cast(TextIO, WithoutTracebacks(stream))
    print("before", file=filtered)
    print("Traceback (most recent call last):\n  File x\nError: y\n", file=filtered)
    print("after", file=filtered)
    filtered.flush()
    assert stream.getvalue() == "before\nafter\n"
    assert not filtered.isatty()
