"""The bytes of a file as its records see them: decompressed while they are read.

Memory is bounded whatever the compression ratio is. Stored data that is corrupt or ends too soon
raises `BrokenStream`, after everything before the flaw has been handed out: for gzip to the stored
byte, for the others to the block. Checksums stand behind what they are of: where damaged data still
makes sense to a decompressor, wrong bytes may have been handed out before the error.

A gzip file of many members, and a zstd file of many frames, can be read from any of them: a slice
in the middle of such a file begins at the first that it finds, see `units.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bpe_beam.corpus.streams.block_streams import Bzip2, Lzma, Xz
from bpe_beam.corpus.streams.decompressed import Decompressed
from bpe_beam.corpus.streams.gzip_stream import Gzip
from bpe_beam.corpus.streams.lz4_stream import Lz4
from bpe_beam.corpus.streams.stored import Stored, unmetered
from bpe_beam.corpus.streams.units import find_unit
from bpe_beam.corpus.streams.zstd_stream import Zstd
from bpe_beam.storage import Storage

_KINDS: dict[str, Callable[[Stored], Decompressed]] = {
    "gzip": Gzip,
    "zstd": Zstd,
    "bz2": Bzip2,
    "xz": Xz,
    "lzma": Lzma,
    "lz4": Lz4,
}


class Source(Protocol):
    """Bytes of a file from some place to its end.

    Attributes:
        first: The stored byte at which reading began.
        boundary: How many bytes came before the first unit (member, frame) that begins at the
            slice's end or behind it; None until such a unit is reached. It is set before
            any byte of that unit is handed out.
        boundary_unit: The stored byte at which that unit begins.
    """

    first: int
    boundary: int | None
    boundary_unit: int

    def readinto(self, view: memoryview) -> int:
        """Fills the view from its start; returns how many bytes, 0 at the end.

        Raises:
            BrokenStream: What is stored cannot be decompressed further.
        """

    def close(self) -> None:
        """Closes the file."""


def open_source(
    storage: Storage,
    url: str,
    compression: str,
    size: int,
    start: int = 0,
    end: int | None = None,
    tag: str = "",
    on_read: Callable[[int], None] = unmetered,
) -> Source | None:
    """Opens a file of the plan.

    Args:
        storage: The storage client.
        url: The file.
        compression: One of COMPRESSIONS.
        size: Its planned size as stored, in bytes.
        start: Where to begin; in a compressed file, where to look for the first unit.
        end: The stored byte behind the slice; None: the file's end.
        tag: Its planned tag, or "".
        on_read: Called after each read with the number of stored bytes that it gave.

    Returns:
        The bytes from there to the file's end, whatever `end` is; None if the file is compressed
        and no unit begins in [start, end).

    Raises:
        DataError: When opening or reading fails, or when the file is shorter or longer than
            planned.
    """
    stored = Stored(storage, url, size, start, tag, on_read)
    if compression == "none":
        return stored
    kind = _KINDS[compression]
    end = size if end is None else end
    if start:
        try:
            unit = find_unit(stored, compression, kind, start, end)
        except BaseException:
            stored.close()
            raise
        if unit is None:
            stored.close()
            return None
        stored.seek(unit)
        stored.first = unit
    source = kind(stored)
    source.end = end
    return source
