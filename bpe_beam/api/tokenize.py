"""`bpe_beam.tokenize`: the command's work from Python."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from bpe_beam.api.arguments import documented
from bpe_beam.api.job_calls import job_settings, progress_mode, show_warnings
from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.tokenizer.files.transformers_files import CONFIG_FILE
from bpe_beam.tokenizer.tokenizer import Tokenizer

Summary: TypeAlias = dict[str, Any]  # the summary of a job, as JSON values by name


@documented(TokenizeSettings, writes=True)
def tokenize(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    tokenizer: Tokenizer | str | os.PathLike[str],
    output: str | os.PathLike[str],
    workers: int | None = None,
    progress: bool | str = False,
    overwrite: bool = False,
    runner: str | None = None,
    runner_options: Sequence[str] = (),
    **options: Any,
) -> Summary:
    """Turn a corpus into a folder of token shards, as `bpe-beam tokenize` does, to the byte::

        bpe_beam.tokenize("data/*.jsonl.gz", tokenizer=tokenizer, output="tokens", append="</s>")
        data = bpe_beam.shards.open("tokens")

    The same call continues an interrupted run. Texts in memory are for
    `Tokenizer.encode_batch`, or for the Beam transforms `Tokenize` and `WriteTokens`.

    Args:
        paths: The corpus: paths, URLs, folders, globs, or @FILE, a list of them; one or several.
        tokenizer: A tokenizer, or the path or URL of its file or folder.
        output: The folder of the shards, a path or URL.
        workers: The number of threads; None: the number of cores.
        progress: Whether to show the progress on stderr; or how: "bar", "plain" or "json".
        overwrite: Whether to replace what another job wrote into the output.
        runner: The Beam runner, such as "FlinkRunner"; None: this process, without Beam.
        runner_options: Options of the runner as on the command line, such as
            "--flink_master=host:8081".
        **options: The options below; they are the options of the command line.

    Returns:
        The summary of the job, as `--summary-file` has it. Its warnings are raised as Python
        warnings, too.

    Raises:
        UsageError: An option is invalid; a ValueError.
        DataError: The corpus is empty, or has too many records that cannot be used.
        TypeError: An argument is not an option.
    """
    if paths is not None:
        if "inputs" in options or "input" in options:
            raise UsageError("exclude each other", ("paths", "inputs"), "give one of them")
        options["inputs"] = _names(paths)
    mode = progress_mode(progress)
    with _file_of(tokenizer) as file:
        settings = job_settings(
            "tokenize", TokenizeSettings, {**options, "tokenizer": file, "output": output},
            mode=mode, runner_options=runner_options,
            workers=workers, runner=runner, overwrite=overwrite,
        )  # fmt: skip
        name = "dry_run" if settings.only_estimates else "tokenize"
        job = importlib.import_module(f"bpe_beam.jobs.{name}")
        summary: Summary = msgspec.to_builtins(job.run(settings, Progress(mode)))
    show_warnings(summary.get("warnings"))
    return summary


@contextmanager
def _file_of(
    tokenizer: Tokenizer | str | os.PathLike[str],
) -> Iterator[str | os.PathLike[str]]:
    """Yield the path of a tokenizer; a tokenizer in memory is written to a temporary file."""
    if not isinstance(tokenizer, Tokenizer):
        yield tokenizer
        return
    with tempfile.TemporaryDirectory(prefix="bpe-beam-") as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(tokenizer.json_bytes)
        path.with_name(CONFIG_FILE).write_bytes(msgspec.json.encode(tokenizer.roles))
        yield path


def _names(paths: Any) -> list[Any]:
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    if not isinstance(several, (list, tuple)) or not all(
        isinstance(each, (str, os.PathLike)) for each in several
    ):
        raise UsageError(
            f"must be paths, URLs or globs, got {type(paths).__name__}",
            ("paths",),
            "texts in memory are for Tokenizer.encode_batch",
        )
    return [*several]
