"""Text and JSON Lines: records between separators, cut out of a window by native code.

A window of a file is read, cut into records and checked by one native call with the GIL released,
so that threads scale and no Python object is made for a record; Python sees batches and rejects.

A record belongs to the slice in which it begins, so any way to cut a file gives the same documents.
Memory: a few times `batch_bytes`, and some three times the longest record. A record of over
MAX_RECORD_BYTES is a reject, of which only the beginning is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import (
    BATCH_SCHEMA,
    MAX_RECORD_BYTES,
    PLACE_BITS,
    strings,
)
from bpe_beam.corpus.losses import Loss
from bpe_beam.corpus.plan import MAX_FILE_BYTES
from bpe_beam.corpus.reading.window import BOM, END, UTF_16, Window
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, RejectReason
from bpe_beam.corpus.slices import Boundaries, Position, SliceRequest
from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

CutRecords = Callable[[memoryview, tuple[int, int, int, bool, int, int], str | None, int], Any]
"""Cuts records out of a window by native code: the window's bytes; where to begin, to search and to
stop in it, whether the file ends there, the most records, the most bytes of one; the prefix of ids,
None without ids; the window's offset in the file."""


def read_records(
    request: SliceRequest, separator: bytes, cut_records: CutRecords
) -> Iterator[pa.RecordBatch]:
    """Yield the records that begin in a slice of a file of separated records.

    Args:
        request: The slice.
        separator: What ends a record; empty: the file is one record.
        cut_records: Cuts records of the format.
    """
    file = request.file
    search = 0
    if request.start and file.compression == "none":
        search = _place_to_search_from(
            request.storage, request.url, file.size, separator, request.start
        )
    source = request.open(search)
    if source is None:
        return
    with contextlib.closing(source):
        # no longer than the file, so that ten thousand tiny files cost little
        block = request.batch_bytes
        if file.compression == "none":
            block = min(block, file.size + 1)
        reader = _SliceReader(
            request=request,
            window=Window(source, search, max(block, 4 * len(separator), 16)),
            separator=separator,
            cut_records=cut_records,
            name=file.name,
            max_rows=request.max_rows,
        )
        yield from reader.read()


def _place_to_search_from(
    storage: Storage, url: str, size: int, separator: bytes, start: int
) -> int:
    """A place in a plain file from which a search for separators finds every one that ends at
    `start` or later and that a search from the file's start would take.

    Separators that cannot overlap are found from wherever one begins. Of those that can, which ones
    are taken depends on what stands before, back to a gap that none lies across: usually the very
    place, but a file of newlines only is read back to its start, in blocks of bounded size.
    """
    high = max(0, start - len(separator))
    if high < len(BOM):
        return 0  # where a byte order mark would be seen
    if not any(separator.startswith(separator[i:]) for i in range(1, len(separator))):
        return high
    block = max(4 << 10, 8 * len(separator))
    high = start - 1
    while high > 0:
        low = max(0, high - block)
        with contextlib.closing(Stored(storage, url, size, low)) as source:
            data = _read_exactly(source, high - low)
        gap = _native.last_gap(data, separator)
        if gap >= 0:
            return low + int(gap)
        if low == 0:
            break
        # the places that could not be judged in this block are judged in the next
        high = low + 2 * len(separator) - 2
        block = min(2 * block, 1 << 20)
    return 0


def _read_exactly(source: Stored, count: int) -> memoryview:
    view = memoryview(bytearray(count))
    filled = 0
    while filled < count:
        filled += source.readinto(view[filled:])
    return view


