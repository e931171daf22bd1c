"""The windows of a stream: the files of each window, recorded before they are read.

A window is a folder `window-00000007` of the stream's output. Its `__window` names its files and
their splits and never changes, so all writers of the folder's other files write the same bytes. The
`__window` files of all windows are a log: a watcher that adds a window has read all windows
before it, and if several add the same number, one succeeds. So a file is in one window at most,
even if a watcher that the runner has replaced is still running.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, structs
from msgspec.structs import replace

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import (
    INDEX_FILE,
    MANIFEST_FILE,
    REJECTS,
    SHARDS_TOKENIZER_FILE,
    WINDOW_FILE,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, Publication, TaskFolder, receipt_name, side_by_side
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.windows import window_name, window_numbers
from bpe_beam.storage import Storage, StoredFile, json_file, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.names import attempted_name
from bpe_beam.workers.tokenize_split import final_names

INPUT_FILE = "__input"
"""A file in the stream's folder with the hash of the root, at which file names in windows start."""

REMOVE_WINDOW = "remove the folder of this window: its files are read again, in a new window"
"""The remedy if the record of a window is missing or damaged."""

_THREADS = 16
_WATCHER_FILES = (WINDOW_FILE, MANIFEST_FILE, SHARDS_TOKENIZER_FILE, INDEX_FILE)


class WindowFolder(TaskFolder):
    """The folder of a window; its receipts carry the window's fingerprint."""

    def prepare(self) -> None:
        """Make the folders that a shard's writer needs."""
        for name in (WORK, REJECTS):
            self.storage.make_folder(self.path(name))

    def is_finished(self) -> bool:
        """Return whether the window has its manifest."""
        return self.storage.exists(self.path(MANIFEST_FILE))

    def results(self, plan: Plan) -> list[Publication] | None:
        """Return the receipts of a plan's splits with their final names, in the order of the plan.

        Returns None if a split has no receipt yet. Returns fewer than all if receipts were removed,
        because their files are missing or the receipts do not fit: those splits must be read again.
        """
        tasks = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
        if not set(self.finished_tasks()).issuperset(tasks):
            return None
        receipts = side_by_side(self.read_receipt, tasks)
        fitting = [receipt for receipt in receipts if receipt is not None]
        if len(fitting) < len(tasks):
            lost = [task for task, receipt in zip(tasks, receipts, strict=True) if receipt is None]
            self.remove(map(receipt_name, lost))
            return []
        publications = final_names(fitting)  # a final name depends on all receipts
        whole = side_by_side(self._is_whole, publications)
        self.remove(
            receipt_name(task) for task, is_whole in zip(tasks, whole, strict=True) if not is_whole
        )
        return [row for row, is_whole in zip(publications, whole, strict=True) if is_whole]

    def finish(
        self, publications: Iterable[Publication], manifest: bytes, small: Mapping[str, bytes]
    ) -> None:
        """Give the shards their final names, and write the small files and, last, the manifest.

        If several watchers finish one window at the same moment, none of them fails.
        """
        storage = self.storage
        try:
            for publication in publications:
                for name, final in publication.moves:
                    if name != final:
                        storage.move(self.path(name), self.path(final))
            for name, data in small.items():
                storage.write_bytes(self.path(name), data)
            storage.sync_folders(self.url, self.path(REJECTS))
            storage.write_bytes(self.path(MANIFEST_FILE), manifest)
            storage.sync_folders(self.url)
        except DataError:
            # Another watcher has finished the window, and removed the temporary files of both.
            if not self.is_finished():
                raise
        self.clear()

    def clear(self, *, of_watchers: bool = False) -> None:
        """Remove the temporary files of a finished window's workers."""
        storage = self.storage
        self.remove(f"{WORK}/{name}" for name in storage.list_names(self.path(WORK)))
        for folder, below in ((self.url, ""), (self.path(REJECTS), f"{REJECTS}/")):
            for name in storage.list_names(folder):
                final = attempted_name(name)
                if final is not None and (of_watchers or final not in _WATCHER_FILES):
                    storage.remove(self.path(below + name))
        for name in (WORK, REJECTS):
            storage.remove_folder_if_empty(self.path(name))

    def _is_whole(self, publication: Publication) -> bool:
        """Return whether the files of a split exist, under their current or their final names."""
        before = {final: name for name, final in publication.moves}
        return all(
            # In this order: a file that is being moved gets its final name before it loses the
            # current one.
            self.has_size(FileInfo(before.get(file.name, file.name), file.bytes, file.sha256))
            or self.has_size(file)
            for file in publication.receipt.files
        )


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a window leaves out, because it cannot be read, and the reason."""

    name: str
    size: json_file.Count
    tag: str
    problem: str


class _WindowFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of `__window` without its checksum, in the order of the file."""

    version: int
    stream: json_file.Sha256
    number: json_file.Count
    plan: json_file.JsonObject
    tags: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


