"""The bytes of a file as its records see them: decompressed while they are read.

Memory is bounded whatever the compression ratio is. Stored data that is corrupt or ends too soon
raises `BrokenStream`, after everything before the flaw has been handed out: for gzip to the stored
byte, for zstd to the block (128 KiB at most).
"""

from __future__ import annotations

import zlib
from typing import BinaryIO, Protocol

import zstandard

from bpe_beam.corpus.kinds import is_skippable_zstd
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, named_errors, redact

_STORED_BLOCK = 256 << 10
# What zlib gets at once: behind the end of a member it copies all that is left of it, and files of
# Common Crawl have a member a record.
_GZIP_STEP = 64 << 10
_ZSTD_MAX_HEADER = 18
_ZSTD_MAX_BLOCK = 128 << 10
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


class BrokenStream(Exception):
    """Stored data cannot be decompressed further. The message says why, and at which byte."""


class Source(Protocol):
    """Bytes of a file from some place to its end.

    Attributes:
        first: The stored byte at which reading began.
        boundary: How many bytes came before the first unit (member, frame) that begins at the
            slice's end or behind it; None while no such unit has been met. It is set before
            any byte of that unit is handed out.
        boundary_unit: The stored byte at which that unit begins.
    """

    first: int
    boundary: int | None
    boundary_unit: int

    def readinto(self, view: memoryview) -> int:
        """Fills the view from its start; returns how many bytes, 0 at the end."""

    def close(self) -> None:
        """Closes the file."""


def open_source(storage: Storage, url: str, compression: str, size: int, start: int = 0) -> Source:
    """Opens a file of the plan.

    Args:
        storage: The door to storage.
        url: The file.
        compression: One of COMPRESSIONS.
        size: Its planned size as stored, in bytes.
        start: Where to begin; 0 if it is compressed.

    Raises:
        DataError: When opening or reading fails, or when the file is shorter or longer than
            planned.
    """
    stored = _Stored(storage, url, size, start)
    if compression == "gzip":
        return _Gzip(stored)
    if compression == "zstd":
        return _Zstd(stored)
    return stored


class _Stored:
    """The file as it is stored, held to its planned size: a part of a file that was changed
    meanwhile must not pass for the whole."""

    def __init__(self, storage: Storage, url: str, size: int, start: int) -> None:
        self.size = size
        self.position = start
        self.first = start
        self.boundary: int | None = None
        self.boundary_unit = 0
        self._url = url
        with named_errors("read", url):
            self._file: BinaryIO = storage.open(url)
            if start:
                self._file.seek(start)

    def readinto(self, view: memoryview) -> int:
        view = view[: self.size - self.position]
        with named_errors("read", self._url):
            if not view:
                if self._file.read(1):
                    raise DataError(self._changed("it is longer now"))
                return 0
            count = self._file.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise DataError(self._changed(f"reading ended at byte {self.position}"))
        self.position += count
        return int(count)

    def read(self, count: int) -> bytes:
        """At most `count` bytes; none at the end."""
        buffer = bytearray(count)
        return bytes(memoryview(buffer)[: self.readinto(memoryview(buffer))])

    def close(self) -> None:
        self._file.close()

    def _changed(self, how: str) -> str:
        return (
            f"{redact(self._url)} had {self.size} bytes when the job was planned, and {how}; "
            "start the job again on files that stay as they are"
        )


class _Decompressed:
    """What gzip and zstd share: a block of stored bytes, and handing out what came of them."""

    def __init__(self, stored: _Stored) -> None:
        self.first = stored.first
        self.boundary: int | None = None
        self.boundary_unit = 0
        self._stored = stored
        self._input = b""
        self._at = 0  # so much of the input is used up
        self._output = b""

    def readinto(self, view: memoryview) -> int:
        while not self._output:
            output = self._advance(len(view))
            if output is None:
                return 0
            self._output = output
        count = min(len(view), len(self._output))
        view[:count] = memoryview(self._output)[:count]
        self._output = self._output[count:]
        return count

    def close(self) -> None:
        self._stored.close()

    def _advance(self, limit: int) -> bytes | None:
        """Decompresses some more; None at the end. What comes out need not be shorter than
        `limit`, but is bounded."""
        raise AssertionError("each kind has its own")

    def _fill(self, count: int) -> bool:
        """Sees to it that `count` bytes of input are there, as long as the file has them."""
        while len(self._input) - self._at < count:
            more = self._stored.read(_STORED_BLOCK)
            if not more:
                return False
            self._input, self._at = self._input[self._at :] + more, 0
        return True

    def _broken(self, why: object) -> BrokenStream:
        at = self._stored.position - len(self._input) + self._at
        return BrokenStream(f"{why}, {at} of {self._stored.size} stored bytes read")