@dataclass
class _SliceReader:
    """Reads the records that begin in one slice.

    Places are those of the decompressed file; in a slice that begins in the middle of a compressed
    file, where nobody knows them, they count from the slice's first unit, and the record in which
    that unit begins, or that begins there, is the slice's before.
    """

    request: SliceRequest
    window: Window
    separator: bytes  # empty: the file is one record
    cut_records: CutRecords
    name: str
    max_rows: int

    def __post_init__(self) -> None:
        request = self.request
        self.speculative = request.file.compression != "none" and not request.whole
        self.in_the_middle = self.speculative and request.start > 0
        # Lines have numbers where all of them pass by.
        self.line = 1 if self.separator == b"\n" and not request.start else None
        self.unit = self.window.source.first if self.in_the_middle else None
        self.id_prefix: str | None = None
        if self.unit is not None:
            # Where there is no place, an id is all that names a record.
            self.id_prefix = f"{self.name}:{self.unit}+"
        elif not request.only_text:
            self.id_prefix = f"{self.name}:"

    @property
    def stop(self) -> int:
        """Records that begin here or later are the next slice's."""
        if self.speculative:
            boundary = self.window.source.boundary
            return END if boundary is None else boundary + 1
        return self.request.end if self.request.end < self.request.file.size else END

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the slice, and reports its boundaries if they are speculative."""
        self.window.advance(0)
        begins = self.next = self._first_start()
        yield from self._batches()
        if self.speculative:
            self._report(begins)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        window = self.window
        search = 0
        while self.next is not None and self.next < self.stop:
            start = self.next
            if start >= MAX_FILE_BYTES:
                raise DataError(f"{self.name}: it decompresses to over {MAX_FILE_BYTES} bytes")
            batch, passed, self.next, search = self._cut(start, max(start, search))
            if batch is not None:
                yield batch
            if passed and not self.separator:
                return
            if passed == self.max_rows or self.next >= self.stop:
                continue
            # What is left here is a part of a record.
            start = self.next
            if window.final:
                if window.broken:
                    self._reject_rest(start, bytes(window.data[start - window.base :]))
                return
            if len(window.data) - (start - window.base) > MAX_RECORD_BYTES + len(self.separator):
                self.next = self._pass_over(start, search)
            else:
                window.advance(start - window.base)

    def _report(self, begins: int | None) -> None:
        """Tells where the slice's records began and where the next slice's must."""
        window, request = self.window, self.request
        source = window.source
        end = window.base + len(window.data)
        ends = None
        if source.boundary is not None:
            reached = end if self.next is None else self.next
            ends = Position(source.boundary_unit, reached - source.boundary)
        request.on_boundaries(
            Boundaries(
                request.number,
                request.start,
                request.end,
                Position(source.first, end if begins is None else begins),
                ends,
                broken=bool(window.broken),
            )
        )

    def _first_start(self) -> int | None:
        """Where the slice's first record begins."""
        window = self.window
        if self.in_the_middle:
            return self._next_start(0, 1, END)
        first = window.base
        if not first:
            if bytes(window.data[:2]) in UTF_16:
                raise DataError(
                    f"{self.request.file.name} begins with the byte order mark of UTF-16: text "
                    "must be UTF-8; convert the file (iconv -f utf-16 -t utf-8), or leave it out "
                    "(--exclude)"
                )
            if window.data[: len(BOM)] == BOM:
                first = len(BOM)
            if self.request.start <= first:
                return first
        return self._next_start(first, self.request.start, self.stop)

    def _next_start(self, search: int, at_least: int, until: int) -> int | None:
        """The first end of a separator at `at_least` or later; None if the file ends before, or
        the search comes to `until`. Keeps nothing in memory of what it passes."""
        window = self.window
        while True:
            end = -1
            if self.separator:
                end, found = _native.separator_end(
                    window.data,
                    self.separator,
                    search - window.base,
                    max(0, at_least - window.base),
                )
                search = window.base + found
            else:
                search = window.base + len(window.data)
            if end >= 0:
                return window.base + int(end)
            if window.final or search >= until:
                return None
            window.advance(search - window.base)

    def _cut(self, start: int, search: int) -> tuple[pa.RecordBatch | None, int, int, int]:
        """Takes the whole records that the window holds from `start` on.

        Returns:
            (their batch, how many records passed, where the next one begins, where to search on)
        """
        window = self.window
        base = window.base
        where = (
            start - base,
            search - base,
            self.stop - base,
            window.final and not window.broken,
            self.max_rows,
            MAX_RECORD_BYTES,
        )
        cut = self.cut_records(window.data, where, self.id_prefix, base)
        texts, text_ends, ids, id_ends, has_id, named, named_ends, starts, bad = cut[:-3]
        start, search, passed = cut[-3:]
        for begin, end, flaw, position, index in bad.tolist():
            reason = RejectReason(_native.RECORD_FLAWS[flaw])
            detail = f"at byte {position} of the record"
            if reason is RejectReason.FIELD_MISSING:
                detail = f"no {self.request.settings.text_field!r}"
            elif reason is RejectReason.TOO_LONG:
                detail = f"more than {MAX_RECORD_BYTES} bytes"
            line = None if self.line is None else self.line + index
            self._reject(base + begin, line, reason, detail, window.data[begin:end])
        if self.line is not None:
            self.line += passed
        batch = None
        if len(starts):
            rows = len(starts)
            columns = [
                strings(ids, id_ends, has_id)
                if len(id_ends) > 1
                else pa.nulls(rows, pa.large_string()),
                strings(named, named_ends) if len(named_ends) > 1 else self._source(rows),
                self._places(starts + base),
                strings(texts, text_ends),
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)
        return batch, passed, base + start, base + search

    def _pass_over(self, start: int, search: int) -> int | None:
        """Rejects a record that is too long to be kept; returns where the next one begins."""
        window = self.window
        head = bytes(window.data[start - window.base :][:MAX_REJECT_BYTES])
        after = self._next_start(search, 0, END)
        end = window.base + len(window.data) if after is None else after - len(self.separator)
        if after is None and window.broken:
            self._reject_rest(start, head, end - start)
            return None
        detail = f"more than {MAX_RECORD_BYTES} bytes"
        self._reject(start, self.line, RejectReason.TOO_LONG, detail, head, end - start)
        if self.line is not None:
            self.line += 1
        return after

    def _reject_rest(self, start: int, data: bytes, total: int | None = None) -> None:
        """Rejects the unfinished record at a broken stream's end, and all that is lost behind."""
        detail = self.window.broken
        lost = Loss.of(self.window.lost)
        self._reject(start, self.line, RejectReason.BROKEN_STREAM, detail, data, total, lost)

    def _reject(
        self,
        offset: int,
        line: int | None,
        reason: RejectReason,
        detail: str,
        data: bytes | memoryview,
        total: int | None = None,
        lost: Loss | None = None,
    ) -> None:
        self.request.reject(
            reason, detail, data, total, offset=offset, line=line, unit=self.unit, lost=lost
        )

    def _source(self, rows: int) -> pa.Array:
        request = self.request
        if request.only_text and not request.settings.names_sources:
            return pa.nulls(rows, pa.large_string())
        return pa.repeat(pa.scalar(request.source, pa.large_string()), rows)

    def _places(self, offsets: np.ndarray[Any, Any]) -> pa.Array:
        if self.in_the_middle:
            return pa.nulls(len(offsets), pa.uint64())
        return pa.array(offsets.astype(np.uint64) | np.uint64(self.request.number << PLACE_BITS))