class Window(Struct, frozen=True):
    """A window of a stream: its number, from 0, its plan with tags, and its `__window`."""

    number: int
    plan: Plan
    record: bytes
    left_out: tuple[LeftOut, ...] = ()

    @property
    def name(self) -> str:
        """The name of the window's folder."""
        return window_name(self.number)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the window's record, in hex."""
        return hashlib.sha256(self.record).hexdigest()


def has_windows_of(storage: Storage, output: str, stream: str) -> bool:
    """Return whether a folder has windows, and the first one is of a stream."""
    for number in window_numbers(storage, output)[:1]:
        source = storage.join(output, window_name(number), WINDOW_FILE)
        record = _read_record(storage.read_bytes(source), redact(source))
        return record.stream == stream
    return False


def require_root(storage: Storage, output: str, watched: Watched) -> None:
    """Record the root at which file names start, or refuse another root than the recorded one.

    Below another root a new file of the same name would be taken for one that was read.
    """
    row = {"version": json_file.VERSION, "root_sha256": watched.root_fingerprint}
    data = json_file.with_checksum(row, indent=1)
    url = storage.join(output, INPUT_FILE)
    if write_once(storage, url, data):
        return
    if not window_numbers(storage, output):
        storage.write_bytes(url, data)  # nothing was read from the other root
        return
    try:
        json_file.read_signed(storage.read_bytes(url), redact(url))
    except DataError as error:
        raise DataError(
            f"{redact(url)} is damaged",
            remedy="if {inputs} are the same as before, remove it and run this again",
        ) from error
    raise UsageError(
        f"{redact(output)} has windows of files below another folder than {redact(watched.root)}: "
        "windows name files relative to that folder, so a new file of the same name would not be "
        "read",
        remedy="give the same {inputs} as before, or another {output}; if it is the same folder "
        f"under another name, delete {INPUT_FILE} in the output folder first",
    )


