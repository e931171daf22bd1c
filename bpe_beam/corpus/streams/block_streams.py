"""Reading bzip2, xz and LZMA, of any number of streams; such a file is read as one."""

from __future__ import annotations

import bz2
import lzma
from typing import Protocol

from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.stored import Stored

# xz -9 takes 65 MB; a file may ask for 4 GB.
_XZ_MEMORY = 256 << 20


class _Decompressor(Protocol):
    """What the two modules of the standard library have in common."""

    @property
    def eof(self) -> bool:
        """The stream has ended."""

    @property
    def needs_input(self) -> bool:
        """More output needs more input."""

    @property
    def unused_data(self) -> bytes:
        """What stands behind the stream's end."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Decompresses some more."""


class BlockStream(Decompressed):
    """Streams one after another, by a decompressor of the standard library."""

    NAME = ""
    PADDING = b""  # what may stand between streams

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._stream: _Decompressor | None = None
        self._fed = 0  # where the input begins that the stream got last

    def advance(self, limit: int) -> bytes | None:
        """See `Decompressed`."""
        if self._stream is None:
            if not self._skip_padding():
                return None
            self._sound = self._place
            self._begin_unit(self._place)
            self._stream = self._new()
        stream = self._stream
        data = b""
        if stream.needs_input:
            if not self._fill(1):
                raise self._broken(f"the {self.NAME} stream ends too soon")
            self._fed = self._place
            data, self._input, self._at = self._input[self._at :], b"", 0
        try:
            output = stream.decompress(data, max(limit, 1))
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise self._broken(f"the {self.NAME} stream is corrupt ({error})") from None
        if output:
            self._sound = self._fed
        if stream.eof:
            self._input, self._at = stream.unused_data, 0
            self._stream = None
        return output

    def _skip_padding(self) -> bool:
        """Passes over what stands between streams; False at the file's end."""
        while self._fill(1):
            rest = self._input[self._at :]
            if self.units and self.PADDING:
                rest = rest.lstrip(self.PADDING)
            self._input, self._at = rest, 0
            if rest:
                return True
        return False

    def _new(self) -> _Decompressor:
        raise AssertionError("each kind has its own")


class Bzip2(BlockStream):
    """bzip2."""

    NAME = "bzip2"

    def _new(self) -> _Decompressor:
        return bz2.BZ2Decompressor()


class Lzma(BlockStream):
    """LZMA alone, the form that came before xz: one stream."""

    NAME = "LZMA"

    def _new(self) -> _Decompressor:
        return lzma.LZMADecompressor(format=lzma.FORMAT_ALONE, memlimit=_XZ_MEMORY)


class Xz(BlockStream):
    """xz, with zeros between and behind streams taken for padding."""

    NAME = "xz"
    PADDING = b"\0"

    def _new(self) -> _Decompressor:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
