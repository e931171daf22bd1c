"""Receipts: what a worker records of a task that it has finished.

Jobs, merge rounds and the windows of a stream all keep them, as `work/TASK.json` in the folder that
the task's files are in. A receipt is written after the files that it names. So a task whose receipt
exists, and whose files have the sizes and hashes that it names, need not run again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from msgspec import Struct

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage, named_errors, redact
from bpe_beam.storage.json_file import (
    VERSION,
    JsonObject,
    json_bytes,
    read_signed,
    to_struct,
    with_checksum,
)
from bpe_beam.storage.names import escape_glob, is_local
from bpe_beam.storage.retry import REQUESTS_AT_ONCE

WORK = "work"
"""The folder of receipts and temporary files, within the folder of a job, a run or a window."""

_TASK = re.compile(r"[A-Za-z0-9._-]+")
_RECEIPT = re.compile(rf"{WORK}/({_TASK.pattern})\.json")
_BLOCK_BYTES = 1 << 20

HASHED_BYTES = 256 << 20
"""The maximum bytes of a finished local folder that are hashed when it is looked at, or its job is
started again. This takes half a second. `bpe-beam verify` reads all."""

_MANY = 1000
"""The number of files of a store above which a listing tells their sizes."""

_FEW = 64
"""The maximum number of requests to a local disk that are made one after the other."""

T = TypeVar("T")
S = TypeVar("S")


class _ReceiptFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of a receipt, without its version and its checksum."""

    task: str
    fingerprint: str
    files: tuple[FileInfo, ...]
    stats: JsonObject


class Receipt(Struct, frozen=True):
    """The record of a finished task, with the fingerprint of its job or window.

    The stats are kept as JSON: a driver has the receipts of all splits, and objects take five times
    as much memory.
    """

    task: str
    fingerprint: str
    files: tuple[FileInfo, ...]
    stats_json: bytes

    @property
    def stats(self) -> JsonObject:
        """The stats, a new object each time."""
        stats: JsonObject = json.loads(self.stats_json)
        return stats

    def read_stats(self, struct: type[T]) -> T:
        """Return the stats as an object of a class; raise DataError if they do not fit it."""
        return to_struct(self.stats, struct, f"the receipt of {self.task}")


class Publication(Struct, frozen=True):
    """A receipt with final names, and (current name, final name) of each file that may move."""

    receipt: Receipt
    moves: tuple[tuple[str, str], ...]


