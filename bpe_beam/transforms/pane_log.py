"""The window folders of a stream of documents: what each has, recorded before it is written.

A folder `window-00000007` begins with `__pane`, which is written once: if several add a folder of
one number, one succeeds. The `__pane` files of all folders are a log.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, PANE_FILE
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.shards.windows import window_name, window_numbers
from bpe_beam.storage import json_file, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.transforms.document_chunks import WrittenShard
from bpe_beam.transforms.tokens_folder import TokensFolder

Interval: TypeAlias = "tuple[int | None, int | None]"
"""The bounds of a window of time, in microseconds since 1970; none of the global window."""

_CACHED_INTERVALS = 4
_BLOCK = 256  # folders that are read side by side


class PaneShard(Struct, frozen=True, forbid_unknown_fields=True):
    """A shard of documents that waits to be written to a window folder.

    Attributes:
        name: Its name when it was written. It follows from what it has, so equal shards of equal
            panes have one name.
        row: The shard, maybe without documents that were written before.
        late: Whether its pane was late.
        has_ids: Whether documents have ids, whose hashes are in a file of this name.
    """

    name: str
    row: WrittenShard
    late: bool
    has_ids: bool


class PaneFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `__pane` without its checksum."""

    version: int
    stream: json_file.Sha256
    number: json_file.Count
    start: int | None
    end: int | None
    shards: tuple[PaneShard, ...]

    @property
    def interval(self) -> Interval:
        return self.start, self.end


class PaneLog:
    """The window folders of a stream, as a process has read them.

    Memory: some 200 bytes for each shard of documents that the stream has written, and the hashes
    of the ids of the last windows of time, 8 bytes each.

    Attributes:
        lock: Held while the log is used.
        written: The number of the folder of each shard, by the shard's name.
        open: The folders without a manifest.
    """

    def __init__(self, folder: TokensFolder) -> None:
        self.lock = threading.Lock()
        self._folder = folder
        self._reset()

    def _reset(self) -> None:
        self.next = 0
        self.written: dict[str, int] = {}
        self.open: list[PaneFile] = []
        self.last: PaneFile | None = None  # the last folder that was complete when it was read
        self._with_ids: dict[Interval, list[str]] = {}
        self._ids: OrderedDict[Interval, tuple[int, NDArray[np.uint64]]] = OrderedDict()

    def read_new(self) -> None:
        """Read the folders that were added since the last call.

        Cost: at the first call, two requests for each folder, many at a time; later, two or three.
        """
        if self.next and self._read(self.next - 1)[0] is None:
            self._reset()  # somebody has removed the folders of the stream
        if not self.written:
            numbers = window_numbers(self._folder.storage, self._folder.url)
            for start in range(0, len(numbers), _BLOCK):
                for file, is_open in side_by_side(self._read, numbers[start : start + _BLOCK]):
                    if file is not None:  # or a damaged window was removed
                        self._add(file, is_open)
        while True:
            file, is_open = self._read(self.next)
            if file is None:
                return
            self._add(file, is_open)

    def append(self, shards: Sequence[PaneShard], interval: Interval) -> bool:
        """Add a folder, which is open; return False if another process has added one meanwhile."""
        folder, (start, end) = self._folder, interval
        file = PaneFile(json_file.VERSION, folder.number, self.next, start, end, tuple(shards))
        url = folder.path(window_name(self.next))
        folder.storage.make_folder(url)
        data = json_file.with_checksum(file, indent=1)
        if not write_once(folder.storage, folder.storage.join(url, PANE_FILE), data):
            return False
        self._add(file, is_open=True)
        return True

    def ids(self, interval: Interval) -> NDArray[np.uint64]:
        """Return the sorted hashes of the ids of a window of time."""
        names = self._with_ids.get(interval, [])
        count, known = self._ids.pop(interval, (0, np.zeros(0, np.uint64)))
        new = [each for each in side_by_side(self.ids_of, names[count:]) if each is not None]
        if new:
            known = np.unique(np.concatenate([known, *new]))
        self._ids[interval] = len(names), known
        while len(self._ids) > _CACHED_INTERVALS:
            self._ids.popitem(last=False)
        return known

    def ids_of(self, name: str) -> NDArray[np.uint64] | None:
        """Return the hashes of the ids of a shard's documents, 0 without one; None without file."""
        try:
            data = self._folder.storage.read_bytes(ids_url(self._folder, name))
        except NotFoundError:
            return None
        return np.frombuffer(data, "<u8").astype(np.uint64)

    def _add(self, file: PaneFile, is_open: bool) -> None:
        self.next = file.number + 1
        self.written.update((shard.name, file.number) for shard in file.shards)
        if file.end is not None:  # in the global window ids are not compared
            names = [shard.name for shard in file.shards if shard.has_ids]
            self._with_ids.setdefault(file.interval, []).extend(names)
        if is_open:
            self.open.append(file)
        else:
            self.last = file

    def _read(self, number: int) -> tuple[PaneFile | None, bool]:
        """Return what a folder has, and whether it is open; None if there is none."""
        storage, name = self._folder.storage, window_name(number)
        url = self._folder.path(f"{name}/{PANE_FILE}")
        try:
            data = storage.read_bytes(url)
        except NotFoundError:
            return None, False
        source = redact(url)
        file = json_file.to_struct(json_file.read_signed(data, source), PaneFile, source)
        if (file.stream, file.number) != (self._folder.number, number):
            raise DataError(f"{source} is of another stream; move it out of the folder")
        return file, not storage.exists(self._folder.path(f"{name}/{MANIFEST_FILE}"))


def ids_url(folder: TokensFolder, name: str) -> str:
    """Return the URL of the hashes of the ids of a shard's documents."""
    return folder.path(f"work/ids/{name}.bin")
