"""Files of remote stores, by URL of any protocol of fsspec."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, BinaryIO, cast

from bpe_beam.errors import UsageError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.file_systems import connect, file_info
from bpe_beam.storage.globs import MAGIC, parts_of
from bpe_beam.storage.masking import secrets_of
from bpe_beam.storage.names import (
    NAMED_BY_KEYS,
    OBJECT_STORES,
    SCHEME,
    WEB,
    attempt_name,
    escape_existing,
    one_spelling,
    protocol_of,
    redact,
    store_path,
)
from bpe_beam.storage.object_listing import Bucket, is_folder_marker, open_bucket
from bpe_beam.storage.remote_file import (
    RangeReader,
    RangeSource,
    open_ranges,
    open_reader,
    read_range,
)
from bpe_beam.storage.retry import CONNECTING, is_unreadable, may_pass, retried
from bpe_beam.storage.stored_file import LinkReport, StoredFile, stored_file
from bpe_beam.storage.uploading import Upload
from bpe_beam.storage.web import open_web, web_info
from bpe_beam.storage.writing import write_attempt

_REMOVED_AT_ONCE = 1000
"""The objects that S3 removes by one request."""
_COPY_PAUSES = tuple(min(0.1 * 2**i, 10.0) for i in range(40))
"""Seconds between looks at a copy that is not complete; about five minutes in total."""


@dataclass(frozen=True)
class RemoteStore:
    """Object stores, web servers and the other file systems of fsspec.

    It has methods of `Storage`, which documents them. `Storage` calls them again after errors
    that may pass, except `open_with_stat`, `create`, `move` and `remove_all`.
    """

    options: Mapping[str, Mapping[str, Any]] = field(repr=False, hash=False)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The texts that errors must not show."""
        return secrets_of(self.options)

    def connect(self, url: str, *, known: bool = False) -> tuple[Any, str]:
        """See `file_systems.connect`; any other failure is a DataError."""
        with named_errors(CONNECTING, url, self.secrets):
            return connect(self.options, url, known=known)

    def expand(self, pattern: str, _on_link: LinkReport) -> list[StoredFile]:
        fs, path = self.connect(pattern)
        web = protocol_of(pattern) in WEB
        # Each request is repeated by itself: all of them together rarely succeed on a store that
        # fails often.
        kind = retried(lambda: self._kind(pattern))
        if kind == "file":
            return [self.stat(one_spelling(pattern.rstrip("/")))]
        if kind == "directory":
            return []
        if not web:
            pattern = escape_existing(pattern, lambda url: retried(lambda: self.exists(url)))
            path = self.connect(pattern, known=True)[1]
        if (objects := self._objects(pattern)) is not None:
            bucket, head, key = objects
            parts = key.split("/")
            magic = next((i for i, part in enumerate(parts) if MAGIC.search(part)), None)
            if magic is None:
                return []
            prefix = "".join(f"{part}/" for part in parts[:magic])
            return [
                stored_file(head + name, info)
                for name, info in bucket.matching(prefix, parts_of(parts[magic:]))
                if not is_folder_marker(name, info)
            ]
        return self._glob(fs, path, pattern)

    def _glob(self, fs: Any, path: str, pattern: str) -> list[StoredFile]:
        """Return the files of a store with folders, or of the web, by fsspec's own glob."""
        web = protocol_of(pattern) in WEB
        magic = re.search(r"[*\[]" if web else MAGIC, path)  # "?" begins a query on the web
        if magic is None:
            return []
        dotted = any(part.startswith(".") for part in path.split("/"))
        fixed = path[: magic.start()].rpartition("/")[0]
        try:
            listed = retried(lambda: fs.glob(path, detail=True))
        except FileNotFoundError:
            return []
        files = []
        for name, info in listed.items():
            if info["type"] != "file" or ("/." in "/" + name[len(fixed) :] and not dotted):
                continue
            url = _url_of(fs, pattern, path, name)
            # a web page reports no sizes
            files.append(self.stat(url) if web else stored_file(url, info))
        return files

    def stat(self, url: str) -> StoredFile:
        info = self._info(url, known=True)
        if info["type"] != "file":
            raise IsADirectoryError("it is a folder")
        return stored_file(url, info)

    def exists(self, url: str) -> bool:
        return self._kind(url) is not None

    def is_folder(self, url: str) -> bool:
        return self._kind(url) == "directory"

    def list_names(self, folder: str) -> list[str]:
        if (objects := self._objects(folder)) is not None:
            bucket, _, key = objects
            return sorted(bucket.names(key if key.endswith("/") or not key else f"{key}/"))
        fs, path = self.connect(folder)
        try:
            listed = fs.ls(path, detail=False)
        except FileNotFoundError:
            return []
        # some file systems list the folder itself
        here = path.rstrip("/")
        return sorted(
            {name.rstrip("/").rpartition("/")[2] for name in listed if name.rstrip("/") != here}
        )

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        return open_reader(lambda: self._open_ranges(url), url, self.secrets)

    def open_ranges(self, url: str) -> RangeReader:
        return RangeReader(lambda: self._open_ranges(url), url, self.secrets)

    def read_head(self, url: str, count: int, size: int | None = None) -> bytes:
        if protocol_of(url) == "s3" and size is not None:
            fs, path = self.connect(url, known=True)
            end = min(count, size)
            head = cast(bytes, fs.cat_file(path, start=0, end=end)) if end else b""
            if len(head) == end:
                return head
        with contextlib.closing(self._open_ranges(url)) as source:
            return read_range(source, 0, min(count, source.file.size))

    def create(self, url: str) -> AbstractContextManager[BinaryIO]:
        protocol = protocol_of(url)
        if protocol in WEB:
            raise UsageError(f"{redact(url)}: {protocol}:// can be read only; write elsewhere")
        fs, path = self.connect(url)
        raw: Any
        publish: Callable[[], object]
        remove: Callable[[], object]
        with named_errors("write", url, self.secrets):
            if protocol in OBJECT_STORES:
                raw = Upload(fs, path, url, self.secrets)
                publish, remove = raw.finish, raw.discard
            else:
                attempt = attempt_name(path)
                raw = fs.open(attempt, "wb")
                publish, remove = partial(_rename, fs, attempt, path), partial(fs.rm_file, attempt)
        return write_attempt(raw, url, publish=publish, remove=remove, secrets=self.secrets)

    def move(self, source: str, target: str) -> None:
        """See `Storage`; this repeats each of its requests by itself."""
        fs, path = self.connect(source)
        new_path = self.connect(target)[1]

        def size_of(path: str) -> int:
            return retried(lambda: stored_file(source, fs.info(path)).size)

        try:
            size = size_of(path)
        except FileNotFoundError:
            size_of(new_path)  # raises unless an earlier call has moved the file
            return
        try:
            if protocol_of(source) in OBJECT_STORES:
                _copy_and_remove(fs, path, new_path, size, size_of)
            else:
                retried(lambda: _rename_once(fs, path, new_path))
        except FileNotFoundError:  # another process moves the same file
            if size_of(new_path) != size:
                raise

    def remove(self, url: str) -> None:
        fs, path = self.connect(url)
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(path)

    def remove_all(self, urls: Sequence[str]) -> list[str]:
        """See `Storage`; this repeats each of its requests by itself."""
        fs: Any = self.connect(urls[0])[0] if protocol_of(urls[0]) == "s3" else None
        if not hasattr(fs, "call_s3"):
            return [*urls]
        remaining: list[str] = []
        for start in range(0, len(urls), _REMOVED_AT_ONCE):
            by_key = {
                fs.split_path(store_path(url))[1]: url
                for url in urls[start : start + _REMOVED_AT_ONCE]
            }
            bucket = fs.split_path(store_path(urls[start]))[0]
            with named_errors("remove", urls[start], self.secrets):
                answer = retried(partial(_remove_objects, fs, bucket, [*by_key]))
            if answer is None:
                return [*remaining, *urls[start:]]
            failed = {each.get("Key") for each in answer.get("Errors", ())}
            is_clear = failed <= by_key.keys()
            remaining += [url for key, url in by_key.items() if key in failed or not is_clear]
        return remaining

    def make_folder(self, url: str, *, synced: bool) -> None:
        if protocol_of(url) not in OBJECT_STORES:
            fs, path = self.connect(url)
            fs.makedirs(path, exist_ok=True)

    def remove_folder_if_empty(self, url: str) -> None:
        if protocol_of(url) not in OBJECT_STORES and not self.list_names(url):
            fs, path = self.connect(url)
            with contextlib.suppress(FileNotFoundError):
                fs.rmdir(path)

    def _kind(self, url: str) -> str | None:
        """Return "file", "directory", or None if nothing has this name.

        fsspec's own `exists` returns False after any failure, too.
        """
        objects = self._objects(url)
        if objects is not None and objects[2].endswith("/"):
            bucket, _, key = objects
            return "directory" if bucket.is_prefix(key) else None
        try:
            info = self._info(url)
        except FileNotFoundError:
            return None
        if info["type"] == "file":
            stored_file(url, info)  # raises for an empty answer, a file without a size
        return cast(str, info["type"])

    def _info(self, url: str, *, known: bool = False) -> Mapping[str, Any]:
        fs, path = self.connect(url, known=known)
        protocol = protocol_of(url)
        return web_info(fs, path) if protocol in WEB else file_info(protocol, fs, path)

    def _objects(self, url: str) -> tuple[Bucket, str, str] | None:
        """Return the bucket of a URL, the start of its objects' URLs, and the key.

        None if the files of the protocol have no keys.
        """
        fs, path = self.connect(url, known=True)
        protocol = protocol_of(url)
        name, key = fs.split_path(path)[:2] if protocol in NAMED_BY_KEYS else ("", path)
        bucket = open_bucket(fs, protocol, name)
        return None if bucket is None else (bucket, one_spelling(url).removesuffix(key), key)

    def _open_ranges(self, url: str) -> RangeSource:
        fs, path = self.connect(url, known=True)
        return open_web(fs, path) if protocol_of(url) in WEB else open_ranges(fs, path, url)


