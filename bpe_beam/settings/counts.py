"""Settings of the jobs on counts folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe_beam.errors import require
from bpe_beam.settings.common import MESSAGES, WRITING, RunSettings, output_option
from bpe_beam.settings.field import MAX_INT64, Settings, option, part


def folder_option() -> Any:
    """Return the argument `FOLDER`."""
    return option(flag="folder", metavar="DIR", help="Folder that count wrote.")


def sources_option(what: str, **more: Any) -> Any:
    """Return the option `--source`; its names are sorted, each once."""
    return option(
        None,
        flag="--source",
        metavar="NAME",
        kind="repeat",
        help=f"Source to {what} (default: all). Repeat for more.",
        parse=lambda texts: tuple(sorted(set(texts))),
        **more,
    )


def min_count_option(what: str, **more: Any) -> Any:
    """Return the option `--min-count`."""
    return option(
        1,
        help=f"{what} words whose total count over the chosen sources is below N.",
        between=(1, MAX_INT64),
        **more,
    )


@dataclass(frozen=True)
class MergeCountsSettings(Settings):
    """Settings of `counts merge`: counts folders to one."""

    folders: tuple[str, ...] = option(
        flag="folders", metavar="DIR", kind="many", help="Two or more folders that count wrote."
    )
    output: str = output_option("new counts")
    run: RunSettings = part(RunSettings, RunSettings(), only=WRITING)

    def check(self) -> None:
        """Refuse fewer than two folders."""
        require(
            len(self.folders) >= 2,
            f"must be two or more counts folders, got {len(self.folders)}",
            "folders",
        )


@dataclass(frozen=True)
class FilterCountsSettings(Settings):
    """Settings of `counts filter`: a counts folder to a smaller one."""

    folder: str = folder_option()
    output: str = output_option("new counts")
    min_count: int = min_count_option("Drop", identity="always")
    sources: tuple[str, ...] | None = sources_option("keep", identity="always")
    run: RunSettings = part(RunSettings, RunSettings(), only=WRITING)

    def check(self) -> None:
        """Refuse a filter that keeps everything."""
        require(
            self.min_count > 1 or self.sources is not None,
            "must be at least 2 if no source is chosen: nothing would be dropped",
            "min_count",
            remedy="give {min_count} or {sources}",
        )


MAX_TOP = 1_000_000


@dataclass(frozen=True)
class ShowCountsSettings(Settings):
    """Settings of `counts show`: the most frequent words of a counts folder."""

    folder: str = folder_option()
    top: int = option(20, help="Number of words to print.", between=(1, MAX_TOP))
    sources: tuple[str, ...] | None = sources_option("count")
    min_count: int = min_count_option("Skip")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)
