"""Files on web servers: their sizes and tags, and ranges of their bytes.

fsspec itself takes any failure for a missing file, and the whole file for the range that a server
without ranges was asked for. This module checks status, position and tag of each answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from fsspec.asyn import sync

from bpe_beam.storage.file_systems import http_limits
from bpe_beam.storage.remote_file import RangeSource
from bpe_beam.storage.retry import FileChangedError, ShortReadError
from bpe_beam.storage.stored_file import StoredFile, stored_file

_BLOCK = 256 << 10
"""Bytes that are read from an answer at once."""


class _WebError(OSError):
    """An answer with a status of failure."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the server answers {status} {reason}".rstrip())
        self.status = status


def web_info(fs: Any, url: str) -> Mapping[str, Any]:
    """Return the description of a file on a web server, with the keys of fsspec's `info`."""
    return {"type": "file", **sync(fs.loop, _stat, fs, url)}


def open_web(fs: Any, url: str) -> RangeSource:
    """Return a file on a web server, opened for reading by ranges.

    If the server has no ranges, the file is read from the start, again for each step back.
    """
    reader = _WebReader(fs, url, stored_file(url, web_info(fs, url)))
    return RangeSource(reader.file, reader.fetch, reader.close, concurrent=False)


async def _stat(fs: Any, url: str) -> Mapping[str, Any]:
    answer = await _request(fs, "head", url)
    answer.release()
    size = answer.headers.get("Content-Length")
    if answer.status == 200 and size is not None:
        return {"size": int(size), **_tag(answer.headers)}
    # Some servers have no HEAD, and a signed URL may be for GET only.
    answer = await _request(fs, "get", url, "bytes=0-0")
    answer.close()
    if answer.status in (206, 416):
        size = answer.headers.get("Content-Range", "").rpartition("/")[2]
    else:
        _raise_for(answer)
        size = answer.headers.get("Content-Length", "")
    return {"size": int(size) if size.isdigit() else None, **_tag(answer.headers)}


async def _request(fs: Any, method: str, url: str, range_: str = "") -> Any:
    session = await fs.set_session()
    options = dict(fs.kwargs)
    # Bytes as they are stored; a compressed answer is read as a compressed file.
    headers = {**options.pop("headers", {}), "Accept-Encoding": "identity"}
    if range_:
        headers["Range"] = range_
    settings = {"allow_redirects": True, "timeout": http_limits(), **options}
    return await session.request(
        method, fs.encode_url(url), headers=headers, auto_decompress=False, **settings
    )


def _raise_for(answer: Any) -> None:
    if answer.status in (404, 410):
        raise FileNotFoundError(answer.status)
    if answer.status >= 300:
        raise _WebError(answer.status, answer.reason or "")


def _tag(headers: Mapping[str, str]) -> dict[str, str]:
    return {"ETag": headers.get("ETag", ""), "LastModified": headers.get("Last-Modified", "")}


class _WebReader:
    def __init__(self, fs: Any, url: str, file: StoredFile) -> None:
        self.file = file
        self._fs, self._url = fs, url
        # The answer of a server without ranges, and the number of bytes that were read from it.
        self._stream: Any = None
        self._streamed = 0

    def fetch(self, start: int, end: int) -> bytes:
        return cast(bytes, sync(self._fs.loop, self._fetch, start, end))

    def close(self) -> None:
        if self._stream is not None:
            sync(self._fs.loop, self._drop)

    async def _fetch(self, start: int, end: int) -> bytes:
        if self._stream is not None and self._streamed <= start:
            return await self._read_stream(start, end)
        await self._drop()
        answer = await _request(self._fs, "get", self._url, f"bytes={start}-{end - 1}")
        try:
            if answer.status == 416:
                raise FileChangedError(f"it ends before byte {start} of its {self.file.size}")
            _raise_for(answer)
            info = {"size": self.file.size, **_tag(answer.headers)}
            tag = stored_file(self._url, info).tag
            if tag and self.file.tag and tag != self.file.tag:
                raise FileChangedError("the file was changed while it was read")
            if answer.status == 206:
                first = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
                if first is None or int(first[1]) != start:
                    raise ShortReadError("the server answers with another range")
                return await _read(answer, end - start + 1)  # one byte more shows a longer answer
            self._stream, self._streamed, answer = answer, 0, None
        finally:
            if answer is not None:
                answer.close()
        return await self._read_stream(start, end)

    async def _read_stream(self, start: int, end: int) -> bytes:
        try:
            while self._streamed < start:
                skipped = await _read(self._stream, min(start - self._streamed, _BLOCK))
                if not skipped:
                    raise ShortReadError(f"the answer ends at byte {self._streamed}")
                self._streamed += len(skipped)
            data = await _read(self._stream, end - start)
            self._streamed += len(data)
            if len(data) < end - start:
                raise ShortReadError(f"the answer ends at byte {self._streamed}")
            return data
        except BaseException:
            await self._drop()
            raise

    async def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


async def _read(answer: Any, count: int) -> bytes:
    """Return `count` bytes of an answer, or all if it has fewer."""
    data = bytearray()
    while len(data) < count:
        block = await answer.content.read(min(count - len(data), _BLOCK))
        if not block:
            break
        data += block
    return bytes(data)