def _remove_objects(fs: Any, bucket: str, keys: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the answer to a removal of objects; None if the server has no such request."""
    objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
    try:
        return cast(Mapping[str, Any], fs.call_s3("delete_objects", Bucket=bucket, Delete=objects))
    except Exception as error:
        if may_pass(error) and not is_unreadable(error):  # some servers answer without content
            raise
        return None


def _copy_and_remove(
    fs: Any, source: str, target: str, size: int, size_of: Callable[[str], int]
) -> None:
    retried(lambda: fs.cp_file(source, target))
    for pause in _COPY_PAUSES:  # a store may complete a copy after it has answered
        if size_of(target) == size:
            break
        time.sleep(pause)
    else:
        raise OSError(f"the copy has {size_of(target):,} of {size:,} bytes")
    retried(lambda: fs.rm_file(source))


def _rename_once(fs: Any, source: str, target: str) -> None:
    """Rename a file, unless an attempt without an answer has done so."""
    try:
        fs.info(source)
    except FileNotFoundError:
        fs.info(target)
    else:
        _rename(fs, source, target)


def _rename(fs: Any, source: str, target: str) -> None:
    """Rename a file as fsspec does, but with `*`, `?` and `[` as plain characters of its name."""
    if re.search(r"[*?\[]", source):
        fs.cp_file(source, target)
        fs.rm_file(source)
    else:
        fs.mv(source, target)


def _url_of(fs: Any, pattern: str, stripped: str, listed: str) -> str:
    """Return the URL of a file that a file system listed under its own path `listed`.

    It has the protocol and the host of the pattern. `stripped` is the pattern without them.
    """
    pattern = one_spelling(pattern.rstrip("/"))
    if pattern.endswith(stripped):
        return pattern.removesuffix(stripped) + listed
    scheme = SCHEME.match(pattern)
    host = pattern[scheme.end() :].partition("/")[0] if scheme else ""
    if "@" in host:  # CONTAINER@ACCOUNT, where the container is the first part of the name
        return f"{protocol_of(pattern)}://{host}/{listed.partition('/')[2]}"
    return cast(str, fs.unstrip_protocol(listed))