class WindowLog:
    """The windows of a stream that were read so far."""

    def __init__(self, storage: Storage, output: str, stream: str, root: str) -> None:
        self.open: dict[int, Window] = {}  # the windows without a manifest, by number
        self.numbers: list[int] = []  # the numbers of all windows, sorted
        # The version of every file of every window, by name; about 300 bytes a file.
        self.files: dict[str, str] = {}
        # The version of every file that was left out and not read since, by name.
        self.left_out: dict[str, str] = {}
        self._storage = storage
        self._output = output
        self._stream = stream
        self._root = root
        self._next: int | None = None

    def folder(self, window: Window) -> WindowFolder:
        """Return the folder of a window."""
        url = self._storage.join(self._output, window.name)
        return WindowFolder(self._storage, url, window.fingerprint)

    def read_new(self) -> None:
        """Read the windows that were added since the last call.

        Cost: at the first call, at most three requests a window; later, one or two.
        """
        if self._next is None:
            numbers = window_numbers(self._storage, self._output)
            with ThreadPoolExecutor(_THREADS) as pool:
                for number, (window, is_open) in zip(
                    numbers, pool.map(self._read, numbers), strict=True
                ):
                    url = self._storage.join(self._output, window_name(number))
                    if window is not None:
                        self._add(window, is_open)
                    elif MANIFEST_FILE in self._storage.list_names(url):
                        # New files would be taken for the files of this finished window.
                        missing = redact(self._storage.join(url, WINDOW_FILE))
                        raise DataError(f"{missing} is missing", remedy=REMOVE_WINDOW)
            self._next = self._next or 0
        while True:
            window, is_open = self._read(self._next)
            if window is None:
                return
            self._add(window, is_open)

    def append(self, plan: Plan, left_out: tuple[LeftOut, ...] = ()) -> Window | None:
        """Add a window of files that are in no other window, and return it.

        None: another watcher has added a window meanwhile, which must be read first.
        """
        assert self._next is not None
        tags = tuple(file.tag for file in plan.files)
        file = _WindowFile(
            json_file.VERSION, self._stream, self._next, plan.to_json(), tags, left_out
        )
        window = Window(self._next, plan, json_file.with_checksum(file, indent=1), left_out)
        url = self.folder(window).url
        self._storage.make_folder(url)
        if not write_once(self._storage, self._storage.join(url, WINDOW_FILE), window.record):
            return None
        self._add(window, True)
        return window

    def _read(self, number: int) -> tuple[Window | None, bool]:
        """Return a window, and whether it is open; None if it has no record."""
        storage = self._storage
        url = storage.join(self._output, window_name(number))
        record = storage.join(url, WINDOW_FILE)
        try:
            data = storage.read_bytes(record)
        except NotFoundError:
            return None, False
        window = self._window(data, number, record)
        names = storage.list_names(url)
        if MANIFEST_FILE in names and (WORK in names or any(map(attempted_name, names))):
            self.folder(window).clear(of_watchers=True)  # the watcher that finished it was killed
        return window, MANIFEST_FILE not in names

    def _window(self, data: bytes, number: int, source: str) -> Window:
        """Return the window in the bytes of its `__window`."""
        file = _read_record(data, source)
        if (file.stream, file.number) != (self._stream, number):
            raise DataError(f"{source} is of another stream; move it out of the output folder")
        plan = Plan.from_json(file.plan, self._root)
        plan.check_cover()
        if len(file.tags) != len(plan.files):
            raise DataError(
                f"{source}: the plan has {len(plan.files)} files and {len(file.tags)} tags"
            )
        files = tuple(
            structs.replace(each, tag=tag) for each, tag in zip(plan.files, file.tags, strict=True)
        )
        return Window(number, replace(plan, files=files), data, file.left_out)

    def _add(self, window: Window, is_open: bool) -> None:
        if is_open:
            self.open[window.number] = window
        self.numbers.append(window.number)
        for file in window.plan.files:
            self.files[file.name] = version_of(file)
            self.left_out.pop(file.name, None)
        for bad in window.left_out:
            self.left_out[bad.name] = version_of(bad)
        self._next = window.number + 1


def read_left_out(storage: Storage, output: str, name: str) -> tuple[LeftOut, ...]:
    """Return the files that a window leaves out, by the name of its folder; () without a record.

    A watcher makes the folder before it writes the record.
    """
    source = storage.join(output, name, WINDOW_FILE)
    try:
        data = storage.read_bytes(source)
    except NotFoundError:
        return ()
    return _read_record(data, redact(source)).left_out


def _read_record(data: bytes, source: str) -> _WindowFile:
    """Return the content of a `__window`."""
    try:
        values = json_file.read_signed(data, source)
    except DataError as error:
        if isinstance(error, json_file.OtherVersionError):
            raise
        raise DataError(error.problem, remedy=REMOVE_WINDOW) from error
    return json_file.to_struct(values, _WindowFile, source)


def version_of(file: StoredFile | InputFile | LeftOut) -> str:
    """Return a text that differs for other files of the same name."""
    return f"{file.size} {file.tag}"
