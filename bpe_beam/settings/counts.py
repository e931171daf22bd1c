"""What the jobs on counts folders are told to do: frozen settings, checked when they are made.

Light on purpose: no Beam, Arrow or NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_beam.settings.checks import require, require_text
from bpe_beam.settings.common import RunSettings

MAX_TOP = 1_000_000


@dataclass(frozen=True)
class MergeCountsSettings:
    """Counts folders to one.

    Attributes:
        folders: What `count` wrote, two or more.
        output: Folder of the sums.
        run: Only what concerns messages, storage and the output folder.
    """

    folders: tuple[str, ...]
    output: str
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        """Checks each setting."""
        for folder in self.folders:
            require_text("folders", folder)
        require_text("output", self.output)
        require(
            len(self.folders) >= 2,
            f"merge adds two or more counts folders, not {len(self.folders)}",
        )


@dataclass(frozen=True)
class ShowCountsSettings:
    """A counts folder, to be looked at.

    Attributes:
        folder: What `count` wrote.
        top: How many words are shown.
        sources: Those that are counted; empty: all.
        min_count: Words that occur less often in these are not shown.
        run: Only what concerns messages and storage.
    """

    folder: str
    top: int = 20
    sources: tuple[str, ...] = ()
    min_count: int = 1
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("folder", self.folder)
        require(
            1 <= self.top <= MAX_TOP, f"top must be between 1 and {MAX_TOP:,}, not {self.top:,}"
        )
        _check(self.sources, self.min_count)


@dataclass(frozen=True)
class FilterCountsSettings:
    """A counts folder to a smaller one.

    Attributes:
        folder: What `count` wrote.
        output: Folder of what is kept.
        min_count: Words that occur less often in all sources that are kept are left out.
        sources: Those that are kept; empty: all.
        run: Only what concerns messages, storage and the output folder.
    """

    folder: str
    output: str
    min_count: int = 1
    sources: tuple[str, ...] = ()
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("folder", self.folder)
        require_text("output", self.output)
        _check(self.sources, self.min_count)
        require(
            self.min_count > 1 or bool(self.sources),
            "nothing would be left out: give --min-count (2 or more) or --source",
        )


def _check(sources: tuple[str, ...], min_count: int) -> None:
    for source in sources:
        require_text("source", source)
    require(1 <= min_count < 2**63, f"min_count must be between 1 and 2^63 - 1, not {min_count:,}")
