"""`bpe_beam.mix`: the command's work from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bpe_beam.api.arguments import documented
from bpe_beam.api.job_calls import job_settings, progress_mode, show_warnings
from bpe_beam.api.tokenize import Summary
from bpe_beam.jobs import mix as job
from bpe_beam.progress import Progress
from bpe_beam.settings.mix import MixSettings
from bpe_beam.shards.mixture import texts_of
from bpe_beam.shards.mixture_folders import check_name

_AMOUNTS = ("share", "tokens_of", "max_epochs", "skip_tokens")

Folder = str | os.PathLike[str]


@documented(MixSettings, writes=True)
def mix(
    folders: Folder | Sequence[Folder] | Mapping[str, Folder | Sequence[Folder]],
    *,
    output: Folder,
    workers: int | None = None,
    progress: bool | str = False,
    overwrite: bool = False,
    runner: str | None = None,
    runner_options: Sequence[str] = (),
    **options: Any,
) -> Summary:
    """Mix tokens folders by tokens, as `bpe-beam mix` does, to the byte::

        bpe_beam.mix({"web": "tokens-web", "code": "tokens-code"}, output="mixed",
                     tokens="10B", share={"web": 0.6, "code": 0.4})

    The same call continues an interrupted run.

    Args:
        folders: Tokens folders, paths or URLs; a mapping has the folder of each source, or several.
        output: The folder of the shards, a path or URL.
        workers: The number of threads; None: the number of cores.
        progress: Whether to show the progress on stderr; or how: "bar", "plain" or "json".
        overwrite: Whether to replace what another job wrote into the output.
        runner: The Beam runner, such as "FlinkRunner"; None: this process, without Beam.
        runner_options: Options of the runner as on the command line.
        **options: The options below; they are the options of the command line. `share`,
            `tokens_of`, `max_epochs` and `skip_tokens` may be mappings from sources.

    Returns:
        The summary of the job, as `--summary-file` has it. Its warnings are raised as Python
        warnings, too.

    Raises:
        UsageError: An option is invalid, or a source has too few tokens; a ValueError.
        DataError: A folder is missing or damaged, or the mixture is empty.
        TypeError: An argument is not an option.
    """
    mode = progress_mode(progress)
    amounts = {
        name: texts_of(value)
        for name, value in options.items()
        if name in _AMOUNTS and value is not None
    }
    arguments = {**options, **amounts, "folders": _typed(folders), "output": output}
    settings = job_settings(
        "mix", MixSettings, arguments, mode=mode, runner_options=runner_options,
        workers=workers, runner=runner, overwrite=overwrite,
    )  # fmt: skip
    summary: Summary = msgspec.to_builtins(job.run(settings, Progress(mode)))
    show_warnings(summary.get("warnings"))
    return summary


def _typed(folders: Any) -> list[str]:
    """Return folders as typed texts."""
    if not isinstance(folders, Mapping):
        several = [folders] if isinstance(folders, (str, os.PathLike)) else folders
        return [os.fspath(folder) for folder in several]
    for name in folders:
        check_name(str(name))
    return [
        f"{name}={os.fspath(folder)}"
        for name, own in folders.items()
        for folder in ([own] if isinstance(own, (str, os.PathLike)) else own)
    ]
