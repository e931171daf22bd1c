"""The parts of a call of a job from Python: how it runs, its folder, its warnings."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bpe_beam.api.arguments import Values, settings_of, values_of
from bpe_beam.errors import DataError
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.field import Settings

S = TypeVar("S", bound=Settings)


def job_settings(
    function: str,
    settings: type[S],
    arguments: Mapping[str, Any],
    *,
    mode: str,
    runner_options: Sequence[str],
    **of_run: Any,
) -> S:
    """Return the settings of a job that writes a folder, by the arguments of its function.

    `of_run` has the arguments for how it runs; `mode` is how its progress is shown.
    """
    values = values_of(function, settings, {**arguments, **of_run}, writes=True)
    chosen = {name: values.pop(name) for name in (*of_run, "storage_options") if name in values}
    run = RunSettings(progress=mode, quiet=True, runner_options=tuple(runner_options), **chosen)
    return settings_of(settings, {**values, "run": run})


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
