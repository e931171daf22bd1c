"""The bytes of a file: checked against the plan, decompressed, from any unit on.

Memory is bounded whatever the compression ratio is. Stored data that is corrupt or ends too soon
raises `BrokenStream`, after everything before the flaw has been returned: for gzip to the stored
byte, for the others to the block. Checksums follow their data: if a decompressor accepts damaged
data, wrong bytes may have been returned before the error.

A gzip file of many members, and a zstd file of many frames, can be read from any of them: a slice
in the middle of such a file begins at the first that it finds, see `unit_search.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from bpe_beam.corpus.streams.block_streams import BLOCK_STREAMS
from bpe_beam.corpus.streams.decompressed import BrokenStream, Decompressed
from bpe_beam.corpus.streams.gzip_stream import Gzip
from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.corpus.streams.unit_search import find_unit
from bpe_beam.corpus.streams.zstd_stream import Zstd

__all__ = ["BrokenStream", "Source", "Stored", "decompress"]

Source = Stored | Decompressed
"""Bytes of a file from some position to its end."""

_KINDS: dict[str, Callable[[Stored], Decompressed]] = {
    "gzip": Gzip,
    "zstd": Zstd,
    **BLOCK_STREAMS,
}


def decompress(stored: Stored, compression: str, end: int) -> Decompressed | None:
    """Return the decompressed bytes of a file from the first unit at or after its position on.

    Args:
        stored: The stored bytes; closed if there is no such unit.
        compression: One of COMPRESSIONS except "none".
        end: The stored byte after the slice.

    Returns:
        The bytes up to the file's end, whatever `end` is; None if no unit begins in the slice.

    Raises:
        DataError: Reading fails, or the file is shorter or longer than planned.
    """
    kind = _KINDS[compression]
    if stored.position:
        unit = None
        try:
            unit = find_unit(stored, compression, kind, stored.position, end)
        finally:
            if unit is None:
                stored.close()
        if unit is None:
            return None
        stored.seek(unit)
    source = kind(stored)
    source.end = end
    return source
