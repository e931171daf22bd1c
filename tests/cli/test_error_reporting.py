"""Errors are one message, without tracebacks."""

from __future__ import annotations

import io
from typing import TextIO, cast

import pytest

from bpe_beam.cli.error_reporting import Masked, WithoutTracebacks, describe, write_message
from bpe_beam.storage import Storage

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


def test_secrets_of_storage_options_are_masked_on_the_way_to_stderr() -> None:
    stream = io.StringIO()
    out = cast(TextIO, Masked(stream))
    Storage({"az": {"sas_token": "sv=2022&sig=of/the+stream="}})
    print("INFO request ?sig=of%2fthe%2Bstream%3D&sv=2022 to somewhere", file=out)
    assert stream.getvalue() == "INFO request ?sig=***&sv=2022 to somewhere\n"
    assert not out.isatty()
