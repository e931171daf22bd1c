"""Elements of a pipeline, written to files: the one way that works on every runner."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam


class Kept(NamedTuple):
    """An element that a pipeline made.

    Attributes:
        window: The start of its window in seconds; None in the global window.
        time: Its timestamp in seconds.
        pane: The number of its pane.
        element: The element.
    """

    window: float | None
    time: float
    pane: int
    element: Any


class Keep(beam.DoFn):  # type: ignore[misc]
    """Write each element to a file of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def process(
        self,
        element: Any,
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        start = float(window.start) if hasattr(window, "start") else None
        row = (start, float(timestamp), pane.index, element)
        Path(self.folder, uuid.uuid4().hex).write_bytes(pickle.dumps(row))


def kept_in(folder: Path) -> list[Kept]:
    """Return the elements that `Keep` wrote to a folder, in no order."""
    return [Kept(*pickle.loads(path.read_bytes())) for path in folder.iterdir()]
