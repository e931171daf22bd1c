"""The documents and ids of a finished tokens folder, or of a stream's windows, at any position."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bpe_beam.errors import DataError, NotFoundError, require
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.shards import stored_shard
from bpe_beam.shards.block_cache import BlockCache, RecentValues
from bpe_beam.shards.document_batches import ranges_between
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.shards.shard_rows import Shard
from bpe_beam.shards.windows import is_stream, no_window_error, number_of, windows_of
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.names import WEB, absolute, escape_glob, is_local, protocol_of


class OpenedWindow(Struct, frozen=True):
    """A window of a stream, and what saved positions depend on."""

    name: str
    content: str  # `Manifest.content_fingerprint`


class FolderReader:
    """Reads documents and ids of a tokens folder; opens each shard where it is first needed.

    Of the output of a stream it reads the finished windows, one after the other, and `windows` has
    a row for each; else `windows` is None.

    It pickles as its manifests' facts, without anything that was read since. Threads may share it;
    a forked process reads with connections of its own. `tokenizer` is the fingerprint, `content` is
    `Manifest.content_fingerprint`, or that of all windows.
    """

    windows: tuple[OpenedWindow, ...] | None

    def __init__(
        self, storage: Storage, url: str, memory: int, manifest: Manifest | None = None
    ) -> None:
        self.url = absolute(url)
        self._storage, self._memory = storage, memory
        # Rows of the manifests, without what workers that get a copy do not need, each with the
        # folder of its files.
        self._entries: list[tuple[str, Shard]] = []
        if manifest is not None or not is_stream(storage, self.url):
            manifest = manifest or finished_manifest(storage, self.url)
            self.windows = None
            self.content = manifest.content_fingerprint()
            self._add(self.url, manifest)
            self._check_sizes()
        else:
            names = windows_of(storage, self.url).readable
            if not names:
                raise no_window_error(self.url)
            self.windows = ()
            manifest = self._read_windows(names)
        self.format = manifest.format
        self.vocab_size = manifest.tokenizer.vocab_size
        self.tokenizer = manifest.tokenizer.fingerprint
        self.has_sequences = bool(
            manifest.arranged and manifest.arranged.settings.sequence_length is not None
        )
        self._start()

    def __getstate__(self) -> dict[str, object]:
        names = ("url", "format", "vocab_size", "tokenizer", "content", "has_sequences", "windows")
        return {name: self.__dict__[name] for name in (*names, "_storage", "_memory", "_entries")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start()

    def refreshed(self) -> FolderReader:
        """Return a reader with the windows that have finished since, too; itself without any.

        Cost: one listing, two requests for each window that is new, one for each that is open.
        """
        require(
            self.windows is not None,
            f"{redact(self.url)} is a finished tokens folder: only a stream's output grows",
        )
        assert self.windows
        names = windows_of(self._storage, self.url, number_of(self.windows[-1].name)).readable
        if not names:
            return self
        new = self._copy(self.windows, self._entries)
        new._read_windows(names)
        new._start()
        return new

    def first_windows(self, count: int) -> FolderReader:
        """Return a reader of the first windows of a stream."""
        assert self.windows is not None
        windows = self.windows[:count]
        names = {self._storage.join(self.url, window.name) for window in windows}
        new = self._copy(windows, [entry for entry in self._entries if entry[0] in names])
        new._start()
        return new

    def _copy(
        self, windows: tuple[OpenedWindow, ...], entries: list[tuple[str, Shard]]
    ) -> FolderReader:
        new = FolderReader.__new__(FolderReader)
        content = _joined_content(windows)
        state = {"windows": windows, "content": content, "_entries": [*entries]}
        new.__dict__.update({**self.__getstate__(), **state})
        return new

    def _read_windows(self, names: Sequence[str]) -> Manifest:
        """Add windows, and return the manifest of the last one."""
        urls = [self._storage.join(self.url, name) for name in names]
        manifests = side_by_side(lambda url: read_manifest(self._storage, url), urls)
        rows = []
        for name, url, manifest in zip(names, urls, manifests, strict=True):
            self._add(url, manifest)
            rows.append(OpenedWindow(name, manifest.content_fingerprint()))
        kinds = {(each.format, each.tokenizer.fingerprint) for each in manifests}
        if len(kinds) > 1:
            raise DataError(f"{redact(self.url)} has windows of several streams")
        self.windows = (*(self.windows or ()), *rows)
        self.content = _joined_content(self.windows)
        return manifests[-1]

    def _add(self, url: str, manifest: Manifest) -> None:
        for shard in manifest.shards:
            self._entries.append((url, replace(shard, slices=(), sources=None, changes=None)))

    def first_document(self, name: str) -> int:
        """Return the position of the first document of a shard, of a folder that is no stream."""
        names = (entry.name for _, entry in self._entries)
        return next(row for row, each in zip(self._rows, names, strict=False) if each == name)

    def document(self, index: int, dtype: stored_shard.IdType) -> stored_shard.Ids:
        """Return the ids of a document, a new array."""
        number = bisect_right(self._rows, index) - 1
        access = self._accesses[number]
        if access is None or self.remote:
            access = self._access(number)
        return access.document(index - self._rows[number], dtype)

    def labels(self, index: int) -> JsonObject:
        """Return the labels of a document; empty if the format stores none."""
        number = bisect_right(self._rows, index) - 1
        access = self._access(number)
        if not isinstance(access, stored_shard.LabelledAccess):
            return {}
        return access.labels(index - self._rows[number])

    def documents_from(
        self, start: int, stop: int, limit: int, dtype: stored_shard.IdType
    ) -> Sequence[stored_shard.Ids]:
        """Return the ids of documents that follow each other."""
        number, begin, end = next(ranges_between(self._rows, start, stop))
        return self._access(number).documents(begin, end, limit, dtype)

    def ids(self, start: int, stop: int, dtype: stored_shard.IdType) -> stored_shard.Ids:
        """Return ids of the whole folder, across shards, a new array."""
        parts = [
            self._access(number).tokens(begin, end, dtype)
            for number, begin, end in ranges_between(self._tokens, start, stop)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return int64[n]: where documents with tokens begin, in a range of the folder's ids."""
        parts = [
            self._access(number).starts(begin, end) + self._tokens[number]
            for number, begin, end in ranges_between(self._tokens, start, stop)
        ]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def _start(self) -> None:
        self.remote = not is_local(self.url)
        # Where each shard begins, and the end of the last.
        self._rows = [0, *accumulate(entry.documents for _, entry in self._entries)]
        self._tokens = [0, *accumulate(entry.tokens for _, entry in self._entries)]
        self.documents, self.tokens = self._rows[-1], self._tokens[-1]
        self._reset()

    def _reset(self) -> None:
        """Forget what this process has opened."""
        self._storage = Storage(self._storage.options)
        self._lock = Lock()
        self._blocks = BlockCache(self._memory)
        self._groups: RecentValues[Any] = RecentValues(self._memory)
        self._accesses: list[stored_shard.ShardAccess | None] = [None] * len(self._entries)
        # Last: other threads of a forked process use what is above as soon as they see it.
        self._process = os.getpid()

    def _access(self, number: int) -> stored_shard.ShardAccess:
        """Return an open shard, which stays open."""
        if self._process != os.getpid():  # forked: threads and connections are the parent's
            self._reset()
        access = self._accesses[number]
        if access is None:
            with self._lock:
                access = self._accesses[number] or shard_format(self.format).access(
                    stored_shard.StoredShard(
                        self._storage,
                        *self._entries[number],
                        self.vocab_size,
                        self._blocks,
                        self._groups,
                    )
                )
                self._accesses[number] = access
        return access

    def _check_sizes(self) -> None:
        """Compare the sizes of all files with the manifest; on the web, where they are opened."""
        if protocol_of(self.url) in WEB:
            return
        listed = self._storage.expand(self._storage.join(escape_glob(self.url), "shard-*"))
        sizes = {each.url.rpartition("/")[2]: each.size for each in listed}
        for _, entry in self._entries:
            for file in entry.files:
                url = redact(self._storage.join(self.url, file.name))
                if file.name not in sizes:
                    raise NotFoundError(
                        f"{url}: is missing: the folder is damaged, and the command that wrote it "
                        "repairs it"
                    )
                stored_shard.check_size(url, sizes[file.name], file.bytes)


def _joined_content(windows: Sequence[OpenedWindow]) -> str:
    """Return a SHA-256 of the documents of windows and their order."""
    return hashlib.sha256("".join(window.content for window in windows).encode()).hexdigest()


def finished_manifest(storage: Storage, folder: str) -> Manifest:
    """Return the manifest of a tokens folder; refuse a folder whose job is not finished."""
    try:
        return read_manifest(storage, folder)
    except NotFoundError as error:
        if storage.exists(storage.join(folder, JOB_FILE)):
            raise DataError(
                f"{redact(folder)}: not finished: the job failed, was interrupted or is running; "
                "run it again"
            ) from error
        raise
