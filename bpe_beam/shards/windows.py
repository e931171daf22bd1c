"""The windows in the output of a stream: tokens folders `window-00000000`, `window-00000001`, ….

A window is complete when its manifest exists. Windows get their manifests in the order of their
numbers, so the complete ones are the first ones. Only the repair of a window, by removing its
manifest, leaves an open window before complete ones.
"""

from __future__ import annotations

import re
from itertools import compress, takewhile
from typing import NamedTuple

from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.folder_kind import WINDOWS, kind_of
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.storage import Storage

_NAME = re.compile(r"window-([0-9]{8,18})")


class Windows(NamedTuple):
    """The names of the windows of a stream's output, in the order of their numbers."""

    finished: list[str]
    open: list[str]

    @property
    def readable(self) -> list[str]:
        """The finished windows before the first open one: later windows only add to them."""
        end = min(map(number_of, self.open), default=None)
        return [*takewhile(lambda name: end is None or number_of(name) < end, self.finished)]


def is_stream(storage: Storage, folder: str) -> bool:
    """Return whether a folder is the output of a stream, with or without windows."""
    if storage.exists(storage.join(folder, MANIFEST_FILE)):
        return False
    return bool(window_numbers(storage, folder)) or kind_of(storage, folder) == WINDOWS


def window_name(number: int) -> str:
    """Return the name of a window's folder: `window-00000007`."""
    return f"window-{number:08}"


def window_numbers(storage: Storage, output: str) -> list[int]:
    """Return the sorted numbers of the windows that have a folder."""
    matches = (_NAME.fullmatch(name) for name in storage.list_names(output))
    return sorted(int(match[1]) for match in matches if match)


def windows_of(storage: Storage, output: str, after: int = -1) -> Windows:
    """Return the windows of a stream's output with numbers greater than `after`.

    Cost: one listing, and one request for each of these windows, several at a time.
    """
    numbers = (number for number in window_numbers(storage, output) if number > after)
    names = [window_name(number) for number in numbers]
    urls = [storage.join(output, name, MANIFEST_FILE) for name in names]
    finished = set(compress(names, side_by_side(storage.exists, urls)))
    return Windows(
        [name for name in names if name in finished],
        [name for name in names if name not in finished],
    )


def number_of(name: str) -> int:
    """Return the number of a window by the name of its folder."""
    return int(name.rpartition("-")[2])
