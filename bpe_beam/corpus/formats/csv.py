"""CSV and TSV: records in which newlines may be within quotes, with a header that names columns.

The format is RFC 4180's, for TSV with tabs (as spreadsheets and pandas write it): lines end with a
newline, a carriage return before it belongs to it, quotes within quotes are doubled. Lines with
nothing in them are no records. `native/read/csv.hpp` splits the records, and says how quotes are
read that make no sense.

A slice in the middle cannot know whether it begins within quotes. It takes the first newline after
its start for the end of a record after which as many records as are tried have as many columns as
the header; it reports its boundaries, and the job proves that the slices are contiguous. A record
belongs to the slice before if it begins at the very end.

Memory: as in `reading/records.py`. An unclosed quote makes a record long: up to MAX_RECORD_BYTES
are read before it is given up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import MAX_RECORD_BYTES
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import OTHER_SOURCE
from bpe_beam.corpus.reading.records import BufferPositions, RecordReader
from bpe_beam.corpus.reading.slice_reader import BOM, FileBuffer
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.errors import DataError

MAX_HEADER_BYTES = 16 << 20
"""The header of a file has fewer bytes."""

_HEADER_BLOCK = 64 << 10
_TRIED_BYTES = 16 << 20


def read_delimited(request: SliceRequest, delimiter: str) -> Iterator[pa.RecordBatch]:
    """Yield the documents that begin in a slice of a CSV or TSV file."""
    header = _read_header(request, delimiter)
    if header is not None:
        yield from _DelimitedReader(request, delimiter, *header).read()


def _read_header(request: SliceRequest, delimiter: str) -> tuple[list[str], int] | None:
    """Return the names of the columns, and the position of the record after the header.

    Returns None for a file of empty lines, and for one that breaks off in its header: a loss.
    """
    source = request.open()
    if source is None:
        return None
    with contextlib.closing(source):
        buffer = FileBuffer(source, 0, _HEADER_BLOCK)
        while not buffer.final:
            buffer.advance(0)
            data = bytes(buffer.data)
            start = len(BOM) if data.startswith(BOM) else 0
            start += len(data) - start - len(data[start:].lstrip(b"\r\n"))
            complete = buffer.final and not buffer.broken
            if complete and start == len(data):
                return None
            header = _native.csv_fields(data, start, complete, delimiter)
            if header is not None:
                fields, end = header
                return [field.decode("utf-8", "replace") for field in fields], end
            if len(data) >= MAX_HEADER_BYTES:
                break
    if buffer.broken:
        reason = RejectReason.BROKEN_STREAM
        request.reject(reason, buffer.broken, data, offset=0, lost_bytes=request.file.size)
        return None
    raise DataError(
        f"{request.file.name}: its first record, which should name the columns, has broken quotes "
        f"or more than {MAX_HEADER_BYTES} bytes"
    )


class _DelimitedReader(RecordReader):
    """The reader of the records of one slice, which has a header of some columns."""

    def __init__(
        self, request: SliceRequest, delimiter: str, names: list[str], header_end: int
    ) -> None:
        super().__init__(request, request.start, b"\n", self._csv_records, overlap=1)
        self._delimiter = delimiter
        self._columns = len(names)
        self._header_end = header_end
        # If a name occurs twice, the last column is used.
        numbers: dict[tuple[str, ...], int] = {(name,): i for i, name in enumerate(names)}
        self._taken = [numbers.get(path, -1) for path in request.settings.paths]
        if self._taken[0] < 0:
            raise DataError(
                f"{request.settings.text_field!r} names no column in {request.file.name}; it has "
                f"{', '.join(map(repr, names))[:1000]}. A dot that is part of a name is written "
                r"\.",
                ("text_field",),
            )

    def _csv_records(
        self, data: memoryview, where: BufferPositions, id_prefix: str | None, base: int
    ) -> Any:
        start, _, stop, final, rows, size = where
        columns = (self._delimiter, self._columns, self._taken, OTHER_SOURCE)
        return _native.csv_records(data, start, stop, final, rows, size, *columns)

    def _first_start(self) -> int:
        buffer = self.buffer
        begins = self._header_end
        if self.request.start:
            begins = max(begins, self._speculative_start())
        while begins > buffer.end and not buffer.final:
            buffer.advance(len(buffer.data))
        return begins

    def _speculative_start(self) -> int:
        """Return where the first record after the slice's start seems to begin."""
        buffer = self.buffer
        while True:
            final = buffer.final or len(buffer.data) > _TRIED_BYTES
            begins = _native.find_csv_record(buffer.data, 0, final, self._delimiter, self._columns)
            if begins >= 0:
                return buffer.base + int(begins)
            if final:
                return self._separator_end(b"\n", self.request.start) or buffer.end
            buffer.advance(0)

    def _detail(self, reason: RejectReason, position: int) -> str:
        if reason is RejectReason.WRONG_COLUMNS:
            return f"{position}, the header has {self._columns}"
        if reason is RejectReason.TOO_LONG:
            return f"more than {MAX_RECORD_BYTES} bytes, or an unclosed quote"
        return super()._detail(reason, position)


FORMAT = InputFormat(
    name="csv", read=partial(read_delimited, delimiter=","), endings=(".csv",), speculative=True
)
