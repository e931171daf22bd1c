"""The options of the jobs on counts folders: merge, show, filter."""

from __future__ import annotations

from bpe_beam.settings.counts import ShowCountsSettings
from bpe_beam.settings.option import Option

_OUTPUT = Option("--output", "DIR", "folder of the new counts", required=True)
_FOLDER = Option("folder", "DIR", "what count wrote", required=True)
_MIN_COUNT = Option("--min-count", "N", "leave words out that occur less often in all")

MERGING = (
    Option("folders", "DIR", "two or more folders that count wrote", "many", required=True),
    _OUTPUT,
)
SHOWING = (
    _FOLDER,
    Option("--top", "N", f"so many words (default {ShowCountsSettings.top})"),
    Option("--source", "NAME", "count this source only; repeat for more", "repeat"),
    _MIN_COUNT,
)
FILTERING = (
    _FOLDER,
    _OUTPUT,
    _MIN_COUNT,
    Option("--source", "NAME", "keep this source only; repeat for more", "repeat"),
)