class TaskFolder:
    """A folder in which tasks leave files and receipts of a job; small and picklable."""

    def __init__(self, storage: Storage, url: str, fingerprint: str) -> None:
        self.storage = storage
        self.url = url
        self.fingerprint = fingerprint

    def path(self, name: str) -> str:
        return self.storage.join(self.url, *name.split("/"))

    def write_receipt(self, task: str, files: Iterable[FileInfo], stats: object) -> None:
        """Record that a task is finished; call it after its files were written."""
        if _TASK.fullmatch(task) is None:
            raise ValueError(f"task must match {_TASK.pattern}, got {task!r}")
        file = _ReceiptFile(task, self.fingerprint, tuple(files), msgspec.to_builtins(stats))
        data = with_checksum({"version": VERSION, **msgspec.to_builtins(file)})
        self.storage.write_bytes(self.path(receipt_name(task)), data)

    def read_receipt(self, task: str) -> Receipt | None:
        """Return the receipt of a task; None if there is none of this fingerprint."""
        name = receipt_name(task)
        try:
            data = self.storage.read_bytes(self.path(name))
        except NotFoundError:
            return None
        try:
            values = read_signed(data, name)
            values.pop("version", None)
            file = to_struct(values, _ReceiptFile, name)
        except DataError:
            return None
        if (file.task, file.fingerprint) != (task, self.fingerprint):
            return None
        return Receipt(task, self.fingerprint, file.files, json_bytes(file.stats, None))

    def finished_tasks(self) -> list[str]:
        """Return the sorted names of the tasks that have receipts. Cost: one listing."""
        names = (f"{WORK}/{name}" for name in self.storage.list_names(self.path(WORK)))
        return sorted(task for name in names if (task := task_of(name)) is not None)

    def remove(self, names: Iterable[str]) -> None:
        urls = [self.path(name) for name in names]
        self.request_each(self.storage.remove, self.storage.remove_all(urls))

    def request_each(self, call: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Return the result of a call for each item, in the order of the items.

        The calls run side by side, but a few to a local disk one after the other: threads would
        take longer to start.
        """
        items = list(items)
        if len(items) <= _FEW and is_local(self.url):
            return [call(item) for item in items]
        return side_by_side(call, items)

    def have_sizes(self, files: Sequence[FileInfo]) -> list[bool]:
        """Return which files exist and have their sizes.

        Cost: one request a file, or a listing of their folders for many files of a store. A listing
        may be late, so the files that it does not have in their sizes are asked for.
        """
        if len(files) <= _MANY or is_local(self.url):
            return self.request_each(self.has_size, files)
        sizes: dict[str, int] = {}
        for folder in {file.name.rpartition("/")[0] for file in files}:
            inside = escape_glob(self.path(folder) if folder else self.url)
            listed = self.storage.expand(self.storage.join(inside, "*"))
            prefix = f"{folder}/" if folder else ""
            sizes |= {prefix + each.url.rpartition("/")[2]: each.size for each in listed}
        unlisted = [file for file in files if sizes.get(file.name) != file.bytes]
        asked = dict(zip(unlisted, self.request_each(self.has_size, unlisted), strict=True))
        return [asked.get(file, True) for file in files]

    def has_size(self, file: FileInfo) -> bool:
        """Return whether a file exists and has its size. Cost: one request."""
        try:
            return self.storage.size(self.path(file.name)) == file.bytes
        except NotFoundError:
            return False

    def matches(self, file: FileInfo) -> bool:
        """Return whether a file exists and has its size and its hash. Cost: reads it once."""
        try:
            return self.has_size(file) and self.describe(file.name) == file
        except NotFoundError:
            return False

    def describe(self, name: str) -> FileInfo:
        """Return the size and the hash of a file of the folder. Cost: reads it once."""
        url = self.path(name)
        digest, size = hashlib.sha256(), 0
        with named_errors("read", url), self.storage.open(url) as stream:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
                size += len(block)
        return FileInfo(name, size, digest.hexdigest())


def to_hash(files: Iterable[FileInfo], limit: int = HASHED_BYTES) -> list[FileInfo]:
    """Return the smallest files, as many as have so many bytes together."""
    smallest = sorted(files, key=lambda file: file.bytes)
    sizes = itertools.accumulate(file.bytes for file in smallest)
    return [file for file, size in zip(smallest, sizes, strict=True) if size <= limit]


def require_files(storage: Storage, folder: str, files: Iterable[FileInfo]) -> None:
    """Refuse a folder with a missing or changed file. Cost: reads the files once."""
    described = TaskFolder(storage, folder, "")
    for file in files:
        if not described.matches(file):
            url = redact(described.path(file.name))
            remedy = f"bpe-beam verify {redact(folder)} shows what is damaged"
            raise DataError(f"{url} is missing, or is not the file that was written", remedy=remedy)


def receipt_name(task: str) -> str:
    return f"{WORK}/{task}.json"


def task_of(name: str) -> str | None:
    """Return the name of the task whose receipt has this name; None if it is no receipt's name."""
    match = _RECEIPT.fullmatch(name)
    return None if match is None else match[1]


def side_by_side(call: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Return the result of a call to the store for each item, in the order of the items."""
    items = list(items)
    if len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(len(items), REQUESTS_AT_ONCE)) as pool:
        return list(pool.map(call, items))
