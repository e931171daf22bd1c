"""A remote file as a stream of bytes: read by ranges, whose lengths are checked.

Where a store can do so, each request is bound to the version of the object that was opened: a
range of another version is an error, not a part of the file.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, BinaryIO, cast

from bpe_beam.errors import DataError
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.file_systems import file_info
from bpe_beam.storage.names import AZURE, protocol_of, redact
from bpe_beam.storage.retry import EmptyAnswerError, FileChangedError, ShortReadError, retried
from bpe_beam.storage.stored_file import StoredFile, stored_file

FIRST_BLOCK = 256 << 10
"""Bytes of the first range after a seek, which may be for a few bytes only."""
BLOCK = 4 << 20
"""Maximum bytes of a range, while reading continues."""
_GROWTH = 4
_BUFFER = 64 << 10

Fetch = Callable[[int, int], bytes]
"""(start, end) -> the bytes from start to end; a faulty store may give fewer or more."""


@dataclass(frozen=True)
class RangeSource:
    """A remote file as it was when it was opened; if `concurrent`, several threads may `fetch`."""

    file: StoredFile
    fetch: Fetch
    close: Callable[[], object] = lambda: None
    concurrent: bool = True


def open_reader(
    open_: Callable[[], RangeSource], url: str, secrets: Collection[str]
) -> tuple[StoredFile, BinaryIO]:
    """Open a remote file for reading: seekable, with one block of at most BLOCK bytes in memory."""
    reader = RangeReader(open_, url, secrets)
    return reader.file, cast(BinaryIO, io.BufferedReader(_RemoteFile(reader), _BUFFER))


class RangeReader:
    """Reads ranges of a remote file, for several threads at the same time."""

    def __init__(
        self, open_: Callable[[], RangeSource], url: str, secrets: Collection[str]
    ) -> None:
        with named_errors("read", url, secrets):
            self._source = retried(open_)
        self._url, self._secrets = url, secrets
        self._turn = contextlib.nullcontext() if self._source.concurrent else Lock()
        self.file = self._source.file
        self.size = self.file.size

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes of the file from `start` to `end`."""
        with named_errors("read", self._url, self._secrets), self._turn:
            return read_range(self._source, start, end)

    def close(self) -> None:
        """Close the file, ignoring errors: the bytes that were read are complete."""
        with contextlib.suppress(Exception):
            self._source.close()


def read_range(source: RangeSource, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to `end`."""

    def fetch() -> bytes:
        data = source.fetch(start, end)
        if len(data) != end - start:
            raise ShortReadError(f"got {len(data)} bytes for the range from {start} to {end}")
        return data

    return retried(fetch) if start < end else b""


class _RemoteFile(io.RawIOBase):
    """A remote file with one block in memory."""

    def __init__(self, reader: RangeReader) -> None:
        super().__init__()
        self._reader = reader
        self._position = 0
        self._block = memoryview(b"")
        self._block_start = -1
        self._next_block = FIRST_BLOCK

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position; nothing is read yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._reader.size}
        if base[whence] + offset < 0:
            raise ValueError(f"the position must be at least 0, got {base[whence] + offset}")
        self._position = base[whence] + offset
        return self._position

    def readinto(self, view: Any, /) -> int:
        """Read from the block in memory, after loading the block of this position if needed."""
        at = self._position - self._block_start
        if not 0 <= at < len(self._block):
            sequential = at == len(self._block)
            self._next_block = min(self._next_block * _GROWTH, BLOCK) if sequential else FIRST_BLOCK
            end = min(self._position + self._next_block, self._reader.size)
            if end <= self._position:
                return 0
            self._block = memoryview(b"")  # not two blocks at a time
            self._block = memoryview(self._reader.read(self._position, end))
            self._block_start, at = self._position, 0
        data = self._block[at : at + len(view)]
        memoryview(view)[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._block = memoryview(b"")
            self._reader.close()


def open_ranges(fs: Any, path: str, url: str) -> RangeSource:
    """Return a remote file, opened for reading by ranges.

    A file with a Content-Encoding that its store decodes on the way is refused: its size and its
    ranges are not of the content.
    """
    protocol = protocol_of(url)
    if protocol == "s3":
        return _open_s3(fs, path, url)
    info = file_info(protocol, fs, path)
    file = stored_file(url, info)
    if protocol in AZURE:
        return RangeSource(file, _azure_fetch(fs, path, info))
    if protocol not in ("gs", "memory"):
        return _open_other(fs, path, file)
    encoding = str(info.get("contentEncoding") or "")
    if encoding not in ("", "identity"):
        raise DataError(
            f"cannot read {redact(url)}: its Content-Encoding is {encoding!r}, which the store "
            "decodes on the way; remove it from the metadata: compression is recognised by a "
            "file's first bytes"
        )
    version = {"generation": info.get("generation")} if protocol == "gs" else {}

    def fetch(start: int, end: int) -> bytes:
        return cast(bytes, fs.cat_file(path, start=start, end=end, **version))

    return RangeSource(file, fetch)


def _open_s3(fs: Any, path: str, url: str) -> RangeSource:
    # s3fs binds each request to the ETag
    reader = fs.open(path, "rb", cache_type="none", fill_cache=False)

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, reader._fetch_range(start, end))
        except Exception as error:
            if type(error).__name__ == "FileExpired":
                raise FileChangedError("the file was changed while it was read") from error
            raise

    return RangeSource(stored_file(url, reader.details), fetch, reader.close)


def _azure_fetch(fs: Any, path: str, info: Mapping[str, Any]) -> Fetch:
    from azure.core import MatchConditions
    from azure.core.exceptions import HttpResponseError
    from fsspec.asyn import sync

    container, blob, version = fs.split_path(path)
    # The quotes are part of an ETag; listings leave them out.
    etag = '"' + str(info["etag"]).strip('"') + '"'

    async def download(start: int, end: int) -> bytes:
        async with fs.service_client.get_blob_client(container=container, blob=blob) as client:
            stream = await client.download_blob(
                offset=start,
                length=end - start,
                version_id=version,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                max_concurrency=1,
                decompress=False,  # a range alone cannot be decompressed
                **getattr(fs, "_timeout_kwargs", {}),
            )
            return cast(bytes, await stream.readall())

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, sync(fs.loop, download, start, end))
        except HttpResponseError as error:
            if error.status_code == 412:
                raise FileChangedError("the file was changed while it was read") from error
            raise
        except ValueError as error:  # Azure's client, for an answer without its range
            raise EmptyAnswerError(str(error)) from error

    return fetch


def _open_other(fs: Any, path: str, file: StoredFile) -> RangeSource:
    """Open a file of any other file system by its own reader, which is replaced after a failure."""
    opened: list[Any] = []

    def fetch(start: int, end: int) -> bytes:
        try:
            if not opened:
                with contextlib.suppress(TypeError):  # some file systems have no such option
                    opened.append(fs.open(path, "rb", cache_type="none"))
            if not opened:
                opened.append(fs.open(path, "rb"))
            opened[0].seek(start)
            return cast(bytes, opened[0].read(end - start))
        except Exception:
            close()
            raise

    def close() -> None:
        if opened:
            opened.pop().close()

    return RangeSource(file, fetch, close, concurrent=False)
