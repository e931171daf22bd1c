"""CSV and TSV: records in which newlines may stand within quotes, with a header that names columns.

The format is RFC 4180's, for TSV with tabs (as spreadsheets and pandas write it): lines end with a
newline, a carriage return before it belongs to it, quotes within quotes are doubled. Lines with
nothing in them are no records. `native/read/csv.hpp` does the work and says how quotes are
read that make no sense. In MB/s of quoted English by one thread (documents of 200 bytes, then of
25 KB, two busy cores):

    native     398   576
    pyarrow    420   476   ends at a bad row, and tells no record's place
    csv        104   115   holds the GIL, and tells no record's place

A slice in the middle cannot know whether it begins within quotes. It takes the first newline behind
its start for the end of a record after which so many records as are tried have as many columns as
the header; it reports its boundaries, and the job proves that the slices are contiguous. A record
belongs to the slice before if it begins at the very end.

Memory: a few times `batch_bytes`, and some three times the longest record, which an unclosed quote
makes long: up to MAX_RECORD_BYTES are read before it is given up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import BATCH_SCHEMA, MAX_RECORD_BYTES, PLACE_BITS, strings
from bpe_beam.corpus.losses import Loss
from bpe_beam.corpus.plan import MAX_FILE_BYTES
from bpe_beam.corpus.read_settings import OTHER_SOURCE
from bpe_beam.corpus.reading.window import BOM, END, Window
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, RejectReason
from bpe_beam.corpus.slices import Boundaries, Position, SliceRequest
from bpe_beam.errors import DataError

MAX_HEADER_BYTES = 16 << 20
"""The header of a file has fewer bytes."""

_TRIED_BYTES = 16 << 20


def read_delimited(request: SliceRequest, delimiter: str) -> Iterator[pa.RecordBatch]:
    """Yield the documents that begin in a slice of a CSV or TSV file.

    Args:
        request: The slice.
        delimiter: What stands between two fields, one character.

    Raises:
        DataError: Storage fails, the file is not as long as planned, has a header that is not one,
            or no column of texts.
    """
    header = _Header.read(request, delimiter)
    if header is None:
        return
    source = request.open(request.start)
    if source is None:
        return
    with contextlib.closing(source):
        block = request.batch_bytes
        if request.file.compression == "none":
            block = min(block, request.file.size + 1)
        window = Window(source, request.start, max(block, 16))
        yield from _Reader(request, window, header, delimiter).read()


class _Header:
    """What the first record says.

    Attributes:
        columns: How many there are.
        taken: The numbers of those with text, id and source; -1 if there is none.
        end: Where the record behind it begins.
    """

    def __init__(self, request: SliceRequest, fields: list[bytes], end: int) -> None:
        names = [field.decode("utf-8", "replace") for field in fields]
        self.end = end
        self.columns = len(names)
        # the last of equal names
        numbers: dict[tuple[str, ...], int] = {(name,): number for number, name in enumerate(names)}
        self.taken = [numbers.get(path, -1) for path in request.settings.paths]
        if self.taken[0] < 0:
            raise DataError(
                f"--text-field {request.settings.text_field!r} names no column in "
                f"{request.file.name}; it has {', '.join(map(repr, names))[:1000]}. A dot that "
                r"is part of a name is written \."
            )

    @staticmethod
    def read(request: SliceRequest, delimiter: str) -> _Header | None:
        """The header of a file; None if it has nothing but empty lines."""
        source = request.open()
        if source is None:
            return None
        with contextlib.closing(source):
            window = Window(source, 0, 64 << 10)
            window.advance(0)
            while True:
                data = window.data
                start = len(BOM) if data[: len(BOM)] == BOM else 0
                start += len(bytes(data[start:])) - len(bytes(data[start:]).lstrip(b"\r\n"))
                if window.final and start == len(data) and not window.broken:
                    return None
                final = window.final and not window.broken
                found = _native.csv_fields(data, start, final, delimiter)
                if found is not None:
                    return _Header(request, *found)
                if window.broken:
                    lost = Loss.of(request.file.size)
                    request.reject(
                        RejectReason.BROKEN_STREAM, window.broken, data, lost=lost, offset=0
                    )
                    return None
                if window.final or len(data) >= MAX_HEADER_BYTES:
                    raise DataError(
                        f"{request.file.name}: its first record, which should name the columns, "
                        f"has broken quotes or more than {MAX_HEADER_BYTES} bytes"
                    )
                window.advance(0)


class _Reader:
    """Reads the records of one slice."""

    def __init__(
        self, request: SliceRequest, window: Window, header: _Header, delimiter: str
    ) -> None:
        self.delimiter = delimiter
        self.request = request
        self.window = window
        self.header = header
        at_end = request.end == request.file.size
        # in a compressed file, which is never cut, places are of what it decompresses to
        self.stop = END if at_end else request.end + 1

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the slice, and reports its boundaries if they are speculative."""
        request = self.request
        self.window.advance(0)
        begins = self.header.end
        if request.start:
            begins = max(begins, self._speculative_start())
        self.next = begins
        yield from self._batches()
        if not request.whole:
            ends = None if self.stop == END else Position(0, self.next)
            request.on_boundaries(
                Boundaries(request.number, request.start, request.end, Position(0, begins), ends)
            )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        window, request = self.window, self.request
        while self.next < self.stop:
            while self.next > window.base + len(window.data) and not window.final:
                window.advance(len(window.data))
            if self.next >= MAX_FILE_BYTES:
                raise DataError(
                    f"{request.file.name}: it decompresses to over {MAX_FILE_BYTES} bytes"
                )
            batch, passed = self._cut()
            if batch is not None:
                yield batch
            if passed == request.max_rows or self.next >= self.stop:
                continue
            # What is left here is a part of a record.
            start = self.next - window.base
            if window.final:
                if window.broken:
                    rest = window.data[start:]
                    lost = Loss.of(window.lost)
                    request.reject(
                        RejectReason.BROKEN_STREAM, window.broken, rest, lost=lost, offset=self.next
                    )
                return
            if len(window.data) - start > MAX_RECORD_BYTES + 1:
                self._give_up()
            else:
                window.advance(start)

    def _cut(self) -> tuple[pa.RecordBatch | None, int]:
        """Takes the whole records that the window holds; returns them, and how many passed."""
        window, request, header = self.window, self.request, self.header
        base = window.base
        cut = _native.csv_records(
            window.data,
            self.next - base,
            self.stop - base,
            window.final and not window.broken,
            request.max_rows,
            MAX_RECORD_BYTES,
            self.delimiter,
            header.columns,
            header.taken,
            OTHER_SOURCE,
        )
        texts, text_ends, ids, id_ends, has_id, named, named_ends, starts, bad = cut[:-3]
        self.next, passed = base + cut[-3], cut[-1]
        for begin, end, flaw, position, _ in bad.tolist():
            reason = RejectReason(_native.RECORD_FLAWS[flaw])
            detail = f"at byte {position} of the record"
            if reason is RejectReason.WRONG_COLUMNS:
                detail = f"{position}, the header has {header.columns}"
            elif reason is RejectReason.TOO_LONG:
                detail = f"more than {MAX_RECORD_BYTES} bytes"
            request.reject(reason, detail, window.data[begin:end], offset=base + begin)
        if not len(starts):
            return None, passed
        sources = pa.repeat(pa.scalar(request.source, pa.large_string()), len(starts))
        columns = [
            strings(ids, id_ends, has_id),
            strings(named, named_ends) if len(named_ends) > 1 else sources,
            self._places(starts + base),
            strings(texts, text_ends),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA), passed

    def _speculative_start(self) -> int:
        """Where the first record behind the slice's start seems to begin."""
        window, request = self.window, self.request
        while True:
            final = window.final or len(window.data) > _TRIED_BYTES
            place = _native.find_csv_record(
                window.data, 0, final, self.delimiter, self.header.columns
            )
            if place >= 0:
                return window.base + place
            if final:
                return self._pass_newline(request.start)
            window.advance(0)

    def _give_up(self) -> None:
        """Rejects the first line of a record that is too long to be kept, and goes on behind it."""
        window = self.window
        begin = self.next
        head = bytes(window.data[begin - window.base :][:MAX_REJECT_BYTES])
        self.next = self._pass_newline(begin)
        detail = f"more than {MAX_RECORD_BYTES} bytes, or an unclosed quote"
        size = max(0, self.next - 1 - begin)
        self.request.reject(RejectReason.TOO_LONG, detail, head, size, offset=begin)

    def _pass_newline(self, place: int) -> int:
        """The place behind the first newline at `place` or later, or the file's end. Keeps nothing
        in memory of what it passes."""
        window = self.window
        while True:
            end, found = _native.separator_end(window.data, b"\n", place - window.base, 0)
            if end >= 0:
                return window.base + int(end)
            place = window.base + len(window.data)
            if window.final:
                return place
            window.advance(found)

    def _places(self, offsets: np.ndarray[Any, Any]) -> pa.Array:
        return pa.array(offsets.astype(np.uint64) | np.uint64(self.request.number << PLACE_BITS))
