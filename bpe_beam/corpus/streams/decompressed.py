"""The decompressed bytes of a file, by compression.

The units of gzip are members; the units of zstd are frames, except skippable ones. A file of bzip2,
xz, LZMA or LZ4 is read as one. The libraries are imported for files that need them.
"""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe_beam.corpus.streams.stored import Stored

if TYPE_CHECKING:
    from bz2 import BZ2Decompressor
    from lzma import LZMADecompressor

    import zstandard

    _Decompressor = BZ2Decompressor | LZMADecompressor

STORED_BLOCK = 256 << 10
"""Stored bytes that are read at once."""

_Outputs = Generator[bytes, None, None]


class BrokenStream(Exception):
    """Stored data cannot be decompressed further."""

    def __init__(self, why: str, lost: int) -> None:
        super().__init__(why)
        self.lost = lost


class Decompressed(ABC):
    """Decompressed bytes of a file, from the unit at the position of the stored bytes on.

    Attributes:
        first: The stored byte at which reading began.
        end: The slice's end in stored bytes.
        units: The number of units that have begun.
        boundary: The number of bytes before the first unit that begins at the slice's end or after
            it; None until such a unit is reached, and set before any of its bytes is returned.
        boundary_unit: The stored byte at which that unit begins.
    """

    def __init__(self, stored: Stored) -> None:
        self.first = stored.position
        self.boundary: int | None = None
        self.boundary_unit = 0
        self.end = stored.size
        self.units = 0
        self._stored = stored
        self._input = b""
        self._at = 0  # how much of the input is used
        self._sound = stored.position  # the stored bytes before have been returned
        self._unit = stored.position  # where the last unit begins
        self.outputs = self._decompress()
        self._limit = STORED_BLOCK
        self._output = b""
        self._returned = 0

    def readinto(self, view: memoryview) -> int:
        """Fill a view from its start; return how many bytes, 0 at the end."""
        while not self._output:
            output = self.advance(len(view))
            if output is None:
                return 0
            self._output = output
        count = min(len(view), len(self._output))
        view[:count] = memoryview(self._output)[:count]
        self._output = self._output[count:]
        self._returned += count
        return count

    def close(self) -> None:
        self.outputs.close()  # which refers to this object
        self._stored.close()

    def advance(self, limit: int) -> bytes | None:
        """Return some more decompressed bytes, about `limit` of them; None at the end."""
        self._limit = limit
        return next(self.outputs, None)

    @abstractmethod
    def _decompress(self) -> _Outputs:
        """Yield the decompressed bytes, about `_limit` at a time; some may be empty."""

    def _begin_unit(self) -> None:
        """Note that a unit begins here; the bytes before it have been returned."""
        self.units += 1
        self._unit = self._position
        if self.boundary is None and self._unit >= self.end:
            self.boundary = self._returned
            self.boundary_unit = self._unit

    @property
    def _position(self) -> int:
        """The stored byte that is used next."""
        return self._stored.position - len(self._input) + self._at

    def _fill(self, count: int) -> bool:
        """Load `count` bytes of input; return False if the file ends before."""
        while len(self._input) - self._at < count:
            more = self._stored.read(STORED_BLOCK)
            if not more:
                return False
            self._input, self._at = self._input[self._at :] + more, 0
        return True

    def _skip_padding(self, padding: bytes) -> bool:
        """Pass over the padding between units; return False at the file's end."""
        while self._fill(1):
            if not self.units or self._input[self._at] not in padding:
                return True
            self._input, self._at = self._input[self._at :].lstrip(padding), 0
        return False

    def _wrong_checksum(self, why: object) -> BrokenStream:
        """Return the error of a unit whose checksum is wrong: all of it may be wrong."""
        self._sound = self._unit
        return self._broken(why)

    def _broken(self, why: object) -> BrokenStream:
        size = self._stored.size
        return BrokenStream(
            f"{why}, {self._position} of {size} stored bytes read", size - self._sound
        )


_GZIP_STEP = 64 << 10
"""The bytes that zlib gets at once: it copies those after the end of a member, and files of Common
Crawl have a member a record."""

