"""The windows in the output of a stream: tokens folders `window-00000000`, `window-00000001`, ….

A window is complete when its manifest exists. Windows get their manifests in the order of their
numbers, so the complete ones are the first ones. Only the repair of a window, by removing its
manifest, leaves an open window before complete ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress, takewhile
from typing import NamedTuple

from bpe_beam.errors import DataError, require
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.folder_kind import WINDOWS, kind_of
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import is_glob, parent

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


class ChosenFolders(NamedTuple):
    """The folders that arguments of a command mean."""

    folders: list[str]
    open: list[str]  # the windows among them that are not finished, or not readable yet


def chosen_folders(
    storage: Storage, arguments: Sequence[str], *, readable: bool = False
) -> ChosenFolders:
    """Return the folders that arguments mean: a folder, a glob of finished folders, or a stream.

    The output of a stream means its finished windows, and with `readable` only those before the
    first open one.

    Raises:
        UsageError: A glob matches no finished folder.
        DataError: A stream has no finished window.
    """
    folders: list[str] = []
    open_: list[str] = []
    for argument in arguments:
        if is_glob(argument) and not storage.is_folder(argument):
            pattern = storage.join(argument, MANIFEST_FILE)
            matches = [parent(file.url) for file in storage.expand(pattern)]
            require(bool(matches), f"{redact(argument)}: no finished folder has such a name")
            folders += matches
        elif is_stream(storage, argument):
            windows = windows_of(storage, argument)
            chosen = windows.readable if readable else windows.finished
            if not chosen:
                raise no_window_error(argument)
            folders += (storage.join(argument, name) for name in chosen)
            others = {*windows.finished, *windows.open}.difference(chosen)
            open_ += (storage.join(argument, name) for name in sorted(others, key=number_of))
        else:
            folders.append(argument)
    return ChosenFolders(folders, open_)


def no_window_error(output: str) -> DataError:
    """Return the error of a stream that has nothing to read yet."""
    return DataError(
        f"{redact(output)}: the stream has no finished window yet",
        remedy="wait for its first window",
    )
