"""The storage client: reads and writes files by path, or by URL of any protocol of fsspec.

A path without `scheme://` is local, and its characters have no special meaning: `#`, `%`, `::`,
spaces. A file appears under its name complete or not at all: a killed process leaves no half of a
file, and two attempts at the same file do not disturb each other.

Calls are repeated after errors that may pass (see `retry.retried`). A stream is uploaded in parts;
the cloud's library retries each part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import NotFoundError, UsageError
from bpe_beam.storage import names
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.local_store import LocalStore
from bpe_beam.storage.masking import secrets_of
from bpe_beam.storage.names import is_local, local_path, redact
from bpe_beam.storage.retry import retried
from bpe_beam.storage.stored_file import LinkReport, StoredFile
from bpe_beam.storage.writing import sync_folder

# Imported where it is used: a process that reads local files starts faster without it.
if TYPE_CHECKING:
    from bpe_beam.storage.remote_store import RemoteStore

T = TypeVar("T")

_LOCAL = LocalStore()


class Storage(Struct, frozen=True, dict=True):
    """Reads and writes files anywhere. Plain data: it pickles, and connects when it is used.

    Every method raises NotFoundError for a missing file, DataError, naming the path, where storage
    fails (no permission, no space, no connection), and UsageError where a path or protocol cannot
    exist.

    Attributes:
        options: Settings of fsspec's file systems by protocol, such as
            `{"s3": {"endpoint_url": "http://..."}}`. May hold secrets: never shown or logged.
        synced: Whether the bytes of every local file are forced to disk. False for temporary files
            that a later run compares with their hashes: those that `create` opens do not wait for
            the disk, and may be incomplete after a power cut.
    """

    options: Mapping[str, Mapping[str, Any]] = {}
    synced: bool = True

    def __post_init__(self) -> None:
        for protocol, settings in self.options.items():
            if not isinstance(settings, Mapping):
                raise UsageError(
                    f"storage options: the value of {protocol!r} is a {type(settings).__name__}; "
                    'give an object of settings by protocol, like {"s3": {"endpoint_url": "..."}}'
                )
        if self.options:
            from bpe_beam.storage.file_systems import check_protocols

            check_protocols(self.options)
            secrets_of(self.options)

    def __repr__(self) -> str:
        """Return it without its options."""
        return f"{type(self).__name__}(synced={self.synced})"

    @cached_property
    def remote(self) -> RemoteStore:
        """The store of all URLs that are not local."""
        from bpe_beam.storage.remote_store import RemoteStore

        return RemoteStore(self.options)

    @property
    def unsynced(self) -> Storage:
        """The same client for temporary files; see `synced`."""
        return replace(self, synced=False)

    def _store(self, url: str) -> LocalStore | RemoteStore:
        return _LOCAL if is_local(url) else self.remote

    def _ask(self, verb: str, url: str, call: Callable[[LocalStore | RemoteStore], T]) -> T:
        """Return the result of a call to the store of a URL, retried if the store is remote."""
        store = self._store(url)
        with named_errors(verb, url, store.secrets):
            return call(store) if store is _LOCAL else retried(lambda: call(store))

    # ---- looking ----

    def expand(
        self, pattern: str, on_link: LinkReport = lambda _path, _reason: None
    ) -> list[StoredFile]:
        """Return the files that a path, URL or glob means.

        `*` and `?` match characters of a name, `[ab]` one character, `**` any number of folders.
        Names that begin with a dot match only a pattern that has such a name. If a file or folder
        has exactly the pattern's name, the pattern means it; the same holds for the pattern's
        first folders. Links are followed, except to a folder that is read already or contains the
        link.
        """
        for part in pattern.split("/"):
            if "**" in part and part != "**":
                must = "'**' must be a whole part of the path, as in 'data/**/*.jsonl'"
                raise UsageError(f"{redact(pattern)}: {must}, got the part {part!r}")
        files = self._ask("list", pattern, lambda store: store.expand(pattern, on_link))
        for file in files:
            try:
                file.url.encode()
            except UnicodeEncodeError:
                why = "a file name must be UTF-8, since manifests name files; rename the file"
                raise UsageError(f"{os.fsencode(file.url)!r}: {why}") from None
        return sorted(set(files))

    def stat(self, url: str) -> StoredFile:
        """Return the size of a file, and a tag that changes with its content."""
        return self._ask("read", url, lambda store: store.stat(url))

    def size(self, url: str) -> int:
        """Return the size of a file in bytes."""
        return self.stat(url).size

    def exists(self, url: str) -> bool:
        """Return whether a file or folder has this name."""
        return self._ask("look for", url, lambda store: store.exists(url))

    def is_folder(self, url: str) -> bool:
        """Return whether a folder has this name."""
        return self._ask("look for", url, lambda store: store.is_folder(url))

    def is_link(self, url: str) -> bool:
        """Return whether a local link has this name; stores have none."""
        return is_local(url) and self._ask("look for", url, lambda _: local_path(url).is_symlink())

    def list_names(self, folder: str) -> list[str]:
        """Return the names of what is directly in a folder, sorted; [] if it does not exist."""
        return self._ask("list", folder, lambda store: store.list_names(folder))

    join = staticmethod(names.join)

    # ---- reading ----

    def open(self, url: str) -> BinaryIO:
        """Open a file for reading bytes; seekable.

        A remote file is read by ranges of up to 4 MiB, with one in memory. A short range is read
        again, and a range of another version is an error on the stores that report it (s3, gs,
        az, the web). A web server without ranges is read from the start, again for each step back.
        """
        return self.open_with_stat(url)[1]

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        """Open a file as `open` does, and return its description at that moment with the stream."""
        return self._store(url).open_with_stat(url)

    def read_bytes(self, url: str) -> bytes:
        """Return the whole content of a file."""
        with named_errors("read", url), self.open(url) as stream:
            return stream.read()

    def read_head(self, url: str, count: int, size: int | None = None) -> bytes:
        """Return the first bytes of a file, reading no more than these.

        Args:
            url: The file.
            count: The maximum number of bytes.
            size: The size of the file in a listing, if known; it saves a request on S3.
        """
        return self._ask("read", url, lambda store: store.read_head(url, count, size))

    # ---- writing ----

    def write_bytes(self, url: str, data: bytes) -> None:
        """Write a file at once: it appears complete or not at all."""
        client = self if self.synced else replace(self, synced=True)

        def write() -> None:
            with client.create(url) as stream:
                stream.write(data)

        if is_local(url):
            write()
            return
        try:
            retried(write)
        except NotFoundError:
            # A client repeats a request without an answer. If the store carried out the first one,
            # there is no upload to complete any more; else the upload was lost, and a new one is
            # begun. Without a bucket that fails again.
            if not self.exists(url) or self.read_bytes(url) != data:
                retried(write)

    def create(self, url: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing; it appears under its name when the block ends.

        If the block raises, or the process is killed, nothing appears, and an older file of this
        name stays. Otherwise the older file is replaced in one step.

        On object stores (s3, gs, az, hf) the bytes are uploaded in parts of 16 MiB, with one in
        memory; a killed process can leave parts that only the store shows. Elsewhere the file has
        the name `URL.attempt-<12 hex digits>` until it is renamed. The bytes of a local file are on
        disk before its name appears, if the client is `synced`; `sync_folders` makes the name
        itself survive a power cut. A device or a pipe, such as /dev/null, is written to and never
        replaced.

        The file's folder must exist (object stores have none). The web cannot be written to.
        """
        if is_local(url):
            return _LOCAL.create(url, synced=self.synced)
        return self.remote.create(url)

    def check_writable(self, url: str) -> None:
        """Check that a local file can be written, by making and removing an incomplete one.

        Files of stores are not tried: that would take some requests.
        """
        if is_local(url):
            with named_errors("write", url):
                _LOCAL.check_writable(url)

    def move(self, source: str, target: str) -> None:
        """Give a file another name in the same store, replacing an older file of that name.

        One step on local disk; on object stores a copy within the store, which is complete before
        the source is removed. The same call completes a move that was interrupted: if the source
        is missing and the target exists, nothing happens.
        """
        store = self._store(source)
        with named_errors("move", source, store.secrets):
            store.move(source, target)

    def remove(self, url: str) -> None:
        """Remove a file; do nothing if it does not exist."""
        self._ask("remove", url, lambda store: store.remove(url))

    def remove_all(self, urls: Sequence[str]) -> list[str]:
        """Remove files of a folder by few requests; return those that must be removed singly."""
        return self.remote.remove_all(urls) if urls and not is_local(urls[0]) else [*urls]

    def make_folder(self, url: str, *, synced: bool = True) -> None:
        """Make a folder and those above it, where the store has folders."""
        self._ask("make folder", url, lambda store: store.make_folder(url, synced=synced))

    def sync_folders(self, *urls: str) -> None:
        """Make the names of new and moved files in folders survive a power cut.

        Nothing happens for URLs of stores, and for folders that do not exist.
        """
        for url in filter(is_local, urls):
            with named_errors("sync", url):
                sync_folder(local_path(url))

    def remove_folder_if_empty(self, url: str) -> None:
        """Remove a folder without names in it; do nothing if it has some or does not exist."""
        self._ask("remove", url, lambda store: store.remove_folder_if_empty(url))