_CHECKSUM = "incorrect (data|length) check"


class _Gzip(Decompressed):
    """gzip, of any number of members; zeros after one are padding, as for Python."""

    def _decompress(self) -> _Outputs:
        while self._skip_padding(b"\0"):
            self._begin_unit()
            member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            while not member.eof:
                more = self._fill(1)
                member, output = self._step(member)
                if not (more or output or member.eof):
                    raise self._broken("the gzip stream ends too soon")
                yield output
                self._sound = self._position

    def _step(self, member: zlib._Decompress) -> tuple[zlib._Decompress, bytes]:
        """Return the state after one step, and its bytes.

        If it fails, half as much is tried, so that all bytes before the broken one are used.
        """
        count = min(_GZIP_STEP, len(self._input) - self._at)
        while True:
            tried = member.copy()
            try:
                output = tried.decompress(self._input[self._at : self._at + count], self._limit)
            except zlib.error as error:
                if count <= 1:
                    wrong = re.search(_CHECKSUM, str(error))
                    broken = self._wrong_checksum if wrong else self._broken
                    raise broken(f"the gzip stream is corrupt ({error})") from None
                count //= 2
                continue
            # After the end, the tail can hold the same bytes again.
            rest = tried.unused_data if tried.eof else tried.unconsumed_tail
            self._at += count - len(rest)
            return tried, output


_ZSTD_MAX_HEADER = 18
_ZSTD_MAX_BLOCK = 128 << 10
_ZSTD_MAX_WINDOW = 1 << 31  # zstd --long=31; memory is used as far as a frame fills it
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


def is_skippable(head: bytes) -> bool:
    """Return whether bytes begin a skippable frame: 0x184D2A50 to 0x184D2A5F, little-endian."""
    return head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F


class _Zstd(Decompressed):
    """zstd, of any number of frames, some of them skippable.

    Frames are divided into blocks here, because the library's streams either ignore that a file
    ends too soon, or withhold the bytes before the flaw, or return bytes without bound (four stored
    bytes can become 128 KiB).
    """

    def _decompress(self) -> _Outputs:
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
        while self._fill(_ZSTD_MAX_HEADER) or self._at < len(self._input):
            head = self._input[self._at : self._at + _ZSTD_MAX_HEADER]
            outputs = self._skip() if is_skippable(head) else self._frame(head, decompressor)
            for output in outputs:
                yield output
                self._sound = self._position

    def _skip(self) -> _Outputs:
        size = int.from_bytes(self._take(8)[4:], "little")
        yield b""
        while size:
            size -= len(self._take(min(size, STORED_BLOCK)))
            yield b""

    def _frame(self, head: bytes, decompressor: zstandard.ZstdDecompressor) -> _Outputs:
        import zstandard

        try:
            size = zstandard.frame_header_size(head)
            header = zstandard.get_frame_parameters(head)
        except zstandard.ZstdError as error:
            if "too much memory" in str(error):
                raise self._broken("a zstd frame has a window of over 2 GiB") from None
            raise self._broken(f"the zstd stream is corrupt ({error})") from None
        if header.dict_id:
            raise self._broken(f"a zstd frame was compressed with dictionary {header.dict_id}")
        self._begin_unit()
        frame = decompressor.decompressobj()
        self._feed(frame, self._take(size))
        yield b""
        last = 0
        while not last:
            head = self._take(3)
            fields = int.from_bytes(head, "little")
            last, kind, size = fields & 1, fields >> 1 & 3, fields >> 3
            if kind == _ZSTD_RESERVED or (size > _ZSTD_MAX_BLOCK and kind != _ZSTD_RLE):
                raise self._broken("the zstd stream is corrupt (a block's header)")
            yield self._feed(frame, head + self._take(1 if kind == _ZSTD_RLE else size))
        # The checksum comes last: if it is wrong, its frame has been returned already.
        checksum = self._take(4 if header.has_checksum else 0)
        output = self._feed(frame, checksum, self._wrong_checksum)
        if not frame.eof:
            raise self._broken("the zstd stream is corrupt (a frame does not end)")
        yield output

    def _feed(
        self,
        frame: zstandard.ZstdDecompressionObj,
        data: bytes,
        broken: Callable[[object], BrokenStream] | None = None,
    ) -> bytes:
        from zstandard import ZstdError

        try:
            return frame.decompress(data) if data else b""
        except ZstdError as error:
            raise (broken or self._broken)(f"the zstd stream is corrupt ({error})") from None

    def _take(self, count: int) -> bytes:
        if not self._fill(count):
            self._at = len(self._input)
            raise self._broken("the zstd stream ends too soon")
        self._at += count
        return self._input[self._at - count : self._at]


