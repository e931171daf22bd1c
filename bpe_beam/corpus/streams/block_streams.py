"""Reading bzip2, xz, LZMA and LZ4, of any number of streams; such a file is read as one."""

from __future__ import annotations

import bz2
import lzma
import re
from collections.abc import Callable
from functools import partial

import pyarrow as pa

from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.stored import Stored

_XZ_MEMORY = 256 << 20
"""The memory of a decompressor in bytes: `xz -9` takes 65 MB, and a file may demand 4 GB."""

_LZ4_STEP = 64 << 10  # maximum good bytes that an error loses
_LZ4_READ_AHEAD = 64 << 10
"""The bytes that pyarrow reads at once, and may not have used when it returns some."""
_LZ4_CHECKSUM = re.compile("[cC]hecksum|frameSize")

_Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor


class _BlockStream(Decompressed):
    """Streams one after another, by a decompressor of the standard library.

    `new` returns the decompressor of one stream; `padding` are bytes that may follow a stream.
    """

    def __init__(
        self, stored: Stored, name: str, new: Callable[[], _Decompressor], padding: bytes = b""
    ) -> None:
        super().__init__(stored)
        self._name, self._new, self._padding = name, new, padding
        self._stream: _Decompressor | None = None
        self._fed = 0  # where the input begins that the stream got last

    def advance(self, limit: int) -> bytes | None:
        if self._stream is None:
            if not self._skip_padding():
                return None
            self._sound = self._position
            self._begin_unit(self._position)
            self._stream = self._new()
        stream = self._stream
        data = b""
        if stream.needs_input:
            if not self._fill(1):
                raise self._broken(f"the {self._name} stream ends too soon")
            self._fed = self._position
            data, self._input, self._at = self._input[self._at :], b"", 0
        try:
            output = stream.decompress(data, max(limit, 1))
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise self._broken(f"the {self._name} stream is corrupt ({error})") from None
        if output:
            self._sound = self._fed
        if stream.eof:
            self._input, self._at = stream.unused_data, 0
            self._stream = None
        return output

    def _skip_padding(self) -> bool:
        """Pass over the padding between streams; return False at the file's end."""
        while self._fill(1):
            rest = self._input[self._at :]
            if self.units and self._padding:
                rest = rest.lstrip(self._padding)
            self._input, self._at = rest, 0
            if rest:
                return True
        return False


class _Lz4(Decompressed):
    """LZ4 frames, by pyarrow."""

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._reader = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "lz4")

    def advance(self, limit: int) -> bytes | None:
        self._sound = max(0, self._stored.position - _LZ4_READ_AHEAD)
        try:
            output: bytes = self._reader.read(max(1, min(limit, _LZ4_STEP)))
        except (pa.ArrowException, OSError) as error:
            self._stored.check(error)
            broken = self._wrong_checksum if _LZ4_CHECKSUM.search(str(error)) else self._broken
            raise broken(f"the LZ4 stream is corrupt ({error})") from None
        return output or None


_lzma = partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY)

BLOCK_STREAMS: dict[str, Callable[[Stored], Decompressed]] = {
    "lz4": _Lz4,
    "bz2": partial(_BlockStream, name="bzip2", new=bz2.BZ2Decompressor),
    "xz": partial(_BlockStream, name="xz", new=partial(_lzma, lzma.FORMAT_XZ), padding=b"\0"),
    # LZMA alone, the format that came before xz: one stream.
    "lzma": partial(_BlockStream, name="LZMA", new=partial(_lzma, lzma.FORMAT_ALONE)),
}
"""The streams of this module by compression."""
