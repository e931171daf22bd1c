"""Files on web servers: what they are, and parts of them.

fsspec's own way takes any failure for a missing file, and the whole file for the part of it that a
server without ranges was asked for. Here the status, the place and the tag of each answer count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from bpe_beam.storage.failures import CONNECT_SECONDS, SILENCE_SECONDS, Changed, ShortRead
from bpe_beam.storage.file_info import Found, found_of
from bpe_beam.storage.ranges import Opened

_PIECE = 256 << 10


class WebError(OSError):
    """An answer that is none.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"the server answers {status} {reason}".rstrip())
        self.status = status


def stat_web(fs: Any, url: str) -> Found:
    """Asks a server for a file's size and tag.

    Raises:
        FileNotFoundError: Status 404 or 410.
        WebError: Any other.
    """
    from fsspec.asyn import sync

    return found_of(url, sync(fs.loop, _stat, fs, url))


def open_web(fs: Any, url: str) -> Opened:
    """Opens a file on a web server by ranges; where the server gives none, by reading from the
    start and passing over what is not wanted, again from the start for each step back."""
    reader = _WebReader(fs, url, stat_web(fs, url))
    return Opened(reader.found, reader.fetch, reader.close)


async def _stat(fs: Any, url: str) -> dict[str, Any]:
    answer = await _request(fs, "head", url)
    answer.release()
    size = answer.headers.get("Content-Length")
    if answer.status == 200 and size is not None:
        return {"size": int(size), **_tag(answer.headers)}
    # Not each server knows HEAD, and a signed URL may be for GET only.
    answer = await _request(fs, "get", url, "bytes=0-0")
    answer.close()
    if answer.status in (206, 416):
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return {"size": int(total) if total.isdigit() else None, **_tag(answer.headers)}
    _raise_for(answer)
    size = answer.headers.get("Content-Length")
    return {"size": None if size is None else int(size), **_tag(answer.headers)}


async def _request(fs: Any, method: str, url: str, range_: str = "") -> Any:
    import aiohttp

    session = await fs.set_session()
    given = dict(fs.kwargs)
    # Bytes as they are stored; one that is compressed all the same is taken for a compressed file.
    headers = {**given.pop("headers", {}), "Accept-Encoding": "identity"}
    if range_:
        headers["Range"] = range_
    limits = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
    )
    settings = {"allow_redirects": True, "timeout": limits, **given}
    return await session.request(
        method, fs.encode_url(url), headers=headers, auto_decompress=False, **settings
    )


def _raise_for(answer: Any) -> None:
    if answer.status in (404, 410):
        raise FileNotFoundError(answer.status)
    if answer.status >= 300:
        raise WebError(answer.status, answer.reason or "")


def _tag(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: headers[told]
        for name, told in (("ETag", "ETag"), ("LastModified", "Last-Modified"))
        if headers.get(told)
    }


class _WebReader:
    def __init__(self, fs: Any, url: str, found: Found) -> None:
        self.found = found
        self._fs, self._url = fs, url
        # The answer of a server without ranges, and how much of it is read.
        self._stream: Any = None
        self._streamed = 0

    def fetch(self, start: int, end: int) -> bytes:
        from fsspec.asyn import sync

        return cast(bytes, sync(self._fs.loop, self._fetch, start, end))

    def close(self) -> None:
        from fsspec.asyn import sync

        if self._stream is not None:
            sync(self._fs.loop, self._drop)

    async def _fetch(self, start: int, end: int) -> bytes:
        if self._stream is not None and self._streamed <= start:
            return await self._streamed_part(start, end)
        await self._drop()
        answer = await _request(self._fs, "get", self._url, f"bytes={start}-{end - 1}")
        try:
            if answer.status == 416:
                raise Changed(f"it ends before byte {start}, and had {self.found.size} bytes")
            _raise_for(answer)
            self._check_same(answer)
            if answer.status == 206:
                first = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
                if first is None or int(first[1]) != start:
                    raise ShortRead("the server answers with another range than was asked for")
                return await _read(answer, end - start + 1)  # one more shows that it is too long
            self._stream, self._streamed, answer = answer, 0, None
        finally:
            if answer is not None:
                answer.close()
        return await self._streamed_part(start, end)

    def _check_same(self, answer: Any) -> None:
        info = {"size": self.found.size, **_tag(answer.headers)}
        tag = found_of(self._url, info).tag
        if tag and self.found.tag and tag != self.found.tag:
            raise Changed("the file was changed while it was read")

    async def _streamed_part(self, start: int, end: int) -> bytes:
        try:
            while self._streamed < start:
                passed = await _read(self._stream, min(start - self._streamed, _PIECE))
                if not passed:
                    raise ShortRead(f"the answer ends at byte {self._streamed}")
                self._streamed += len(passed)
            data = await _read(self._stream, end - start)
            self._streamed += len(data)
            if len(data) < end - start:
                raise ShortRead(f"the answer ends at byte {self._streamed}")
            return data
        except BaseException:
            await self._drop()
            raise

    async def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


async def _read(answer: Any, count: int) -> bytes:
    """`count` bytes of an answer, or all if there are fewer."""
    data = bytearray()
    while len(data) < count:
        piece = await answer.content.read(min(count - len(data), _PIECE))
        if not piece:
            break
        data += piece
    return bytes(data)
