"""Files of remote stores, by URL of any protocol of fsspec."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO, TypeVar, cast

from bpe_beam.errors import UsageError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.file_systems import connect, secrets_of
from bpe_beam.storage.moving import move, rename
from bpe_beam.storage.names import OBJECT_STORES, WEB, attempt_name, protocol_of, url_of
from bpe_beam.storage.ranges import RangeSource, open_ranges
from bpe_beam.storage.redaction import redact
from bpe_beam.storage.remote_file import open_reader, read_range
from bpe_beam.storage.retry import CONNECTING, retried
from bpe_beam.storage.stored_file import StoredFile, stored_file
from bpe_beam.storage.uploading import uploading
from bpe_beam.storage.web import open_web, stat_web
from bpe_beam.storage.writing import write_attempt

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteStore:
    """Object stores, web servers and the other file systems of fsspec; see `store.Store`.

    Attributes:
        options: See `client.Storage`.
    """

    options: Mapping[str, Mapping[str, Any]] = field(repr=False, hash=False)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The texts that errors must not show."""
        return secrets_of(self.options)

    def connect(self, url: str, *, known: bool = False) -> tuple[Any, str]:
        """Return the file system of a URL, and the path of the URL in that file system.

        Args:
            url: A URL.
            known: See `file_systems.connect`.

        Raises:
            DataError: The file system cannot be made.
            UsageError: The protocol or one of its options is unknown, or a package is missing.
        """
        with named_errors(CONNECTING, url, self.secrets):
            return connect(self.options, url, known=known)

    def expand(self, pattern: str) -> list[StoredFile]:
        """Return the files that a URL or glob matches, in any order."""
        return self._ask("list", pattern, lambda: self._expand(pattern))

    def stat(self, url: str) -> StoredFile:
        """Return the size and the tag of a file."""
        return self._ask("read", url, lambda: self._stat(url))

    def exists(self, url: str) -> bool:
        """Return whether a file or folder has this name."""
        return self._kind(url) is not None

    def is_folder(self, url: str) -> bool:
        """Return whether a folder has this name."""
        return self._kind(url) == "directory"

    def list_names(self, folder: str) -> list[str]:
        """Return the names directly in a folder, sorted; [] if there is no such folder."""
        return self._ask("list", folder, lambda: self._list_names(folder))

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        """Open a file for reading, and return its description at that moment with the stream."""
        return open_reader(lambda: self._open_ranges(url), url, self.secrets)

    def read_head(self, url: str, count: int) -> bytes:
        """See `Store`."""

        def head() -> bytes:
            source = self._open_ranges(url)
            try:
                return read_range(source, 0, min(count, source.file.size))
            finally:
                source.close()

        return self._ask("read", url, head)

    @contextlib.contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        """Open a new file for writing; it appears when the block ends without an error."""
        protocol = protocol_of(url)
        if protocol in WEB:
            raise UsageError(f"{redact(url)}: {protocol}:// can be read only; write elsewhere")
        fs, path = self.connect(url)
        writing: contextlib.AbstractContextManager[BinaryIO]
        if protocol in OBJECT_STORES:
            writing = uploading(fs, path, url, self.secrets)
        else:
            attempt = attempt_name(path)
            with named_errors("write", url, self.secrets):
                raw = cast(BinaryIO, fs.open(attempt, "wb"))
            writing = write_attempt(
                raw,
                url,
                publish=lambda: rename(fs, attempt, path),
                remove=lambda: fs.rm_file(attempt),
                secrets=self.secrets,
            )
        with writing as stream:
            yield stream

    def move(self, source: str, target: str) -> None:
        """See `Store`."""
        with named_errors("move", source, self.secrets):
            fs, path = self.connect(source)
            move(
                fs,
                path,
                self.connect(target)[1],
                lambda path: stored_file(source, fs.info(path)).size,
                copies=protocol_of(source) in OBJECT_STORES,
            )

    def remove(self, url: str) -> None:
        """Remove a file if it exists."""

        def remove() -> None:
            fs, path = self.connect(url)
            with contextlib.suppress(FileNotFoundError):
                fs.rm_file(path)

        self._ask("remove", url, remove)

    def make_folder(self, url: str) -> None:
        """Make a folder and those above it, where the store has folders."""
        if protocol_of(url) not in OBJECT_STORES:
            fs, path = self.connect(url)
            self._ask("make folder", url, lambda: fs.makedirs(path, exist_ok=True))

    def remove_folder_if_empty(self, url: str) -> None:
        """Remove a folder without names in it, where the store has folders."""
        if protocol_of(url) not in OBJECT_STORES and not self.list_names(url):
            fs, path = self.connect(url)
            with named_errors("remove", url, self.secrets), contextlib.suppress(FileNotFoundError):
                fs.rmdir(path)

    def _ask(self, verb: str, url: str, call: Callable[[], T]) -> T:
        """Return the result of a call to a store, which is repeated after errors that may pass."""
        with named_errors(verb, url, self.secrets):
            return retried(call)

    def _kind(self, url: str) -> str | None:
        """Return "file", "directory", or None if nothing has this name.

        fsspec's own `exists` returns False after any failure, too.
        """

        def kind() -> str | None:
            try:
                if protocol_of(url) in WEB:
                    self._stat(url)
                    return "file"
                fs, path = self.connect(url)
                info = fs.info(path)
                if info["type"] == "file":
                    # raises for an empty answer, which looks like a file without a size
                    stored_file(url, info)
                return cast(str, info["type"])
            except FileNotFoundError:
                return None

        return self._ask("look for", url, kind)

    def _stat(self, url: str) -> StoredFile:
        fs, path = self.connect(url, known=True)
        if protocol_of(url) in WEB:
            return stat_web(fs, path)
        info = fs.info(path)
        if info["type"] != "file":
            raise IsADirectoryError("it is a folder")
        return stored_file(url, info)

    def _open_ranges(self, url: str) -> RangeSource:
        fs, path = self.connect(url, known=True)
        return open_web(fs, path) if protocol_of(url) in WEB else open_ranges(fs, path, url)

    def _list_names(self, folder: str) -> list[str]:
        fs, path = self.connect(folder)
        try:
            listed = fs.ls(path, detail=False)
        except FileNotFoundError:
            return []
        # some stores list the folder itself as an empty object
        here = path.rstrip("/")
        return sorted(
            {name.rstrip("/").rpartition("/")[2] for name in listed if name.rstrip("/") != here}
        )

    def _expand(self, pattern: str) -> list[StoredFile]:
        fs, path = self.connect(pattern)
        web = protocol_of(pattern) in WEB
        if self._kind(pattern) == "file":
            return [self._stat(url_of(fs, pattern, path, path))]
        magic = re.search(r"[*\[]" if web else r"[*?\[]", path)  # "?" begins a query on the web
        if magic is None:
            return []
        dotted = any(part.startswith(".") for part in path.split("/"))
        fixed = path[: magic.start()].rpartition("/")[0]
        try:
            listed = fs.glob(path, detail=True)
        except FileNotFoundError:  # not even the bucket exists
            return []
        found = []
        for name, info in listed.items():
            # consoles make objects like "folder/" to show a folder
            if info["type"] != "file" or name.endswith("/"):
                continue
            if "/." in "/" + name[len(fixed) :] and not dotted:
                continue
            url = url_of(fs, pattern, path, name)
            # a web page reports no sizes
            found.append(self._stat(url) if web else stored_file(url, info))
        return found
