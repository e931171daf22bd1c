"""The parts of a call of a job from Python: how it runs, its folder, its warnings."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from bpe_beam.api.arguments import Values, values_of
from bpe_beam.errors import DataError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings


def run_of(
    function: str, workers: int | None, progress: bool | str, values: Values
) -> tuple[RunSettings, Progress]:
    """Return how a job runs, and its progress; removes the storage options from the values."""
    checked = values_of(function, RunSettings, {"workers": workers})
    mode = progress_mode(progress)
    storage = values.pop("storage_options", {})
    run = RunSettings(**checked, progress=mode, quiet=True, storage_options=storage)
    return run, Progress(mode)


def progress_mode(progress: bool | str) -> str:
    """Return the mode of the progress that an argument means."""
    return progress if isinstance(progress, str) else "auto" if progress else "none"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a folder that is removed at the end, unless an error may name rejects in it."""
    folder, keep = Path(tempfile.mkdtemp(prefix="bpe-beam-")), False
    try:
        yield folder
    except DataError:
        keep = any(folder.glob("**/__rejects/*"))
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def show_warnings(messages: list[str] | None) -> None:
    """Raise a job's warnings as Python warnings of the caller of the public function."""
    for text in messages or ():
        warnings.warn(text, stacklevel=3)
