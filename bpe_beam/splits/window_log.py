"""The windows of a stream: which files each has, written down before any of them is read.

A window is a folder `window-00000007` of the stream's output. Its `window.json` names its files and
how they are cut, is written once, and never changes; so the folder's other bytes follow from it,
whoever makes them and however often. Together these files are a log: who wants to add a window must
have read all before it, and of several who add the same number one succeeds. So a file is in one
window at most, even if a watcher that was taken for dead works on beside its successor.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from bpe_beam.corpus import Plan
from bpe_beam.errors import DataError
from bpe_beam.shards.formats import shard_name
from bpe_beam.shards.manifest import MANIFEST
from bpe_beam.storage import Found, Storage
from bpe_beam.storage.once import write_once

WINDOW_FILE = "window.json"
WORK = "work"

_VERSION = 1
_NAME = re.compile(r"window-([0-9]{8,18})")
_ATTEMPT = re.compile(r".+\.attempt-[0-9a-f]{12}", re.DOTALL)
_THREADS = 16


@dataclass(frozen=True)
class WindowFolder:
    """A window's folder, as its workers know it; plain and picklable.

    Attributes:
        storage: The door to storage.
        url: The folder.
        fingerprint: The window's, which all that is recorded of it carries.
    """

    storage: Storage
    url: str
    fingerprint: str

    def write_receipt(
        self, piece: str, files: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Records a finished shard."""
        receipt = {
            "fingerprint": self.fingerprint,
            "files": [dict(file) for file in files],
            "facts": dict(facts),
        }
        data = json.dumps(receipt, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self.storage.write_bytes(self._receipt(piece), data)

    def prepare(self) -> None:
        """Makes the folders that a shard's writer needs."""
        for name in (WORK, "rejects"):
            self.storage.make_folder(self.storage.join(self.url, name))

    def is_done(self, piece: str) -> bool:
        """Whether a shard of this very window was recorded, or the window is finished."""
        return self.is_finished() or self._recorded(piece) is not None

    def is_finished(self) -> bool:
        """Whether the window has its manifest."""
        return self.storage.exists(self.storage.join(self.url, MANIFEST))

    def receipts(self, plan: Plan) -> list[dict[str, Any]] | None:
        """What was recorded of the shards of a plan, in order; None until all are there.

        One that is not of this window, or whose files are not there, is removed and left out: its
        shard is to be made again.
        """
        pieces = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
        names = set(self.storage.list_names(self.storage.join(self.url, WORK)))
        if not names.issuperset(f"{piece}.json" for piece in pieces):
            return None
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(self._standing, pieces)
            return [receipt for receipt in found if receipt is not None]

    def finish(self, manifest: bytes, tokenizer: str) -> None:
        """Writes what makes the folder whole, the manifest last."""
        storage = self.storage
        storage.write_bytes(storage.join(self.url, "tokenizer.json"), tokenizer.encode())
        storage.sync_folders(self.url, storage.join(self.url, "rejects"))
        storage.write_bytes(storage.join(self.url, MANIFEST), manifest)
        storage.sync_folders(self.url)
        self.clear()

    def clear(self) -> None:
        """Removes from a finished window what was temporary."""
        storage = self.storage
        for name in storage.list_names(storage.join(self.url, WORK)):
            storage.remove(storage.join(self.url, WORK, name))
        for below in ((), ("rejects",)):
            for name in storage.list_names(storage.join(self.url, *below)):
                if _ATTEMPT.fullmatch(name):
                    storage.remove(storage.join(self.url, *below, name))
        for name in (WORK, "rejects"):
            storage.remove_folder_if_empty(storage.join(self.url, name))

    def _receipt(self, piece: str) -> str:
        return self.storage.join(self.url, WORK, f"{piece}.json")

    def _recorded(self, piece: str) -> dict[str, Any] | None:
        """A receipt; None if there is none, or one that is not of this window."""
        try:
            receipt: dict[str, Any] = json.loads(self.storage.read_bytes(self._receipt(piece)))
            return receipt if receipt["fingerprint"] == self.fingerprint else None
        except (ValueError, KeyError, TypeError):
            return None
        except DataError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            return None

    def _standing(self, piece: str) -> dict[str, Any] | None:
        """A receipt whose files are there; one that does not stand is removed."""
        receipt = self._recorded(piece)
        try:
            if receipt is not None and all(
                self.storage.size(self.storage.join(self.url, *file["name"].split("/")))
                == file["bytes"]
                for file in receipt["files"]
            ):
                return receipt
        except (KeyError, TypeError):
            pass
        except DataError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
        self.storage.remove(self._receipt(piece))
        return None


@dataclass(frozen=True)
class Window:
    """A window of a stream.

    Attributes:
        number: Its number, from 0.
        plan: Its files, with their tags, and its splits.
        record: The bytes of its `window.json`.
    """

    number: int
    plan: Plan
    record: bytes

    @staticmethod
    def of(number: int, plan: Plan, stream: str) -> Window:
        """A new window of the stream with this fingerprint."""
        row = {
            "version": _VERSION,
            "stream": stream,
            "number": number,
            "plan": plan.to_json(),
            "tags": [file.tag for file in plan.files],
        }
        text = json.dumps(row, ensure_ascii=False, indent=1)
        return Window(number, plan, f"{text}\n".encode())

    @staticmethod
    def read(data: bytes, number: int, stream: str, root: str, place: str) -> Window:
        """Reads a `window.json`.

        Raises:
            DataError: It is none of this stream.
        """
        try:
            row = json.loads(data)
            if (row["version"], row["stream"], row["number"]) != (_VERSION, stream, number):
                raise DataError(f"{place} is of another stream; move it out of the output folder")
            plan = Plan.from_json(row["plan"], root)
            files = tuple(
                replace(file, tag=str(tag))
                for file, tag in zip(plan.files, row["tags"], strict=True)
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{place} cannot be read: {error}") from error
        return Window(number, replace(plan, files=files), data)

    @property
    def name(self) -> str:
        """The folder's name."""
        return window_name(self.number)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its record."""
        return hashlib.sha256(self.record).hexdigest()


def window_name(number: int) -> str:
    """The name of a window's folder: `window-00000007`."""
    return f"window-{number:08}"


def window_numbers(storage: Storage, output: str) -> list[int]:
    """The numbers of the windows that have a folder, sorted."""
    found = (_NAME.fullmatch(name) for name in storage.list_names(output))
    return sorted(int(match[1]) for match in found if match)


class WindowLog:
    """All windows of a stream, as far as they were read.

    Attributes:
        open: The windows without a manifest, by number.
        files: Of every file of every window, what it was: size and tag, by name. About 300 bytes a
            file: what grows with a stream.
    """

    def __init__(self, storage: Storage, output: str, stream: str, root: str) -> None:
        self.open: dict[int, Window] = {}
        self.files: dict[str, str] = {}
        self._storage = storage
        self._output = output
        self._stream = stream
        self._root = root
        self._next: int | None = None

    def folder(self, window: Window) -> WindowFolder:
        """A window's folder."""
        url = self._storage.join(self._output, window.name)
        return WindowFolder(self._storage, url, window.fingerprint)

    def read_on(self) -> None:
        """Reads the windows that were added since.

        Cost: at first, at most three requests for each window that there is; later, one or two.

        Raises:
            DataError: Storage fails, or a record cannot be read.
        """
        if self._next is None:
            numbers = window_numbers(self._storage, self._output)
            with ThreadPoolExecutor(_THREADS) as pool:
                for window, is_open in pool.map(self._read, numbers):
                    self._add(window, is_open)
            self._next = self._next or 0
        while True:
            window, is_open = self._read(self._next)
            if window is None:
                return
            self._add(window, is_open)

    def append(self, plan: Plan) -> Window | None:
        """Adds a window, of files that are in none.

        Returns:
            The window; or None if another has added one meanwhile, which is to be read first.
        """
        assert self._next is not None
        window = Window.of(self._next, plan, self._stream)
        url = self.folder(window).url
        self._storage.make_folder(url)
        if not write_once(self._storage, self._storage.join(url, WINDOW_FILE), window.record):
            return None
        self._add(window, True)
        return window

    def close(self, window: Window) -> None:
        """Says that a window has its manifest."""
        self.open.pop(window.number, None)

    def _read(self, number: int) -> tuple[Window | None, bool]:
        """A window, and whether it is open; None if it has no record."""
        storage = self._storage
        url = storage.join(self._output, window_name(number))
        record = storage.join(url, WINDOW_FILE)
        try:
            data = storage.read_bytes(record)
        except DataError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            return None, False
        window = Window.read(data, number, self._stream, self._root, record)
        names = storage.list_names(url)
        if MANIFEST in names and WORK in names:
            self.folder(window).clear()  # whoever finished it was killed before
        return window, MANIFEST not in names

    def _add(self, window: Window | None, is_open: bool) -> None:
        if window is None:
            return
        if is_open:
            self.open[window.number] = window
        for file in window.plan.files:
            self.files[file.name] = version_of(file.size, file.tag)
        self._next = window.number + 1


def version_of(size: int, tag: str) -> str:
    """What tells a file from another of its name."""
    return f"{size} {tag}"


def is_as_before(file: Found, version: str) -> bool:
    """Whether a file is what `version_of` said of it."""
    return version_of(file.size, file.tag) == version
