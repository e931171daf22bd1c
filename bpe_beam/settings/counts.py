"""Settings of the jobs on counts folders: merge, show, filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe_beam.settings.checks import require
from bpe_beam.settings.common import MESSAGES, WRITING, RunSettings, output_option
from bpe_beam.settings.field import MAX_INT64, Settings, option, part
from bpe_beam.settings.parsing import parse_integer

MAX_TOP = 1_000_000


def _folder_option() -> Any:
    return option(flag="folder", metavar="DIR", help="Folder that count wrote.")


def _sources_option(what: str) -> Any:
    return option(
        (),
        flag="--source",
        metavar="NAME",
        kind="repeat",
        help=f"Source to {what} (default: all sources). Repeat for more.",
    )


def _min_count_option(what: str) -> Any:
    return option(
        1,
        metavar="N",
        help=f"{what} words whose total count over the chosen sources is below N.",
        parse=parse_integer,
        between=(1, MAX_INT64),
    )


@dataclass(frozen=True)
class MergeCountsSettings(Settings):
    """Counts folders to one."""

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
class ShowCountsSettings(Settings):
    """The most frequent words of a counts folder."""

    folder: str = _folder_option()
    top: int = option(
        20, metavar="N", help="Number of words.", parse=parse_integer, between=(1, MAX_TOP)
    )
    sources: tuple[str, ...] = _sources_option("count")
    min_count: int = _min_count_option("Leave out")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class FilterCountsSettings(Settings):
    """A counts folder to a smaller one."""

    folder: str = _folder_option()
    output: str = output_option("new counts")
    min_count: int = _min_count_option("Drop")
    sources: tuple[str, ...] = _sources_option("keep")
    run: RunSettings = part(RunSettings, RunSettings(), only=WRITING)

    def check(self) -> None:
        """Refuse a filter that keeps everything."""
        require(
            self.min_count > 1 or bool(self.sources),
            "must be at least 2 where no source is chosen: nothing would be dropped",
            "min_count",
            remedy="give {min_count} or {sources}",
        )