class _Gzip(_Decompressed):
    """gzip, of any number of members, with zeros behind one taken for padding, as Python does."""

    def __init__(self, stored: _Stored) -> None:
        super().__init__(stored)
        self._member: zlib._Decompress | None = None

    def _advance(self, limit: int) -> bytes | None:
        more = self._fill(1)
        if self._member is None:
            while more and self._input[self._at] == 0:
                self._input, self._at = self._input[self._at :].lstrip(b"\0"), 0
                more = self._fill(1)
            if not more:
                return None
            self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        output = self._decompress(self._member, limit)
        if self._member.eof:
            self._member = None
        elif not more and not output:
            raise self._broken("the gzip stream ends too soon")
        return output

    def _decompress(self, member: zlib._Decompress, limit: int) -> bytes:
        """One step. When it fails, half as much is tried, so that in the end all came out that
        the bytes before the broken one give."""
        count = min(_GZIP_STEP, len(self._input) - self._at)
        while True:
            self._member = member.copy()
            try:
                output = self._member.decompress(self._input[self._at : self._at + count], limit)
            except zlib.error as error:
                if count <= 1:
                    raise self._broken(f"the gzip stream is corrupt ({error})") from None
                count //= 2
                continue
            ended = self._member.eof  # then the tail can hold the same bytes again
            left = self._member.unused_data if ended else self._member.unconsumed_tail
            self._at += count - len(left)
            return output


class _Zstd(_Decompressed):
    """zstd, of any number of frames, some of them skippable.

    Frames are taken apart into blocks here, because the library's streams either say nothing of a
    file that ends too soon, or withhold what comes before the flaw, or write without bound (four
    stored bytes can stand for 128 KiB).
    """

    def __init__(self, stored: _Stored) -> None:
        super().__init__(stored)
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._checksum_bytes = 0
        self._blocks_done = False

    def _advance(self, limit: int) -> bytes | None:
        if self._frame is None:
            return b"" if self._begin_frame() else None
        if self._blocks_done:
            # The checksum comes by itself: if it is wrong, what it is of has been handed out.
            output = self._feed(self._take(self._checksum_bytes))
            if not self._frame.eof:
                raise self._broken("the zstd stream is corrupt (a frame does not end)")
            self._frame = None
            return output
        head = self._take(3)
        fields = int.from_bytes(head, "little")
        last, kind, size = fields & 1, fields >> 1 & 3, fields >> 3
        if kind == _ZSTD_RESERVED or (size > _ZSTD_MAX_BLOCK and kind != _ZSTD_RLE):
            raise self._broken("the zstd stream is corrupt (a block's header)")
        self._blocks_done = bool(last)
        return self._feed(head + self._take(1 if kind == _ZSTD_RLE else size))

    def _begin_frame(self) -> bool:
        """Reads a frame's header, or passes over a skippable frame. False at the end."""
        self._fill(_ZSTD_MAX_HEADER)
        head = self._input[self._at : self._at + _ZSTD_MAX_HEADER]
        if not head:
            return False
        if is_skippable_zstd(head):
            left = int.from_bytes(self._take(8)[4:], "little")
            while left:
                left -= len(self._take(min(left, _STORED_BLOCK)))
            return True
        try:
            size = zstandard.frame_header_size(head)
            header = zstandard.get_frame_parameters(head)
        except zstandard.ZstdError as error:
            raise self._broken(f"the zstd stream is corrupt ({error})") from None
        self._frame = self._decompressor.decompressobj()
        self._checksum_bytes = 4 if header.has_checksum else 0
        self._blocks_done = False
        self._feed(self._take(size))
        return True

    def _feed(self, data: bytes) -> bytes:
        assert self._frame is not None
        try:
            return self._frame.decompress(data) if data else b""
        except zstandard.ZstdError as error:
            raise self._broken(f"the zstd stream is corrupt ({error})") from None

    def _take(self, count: int) -> bytes:
        if not self._fill(count):
            self._at = len(self._input)
            raise self._broken("the zstd stream ends too soon")
        self._at += count
        return self._input[self._at - count : self._at]
