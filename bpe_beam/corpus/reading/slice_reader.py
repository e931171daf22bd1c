"""The base of the readers of records: a buffer that moves along a slice, rejects, boundaries.

`Gatherer` makes batches of documents that a reader yields one at a time.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import BATCH_SCHEMA, PLACE_BITS
from bpe_beam.corpus.boundaries import is_speculative
from bpe_beam.corpus.plan import MAX_FILE_BYTES
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import Boundaries, Position, SliceRequest
from bpe_beam.corpus.streams import Source, Stored, fill
from bpe_beam.errors import DataError

END = 1 << 62
"""A position after the end of every file."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which is no part of a file's first record."""

_MIN_BLOCK = 16
_BEYOND_STOP = 64 << 10

_MAX_GROWN = 64 << 10
"""The size to which a smaller block grows where all of it is used, as among empty lines."""


class FileBuffer:
    """The bytes `data` of a file, in memory from the position `base` on.

    If `final`, the file ends with these. If it cannot be read further, `final` is true, `broken`
    says why, and `lost` stored bytes are lost.
    """

    def __init__(self, source: Source, base: int, block: int, stop: int = END) -> None:
        self.base = base
        self.data = memoryview(b"")
        self.final = False
        self.broken = ""
        self.lost = 0
        self.source = source
        self._block = block
        self._stop = stop
        self._buffer = memoryview(b"")  # used again and again: batches are copies

    @property
    def end(self) -> int:
        """The position after the last byte in memory."""
        return self.base + len(self.data)

    def advance(self, used: int) -> None:
        """Drop the first `used` bytes, and read more after the rest.

        At least as much as the rest is read, so that a long record is not copied again and again.
        """
        rest = self.data[used:]
        if used and not rest:
            self._block = max(self._block, min(2 * self._block, _MAX_GROWN))
        ahead = max(0, self._stop - self.end) + _BEYOND_STOP
        room = len(rest) + max(min(self._block, ahead), len(rest))
        if room > len(self._buffer):
            self._buffer = np.empty(max(room, 2 * self._block), np.uint8).data
        buffer = self._buffer[:room]
        buffer[: len(rest)] = rest
        count, error = fill(self.source, buffer[len(rest) :])
        if error is not None:
            self.broken, self.lost = str(error), error.lost
        self.base += used
        self.data = buffer[: len(rest) + count]
        self.final = len(self.data) < room

    def bytes(self, start: int, end: int) -> bytes:
        """Return the bytes between two positions, as far as they are in memory."""
        return bytes(self.data[start - self.base : end - self.base])


class SliceReader(ABC):
    """The reader of the records of one slice.

    Positions are bytes of the decompressed file. In a slice that starts in the middle of a
    compressed file these positions are unknown: there they count from the slice's first unit, which
    begins at the stored byte `unit`; else `unit` is None. The next record begins at `next`.
    """

    def __init__(self, request: SliceRequest, base: int, overlap: int) -> None:
        self.request = request
        self._base = base
        self._overlap = overlap
        self._loss_reported = False

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the slice, and report its boundaries if they are speculative."""
        request = self.request
        source = request.open(self._base)
        if source is None:
            return
        with contextlib.closing(source):
            stop, block = END, request.batch_bytes
            if request.plain:
                # no longer than the file, so that ten thousand tiny files cost little
                stop, block = request.end, min(block, request.file.size + 1)
            self.buffer = FileBuffer(source, self._base, max(block, _MIN_BLOCK), stop)
            self.unit = None
            if request.start and not isinstance(source, Stored):
                self.unit = source.first
            self.buffer.advance(0)
            first = self._first_start()
            begins = self.next = self.buffer.end if first is None else first
            if first is not None:
                yield from self._batches()
            if is_speculative(request.file) and not request.whole:
                request.on_boundaries(self._boundaries(begins))

    @abstractmethod
    def _first_start(self) -> int | None:
        """Return the position of the slice's first record; None if it has none."""

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the records from `next` on, and move `next` past them."""

    @property
    def stop(self) -> int:
        """The position at which the records of the next slice begin."""
        request, source = self.request, self.buffer.source
        if isinstance(source, Stored):
            end = request.end if request.end < request.file.size else None
        else:
            end = source.boundary
        return END if end is None else end + self._overlap

    def _boundaries(self, begins: int) -> Boundaries:
        request, source, ends = self.request, self.buffer.source, None
        if isinstance(source, Stored):
            first = Position(0, begins)
            if request.end < request.file.size:
                ends = Position(0, self.next)
        else:
            first = Position(source.first, begins)
            if source.boundary is not None:
                ends = Position(source.boundary_unit, self.next - source.boundary)
        broken = bool(self.buffer.broken)
        return Boundaries(request.number, request.start, request.end, first, ends, broken)

    def _check_position(self) -> None:
        if self.next >= MAX_FILE_BYTES:
            problem = f"the decompressed size must be at most {MAX_FILE_BYTES:,} bytes"
            raise DataError(f"{self.request.file.name}: {problem}")

    def _separator_end(
        self, separator: bytes, search: int, at_least: int = 0, until: int = END
    ) -> int | None:
        """Return the position after the first separator, `at_least` or more; drop searched bytes.

        Returns None if the file ends before it, or if the search reaches `until`. A file with an
        empty separator has none.
        """
        buffer = self.buffer
        while True:
            searched = len(buffer.data)
            if separator:
                end, searched = _native.separator_end(
                    buffer.data, separator, search - buffer.base, max(0, at_least - buffer.base)
                )
                if end >= 0:
                    return buffer.base + int(end)
            search = buffer.base + searched
            if buffer.final or search >= until:
                return None
            buffer.advance(searched)

    def _reject(
        self, begin: int, reason: RejectReason, detail: str, *data: Any, **position: Any
    ) -> None:
        """Reject a record by its position; see `Reject.of`."""
        self.request.reject(reason, detail, *data, offset=begin, unit=self.unit, **position)

    def _reject_rest(
        self, data: bytes | memoryview = b"", total: int | None = None, line: int | None = None
    ) -> None:
        """Report the rest of a broken stream, from `next` on, as lost; once."""
        if not self._loss_reported:
            self._loss_reported = True
            reason, why, lost = RejectReason.BROKEN_STREAM, self.buffer.broken, self.buffer.lost
            self._reject(self.next, reason, why, data, total, line=line, lost_bytes=lost)


class Gatherer:
    """Keeps documents of a slice until there are enough for a batch."""

    def __init__(self, request: SliceRequest) -> None:
        self._request = request
        self._rows: list[tuple[str | None, str, int | None, bytes]] = []
        self._size = 0

    def add(
        self, name: str | None, source: str, offset: int | None, text: bytes
    ) -> Iterator[pa.RecordBatch]:
        """Add a document, and yield a batch if it is full."""
        request = self._request
        place = None if offset is None else request.number << PLACE_BITS | offset
        self._rows.append((name, source, place, text))
        self._size += len(text) + len(name or "") + len(source)
        if self._size >= request.batch_bytes or len(self._rows) >= request.max_rows:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield a batch of the remaining documents, if there are any."""
        if self._rows:
            names, sources, places, texts = zip(*self._rows, strict=True)
            self._rows, self._size = [], 0
            columns = [
                pa.array(names, pa.large_string()),
                pa.array(sources, pa.large_string()),
                pa.array(places, pa.uint64()),
                pa.array(texts, pa.large_binary()).view(pa.large_string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)