_XZ_MEMORY = 256 << 20
"""The memory of a decompressor in bytes: `xz -9` takes 65 MB, and a file may demand 4 GB."""

_LZ4_STEP = 64 << 10  # maximum good bytes that an error loses
_LZ4_READ_AHEAD = 64 << 10
"""The bytes that pyarrow reads at once, and may not have used when it returns some."""
_LZ4_CHECKSUM = "[cC]hecksum|frameSize"


class _BlockStream(Decompressed):
    """Streams one after another, by a decompressor of the standard library.

    `new` returns the decompressor of one stream; `padding` are bytes that may follow a stream.
    """

    def __init__(
        self,
        stored: Stored,
        name: str,
        new: Callable[[], BZ2Decompressor | LZMADecompressor],
        padding: bytes = b"",
    ) -> None:
        super().__init__(stored)
        self._name, self._new, self._padding = name, new, padding

    def _decompress(self) -> _Outputs:
        from lzma import LZMAError

        while self._skip_padding(self._padding):
            fed = self._sound = self._position
            self._begin_unit()
            stream = self._new()
            while not stream.eof:
                data = b""
                if stream.needs_input:
                    if not self._fill(1):
                        raise self._broken(f"the {self._name} stream ends too soon")
                    fed = self._position
                    data, self._input, self._at = self._input[self._at :], b"", 0
                try:
                    output = stream.decompress(data, max(self._limit, 1))
                except (OSError, EOFError, ValueError, LZMAError) as error:
                    raise self._broken(f"the {self._name} stream is corrupt ({error})") from None
                if output:
                    self._sound = fed
                if stream.eof:
                    self._input, self._at = stream.unused_data, 0
                yield output


class _Lz4(Decompressed):
    """LZ4 frames, by pyarrow."""

    def _decompress(self) -> _Outputs:
        reader = pa.CompressedInputStream(pa.PythonFile(self._stored, mode="r"), "lz4")
        while True:
            self._sound = max(0, self._stored.position - _LZ4_READ_AHEAD)
            try:
                output: bytes = reader.read(max(1, min(self._limit, _LZ4_STEP)))
            except (pa.ArrowException, OSError) as error:
                self._stored.check(error)
                broken = (
                    self._wrong_checksum if re.search(_LZ4_CHECKSUM, str(error)) else self._broken
                )
                raise broken(f"the LZ4 stream is corrupt ({error})") from None
            if not output:
                return
            yield output


def _bzip2(stored: Stored) -> Decompressed:
    import bz2

    return _BlockStream(stored, "bzip2", bz2.BZ2Decompressor)


def _xz(stored: Stored) -> Decompressed:
    import lzma

    new = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    return _BlockStream(stored, "xz", new, padding=b"\0")


def _lzma(stored: Stored) -> Decompressed:
    """Return the bytes of LZMA alone, the format that came before xz: one stream."""
    import lzma

    new = partial(lzma.LZMADecompressor, lzma.FORMAT_ALONE, memlimit=_XZ_MEMORY)
    return _BlockStream(stored, "LZMA", new)


KINDS: dict[str, Callable[[Stored], Decompressed]] = {
    "gzip": _Gzip,
    "zstd": _Zstd,
    "lz4": _Lz4,
    "bz2": _bzip2,
    "xz": _xz,
    "lzma": _lzma,
}
"""The opener of a file by its compression."""
