"""Reading zstd; its units are frames, except skippable ones."""

from __future__ import annotations

from collections.abc import Callable

import zstandard

from bpe_beam.corpus.streams.decompressed import STORED_BLOCK, BrokenStream, Decompressed
from bpe_beam.corpus.streams.stored import Stored

_ZSTD_MAX_HEADER = 18
_ZSTD_MAX_BLOCK = 128 << 10
_ZSTD_MAX_WINDOW = 1 << 31  # zstd --long=31; memory is used as far as a frame fills it
_ZSTD_RLE, _ZSTD_RESERVED = 1, 3


def is_skippable(head: bytes) -> bool:
    """Return whether bytes begin a skippable frame: 0x184D2A50 to 0x184D2A5F, little-endian."""
    return head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F


class Zstd(Decompressed):
    """zstd, of any number of frames, some of them skippable.

    Frames are divided into blocks here, because the library's streams either ignore that a file
    ends too soon, or withhold the bytes before the flaw, or return bytes without bound (four stored
    bytes can become 128 KiB).
    """

    def __init__(self, stored: Stored) -> None:
        super().__init__(stored)
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._checksum_bytes = 0
        self._blocks_done = False
        self._skipped_bytes = 0  # the rest of a frame that is skipped

    def advance(self, limit: int) -> bytes | None:
        self._sound = self._position
        if self._skipped_bytes:
            self._skipped_bytes -= len(self._take(min(self._skipped_bytes, STORED_BLOCK)))
            return b""
        if self._frame is None:
            return b"" if self._begin_frame() else None
        if self._blocks_done:
            # The checksum comes last: if it is wrong, its frame has been returned already.
            output = self._feed(self._take(self._checksum_bytes), self._wrong_checksum)
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
        """Read a frame's header; return False at the end."""
        self._fill(_ZSTD_MAX_HEADER)
        head = self._input[self._at : self._at + _ZSTD_MAX_HEADER]
        if not head:
            return False
        if is_skippable(head):
            self._skipped_bytes = int.from_bytes(self._take(8)[4:], "little")
            return True
        try:
            size = zstandard.frame_header_size(head)
            header = zstandard.get_frame_parameters(head)
        except zstandard.ZstdError as error:
            if "too much memory" in str(error):
                raise self._broken("a zstd frame has a window of over 2 GiB") from None
            raise self._broken(f"the zstd stream is corrupt ({error})") from None
        if header.dict_id:
            raise self._broken(f"a zstd frame was compressed with dictionary {header.dict_id}")
        self._begin_unit(self._position)
        self._frame = self._decompressor.decompressobj()
        self._checksum_bytes = 4 if header.has_checksum else 0
        self._blocks_done = False
        self._feed(self._take(size))
        return True

    def _feed(self, data: bytes, broken: Callable[[object], BrokenStream] | None = None) -> bytes:
        assert self._frame is not None
        try:
            return self._frame.decompress(data) if data else b""
        except zstandard.ZstdError as error:
            raise (broken or self._broken)(f"the zstd stream is corrupt ({error})") from None

    def _take(self, count: int) -> bytes:
        if not self._fill(count):
            self._at = len(self._input)
            raise self._broken("the zstd stream ends too soon")
        self._at += count
        return self._input[self._at - count : self._at]
