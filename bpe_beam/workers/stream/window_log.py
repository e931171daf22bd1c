"""The windows of a stream: which files each has, written down before any of them is read.

A window is a folder `window-00000007` of the stream's output. Its `window.json` names its files and
their splits, is written once, and never changes; so the folder's other bytes follow from it,
whoever writes them and however often. Together these files are a log: whoever adds a window must
have read all before it, and of several who add the same number one succeeds. So a file is in one
window at most, even if a watcher that was taken for dead goes on beside its successor.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import msgspec

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import Plan
from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import (
    WORK,
    Publication,
    Receipt,
    TaskFolder,
    receipt_name,
    side_by_side,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.json_file import check_checksum, json_bytes, with_checksum
from bpe_beam.storage.names import attempted_name
from bpe_beam.workers.shard_manifest import final_names

WINDOW_FILE = "window.json"
INPUT_FILE = "input.json"
"""In a stream's folder: a hash of the root that the names of files in its windows start from."""


_VERSION = 2
"""The version of `window.json`. Version 1, which may have no checksum, is read, too."""

_INPUT_VERSION = 1
_KEYS = ("version", "stream", "number", "plan", "tags")
_NAME = re.compile(r"window-([0-9]{8,18})")
_OF_WATCHERS = (WINDOW_FILE, MANIFEST_FILE, TOKENIZER_FILE)
_THREADS = 16


class WindowFolder(TaskFolder):
    """The folder of a window; its receipts carry the window's fingerprint."""

    def prepare(self) -> None:
        """Make the folders that a shard's writer needs."""
        for name in (WORK, "rejects"):
            self.storage.make_folder(self.path(name))

    def is_done(self, task: str) -> bool:
        """Whether a shard of this very window has a receipt, or the window is finished."""
        return self.is_finished() or self.read_receipt(task) is not None

    def is_finished(self) -> bool:
        """Whether the window has its manifest."""
        return self.storage.exists(self.path(MANIFEST_FILE))

    def results(self, plan: Plan) -> list[Publication] | None:
        """Return the receipts of the splits of a plan, in order; None until all are there.

        A receipt that is not of this window, or whose files are missing, is removed and left out:
        its split is to be read again. A shard may have its final name already: another watcher
        finishes the window, too.
        """
        tasks = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
        if not set(self.finished_tasks()).issuperset(tasks):
            return None
        receipts = side_by_side(self.read_receipt, tasks)
        found = [receipt for receipt in receipts if receipt is not None]
        if len(found) < len(tasks):
            lost = [task for task, receipt in zip(tasks, receipts, strict=True) if receipt is None]
            self.remove(map(receipt_name, lost))
            return []
        publications = final_names(found)  # which follow from all receipts together
        whole = side_by_side(self._is_whole, publications)
        self.remove(
            receipt_name(task) for task, is_whole in zip(tasks, whole, strict=True) if not is_whole
        )
        return [row for row, is_whole in zip(publications, whole, strict=True) if is_whole]

    def finish(self, publications: Iterable[Publication], manifest: bytes, tokenizer: str) -> None:
        """Write what makes the folder whole, the manifest last.

        Several watchers may finish one window at the same moment: they write the same bytes, and
        each of them ends well.

        Args:
            publications: All splits of the window.
            manifest: The bytes of its manifest.
            tokenizer: The content of its tokenizer file.

        Raises:
            DataError: Storage fails.
        """
        storage = self.storage
        try:
            for publication in publications:
                for name, final in publication.moves:
                    if name != final:
                        storage.move(self.path(name), self.path(final))
            storage.write_bytes(self.path(TOKENIZER_FILE), tokenizer.encode())
            storage.sync_folders(self.url, self.path("rejects"))
            storage.write_bytes(self.path(MANIFEST_FILE), manifest)
            storage.sync_folders(self.url)
        except DataError:
            # Another watcher has finished the window, and removed what both worked with.
            if not self.is_finished():
                raise
        self.clear()

    def clear(self, *, of_watchers: bool = False) -> None:
        """Remove from a finished window the files that its workers left.

        Args:
            of_watchers: Whether to remove those that watchers left, too, which may have been
                killed. A watcher that is still writing ends well: the window is finished.
        """
        storage = self.storage
        self.remove(f"{WORK}/{name}" for name in storage.list_names(self.path(WORK)))
        for folder, below in ((self.url, ""), (self.path("rejects"), "rejects/")):
            for name in storage.list_names(folder):
                final = attempted_name(name)
                if final is not None and (of_watchers or final not in _OF_WATCHERS):
                    storage.remove(self.path(below + name))
        for name in (WORK, "rejects"):
            storage.remove_folder_if_empty(self.path(name))

    def _is_whole(self, publication: Publication) -> bool:
        """Whether the files of a split exist, under the one name or the other."""
        receipt: Receipt = publication.receipt
        before = {final: name for name, final in publication.moves}
        return all(
            # In this order: a file that is being moved has its final name before it loses the old.
            self.has_size(FileInfo(before.get(file.name, file.name), file.bytes, file.sha256))
            or self.has_size(file)
            for file in receipt.files
        )


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
                msgspec.structs.replace(file, tag=str(tag))
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
