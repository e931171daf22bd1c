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

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import Plan
from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.publication import Publication
from bpe_beam.shards.numbering import numbered, shard_name
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.json_file import check_checksum, json_bytes, with_checksum
from bpe_beam.storage.names import attempted_name
from bpe_beam.workers.split_task import WORK

WINDOW_FILE = "window.json"
INPUT_FILE = "input.json"
"""Of a stream's folder: from which root the names of files in its windows start, as a hash."""


_VERSION = 2
"""Of `window.json` and of receipts. A `window.json` of version 1 and a receipt without a version,
which may have no checksum, are read, too."""

_INPUT_VERSION = 1
_KEYS = ("version", "stream", "number", "plan", "tags")
_RECEIPT_KEYS = ("version", "fingerprint", "files", "facts")
_NAME = re.compile(r"window-([0-9]{8,18})")
_OF_WATCHERS = (WINDOW_FILE, MANIFEST_FILE, TOKENIZER_FILE)
_THREADS = 16


@dataclass(frozen=True)
class WindowFolder:
    """A window's folder, as its workers know it; plain and picklable.

    Attributes:
        storage: The storage client.
        url: The folder.
        fingerprint: The window's, which all that is recorded of it carries.
    """

    storage: Storage
    url: str
    fingerprint: str

    def write_receipt(
        self, piece: str, files: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Record a finished shard."""
        receipt = {
            "version": _VERSION,
            "fingerprint": self.fingerprint,
            "files": [dict(file) for file in files],
            "facts": dict(facts),
        }
        self.storage.write_bytes(self._receipt(piece), with_checksum(receipt, indent=None))

    def prepare(self) -> None:
        """Make the folders that a shard's writer needs."""
        for name in (WORK, "rejects"):
            self.storage.make_folder(self.storage.join(self.url, name))

    def is_done(self, piece: str) -> bool:
        """Whether a shard of this very window was recorded, or the window is finished."""
        return self.is_finished() or self._recorded(piece) is not None

    def is_finished(self) -> bool:
        """Whether the window has its manifest."""
        return self.storage.exists(self.storage.join(self.url, MANIFEST_FILE))

    def pieces(self, plan: Plan) -> list[Publication] | None:
        """Return what was recorded of the splits of a plan, in order; None until all are there.

        A receipt that is not of this window, or whose files are not there, is removed and left out:
        its split is to be read again. A shard may have its final name already: another watcher
        finishes the window, too.
        """
        pieces = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
        names = set(self.storage.list_names(self.storage.join(self.url, WORK)))
        if not names.issuperset(f"{piece}.json" for piece in pieces):
            return None
        with ThreadPoolExecutor(_THREADS) as pool:
            receipts = list(pool.map(self._recorded, pieces))
            found = [receipt for receipt in receipts if receipt is not None]
            # All of them decide on the names.
            named = numbered(found) if len(found) == len(pieces) else []
            whole = list(pool.map(self._is_whole, named))
        lost = [piece for piece, receipt in zip(pieces, receipts, strict=True) if receipt is None]
        if named:
            lost = [piece for piece, stands in zip(pieces, whole, strict=True) if not stands]
        for piece in lost:
            self.storage.remove(self._receipt(piece))
        return [piece for piece, stands in zip(named, whole, strict=True) if stands]

    def finish(self, pieces: Iterable[Publication], manifest: bytes, tokenizer: str) -> None:
        """Write what makes the folder whole, the manifest last.

        Several watchers may finish one window at the same moment: they write the same bytes, and
        each of them ends well.

        Args:
            pieces: All splits of the window.
            manifest: The bytes of its manifest.
            tokenizer: The content of its tokenizer file.

        Raises:
            DataError: Storage fails.
        """
        storage = self.storage
        try:
            for piece in pieces:
                for name, final in piece.moves:
                    if name != final:
                        storage.move(self._path(name), self._path(final))
            storage.write_bytes(self._path(TOKENIZER_FILE), tokenizer.encode())
            storage.sync_folders(self.url, self._path("rejects"))
            storage.write_bytes(self._path(MANIFEST_FILE), manifest)
            storage.sync_folders(self.url)
        except DataError:
            # Another watcher has finished the window, and removed what both worked with.
            if not self.is_finished():
                raise
        self.clear()

    def clear(self, *, of_watchers: bool = False) -> None:
        """Remove from a finished window what its workers left.

        Args:
            of_watchers: Remove what watchers left, too, which may have been killed. One that is
                still writing ends well: the window is finished.
        """
        storage = self.storage
        for name in storage.list_names(self._path(WORK)):
            storage.remove(self._path(f"{WORK}/{name}"))
        for below in ("", "rejects/"):
            for name in storage.list_names(self._path(below) if below else self.url):
                final = attempted_name(name)
                if final is not None and (of_watchers or final not in _OF_WATCHERS):
                    storage.remove(self._path(f"{below}{name}"))
        for name in (WORK, "rejects"):
            storage.remove_folder_if_empty(self._path(name))

    def _path(self, name: str) -> str:
        return self.storage.join(self.url, *name.rstrip("/").split("/"))

    def _receipt(self, piece: str) -> str:
        return self._path(f"{WORK}/{piece}.json")

    def _recorded(self, piece: str) -> dict[str, Any] | None:
        """Read a receipt; None if there is none, or one that is not of this window."""
        try:
            data = self.storage.read_bytes(self._receipt(piece))
        except NotFoundError:
            return None
        try:
            receipt: dict[str, Any] = json.loads(data)
            check_checksum(data, receipt, piece, _RECEIPT_KEYS, required="version" in receipt)
            ours = receipt.get("version", _VERSION) == _VERSION
            return receipt if ours and receipt["fingerprint"] == self.fingerprint else None
        except (ValueError, KeyError, TypeError, AttributeError, DataError):
            return None

    def _is_whole(self, piece: Publication) -> bool:
        """Return whether the files of a piece are there, under the one name or the other."""
        finals = {final: name for name, final in piece.moves}
        return all(
            # In this order: a file that is being moved has its final name before it loses the old.
            self._has_size(finals.get(file["name"], file["name"]), file["bytes"])
            or self._has_size(file["name"], file["bytes"])
            for file in piece.receipt["files"]
        )

    def _has_size(self, name: str, size: int) -> bool:
        try:
            return self.storage.size(self._path(name)) == size
        except NotFoundError:
            return False


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
        """Make a new window of the stream with this fingerprint."""
        row = {
            "version": _VERSION,
            "stream": stream,
            "number": number,
            "plan": plan.to_json(),
            "tags": [file.tag for file in plan.files],
        }
        return Window(number, plan, with_checksum(row, indent=1))

    @staticmethod
    def read(data: bytes, number: int, stream: str, root: str, place: str) -> Window:
        """Read a `window.json`.

        Raises:
            DataError: It is not of this stream, not of a known version, or was changed.
        """
        try:
            row = json.loads(data)
            version = row["version"]
            if type(version) is not int or not 1 <= version <= _VERSION:
                raise DataError(
                    f"{place}: version {version!r}; this bpe-beam reads 1 to {_VERSION}"
                )
            check_checksum(data, row, place, _KEYS, required=version != 1)
            if (row["stream"], row["number"]) != (stream, number):
                raise DataError(f"{place} is of another stream; move it out of the output folder")
            plan = Plan.from_json(row["plan"], root)
            plan.check_cover()
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


def require_root(storage: Storage, output: str, watched: Watched) -> None:
    """Write down from which root files are named, and refuse another one.

    Windows name files from the root: below another one a new file of the same name would pass for
    one that was read.

    Args:
        storage: The storage client.
        output: The stream's folder, which exists.
        watched: Where files come.

    Raises:
        UsageError: The folder's windows name files from another root.
    """
    row = {"version": _INPUT_VERSION, "root_sha256": watched.root_fingerprint}
    data = json_bytes(row, indent=1)
    url = storage.join(output, INPUT_FILE)
    if write_once(storage, url, data):
        return
    if not window_numbers(storage, output):
        storage.write_bytes(url, data)  # nothing was read from the other root
        return
    raise UsageError(
        f"{redact(output)} holds windows of files below another folder than "
        f"{redact(watched.root)}, where the patterns of this --input begin: files of the same name "
        "would pass for read. Give the same --input as before, or another --output. If it is the "
        f"same folder under another name, delete {INPUT_FILE} in the output folder first"
    )


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
        """Read the windows that were added since.

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
        """Add a window of files that are in no other.

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
        """Note that a window has its manifest."""
        self.open.pop(window.number, None)

    def _read(self, number: int) -> tuple[Window | None, bool]:
        """A window, and whether it is open; None if it has no record."""
        storage = self._storage
        url = storage.join(self._output, window_name(number))
        record = storage.join(url, WINDOW_FILE)
        try:
            data = storage.read_bytes(record)
        except NotFoundError:
            return None, False
        window = Window.read(data, number, self._stream, self._root, record)
        names = storage.list_names(url)
        if MANIFEST_FILE in names and (WORK in names or any(map(attempted_name, names))):
            self.folder(window).clear(of_watchers=True)  # whoever finished it was killed before
        return window, MANIFEST_FILE not in names

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


def is_as_before(file: StoredFile, version: str) -> bool:
    """Whether a file is what `version_of` said of it."""
    return version_of(file.size, file.tag) == version
