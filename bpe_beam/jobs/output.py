"""Standard streams, and the files that a job writes next to its folder: a report, its summary.

The command line imports this module at its start: only what writes files imports the storage.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import DataError, require

if TYPE_CHECKING:
    from bpe_beam.storage import Storage

STDOUT = "-"
"""The name of stdout in place of a path."""


def prompt_on_terminal(what: str) -> None:
    """Ask on stderr for input, such as "the text", if standard input is a terminal."""
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"type {what}, then {end} on a new line:", file=sys.stderr, flush=True)


def read_stdin() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(f"cannot read standard input: {_reason(error)}") from error


def write_stdout(data: bytes) -> None:
    """Write bytes to stdout, after what was printed before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def stdout_errors() -> Iterator[None]:
    """Return a context that names stdout in errors of writing to it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot write to standard output: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)


def require_stdout() -> None:
    """Refuse a closed stdout before the job whose result is written there."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError):  # a stream in memory
        return
    with stdout_errors():
        os.write(number, b"")


def prepare_file(storage: Storage, target: str, parameter: str) -> None:
    """Make the folder of a file, and refuse a file that cannot be written, before a job begins."""
    if target == STDOUT:
        require_stdout()
        return
    from bpe_beam.storage.names import parent

    require(not storage.is_folder(target), f"must be a file, got the folder {target!r}", parameter)
    storage.make_folder(parent(target))
    storage.check_writable(target)


def write_json(
    value: Mapping[str, Any], target: str, storage_options: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a value as JSON to a path, a URL, or stdout."""
    from bpe_beam.storage.json_file import json_bytes

    data = json_bytes(dict(value))
    if target == STDOUT:
        write_stdout(data)
        return
    from bpe_beam.storage import Storage  # imports fsspec, which stdout does not need

    Storage(storage_options).write_bytes(target, data)
