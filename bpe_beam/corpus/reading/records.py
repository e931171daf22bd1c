"""Records of a buffer, split by native code: lines of text and JSON Lines, rows of CSV.

A buffer of a file is read, split into records and checked by one native call with the GIL released,
so that threads scale and no Python object is made for a record; Python sees batches and rejects.

Memory: a few times `batch_bytes`, and some three times the longest record. A record of over
MAX_RECORD_BYTES is a reject; only its beginning is kept.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import BATCH_SCHEMA, MAX_RECORD_BYTES, PLACE_BITS, integers, strings
from bpe_beam.corpus.reading.slice_reader import BOM, SliceReader
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, RejectReason
from bpe_beam.corpus.slices import SliceRequest

BufferPositions = tuple[int, int, int, bool, int, int]
"""The positions in a buffer at which to begin, to search and to stop; whether the file ends with
the buffer; the maximum number of records; the maximum bytes of one."""

_CONSTANT = re.compile(rb"[:,\[\s-]?(NaN|-?Infinity)")

SplitBuffer = Callable[[memoryview, BufferPositions, str | None, int], Any]
"""(the buffer's bytes, positions in it, the prefix of ids or None, its position in the file)
-> its records, split by native code."""


def _json_hint(record: memoryview, position: int) -> str:
    """Return the rest of a detail about broken JSON, if its cause is a usual one."""
    if bytes(record[: len(BOM)]) == BOM:
        return ", it begins with a byte order mark, as files do that were joined"
    constant = _CONSTANT.match(record[max(0, position - 1) : position + len("-Infinity")])
    return f", {constant[1].decode()} is not JSON; write null" if constant else ""


def read_records(
    request: SliceRequest, separator: bytes, split_buffer: SplitBuffer
) -> Iterator[pa.RecordBatch]:
    start = request.start if request.plain else 0
    base = _search_start(request, separator) if start else 0
    reader = RecordReader(request, base, separator, split_buffer, overlap=0 if request.plain else 1)
    # Lines have numbers where all of them are read.
    reader.line = 1 if separator == b"\n" and not request.start else None
    yield from reader.read()


def _search_start(request: SliceRequest, separator: bytes) -> int:
    """Return a position in a plain file from which to search for the separators of a slice.

    If separators cannot overlap, any position will do. If they can, the bytes before decide which
    ones count, back to a position that no separator lies across: usually the next one, but a file
    of newlines only is read back to its start, in blocks of bounded size.
    """
    high = max(0, request.start - len(separator))
    if high < len(BOM):
        return 0  # where a byte order mark is recognised
    if not any(separator.startswith(separator[i:]) for i in range(1, len(separator))):
        return high
    block = max(4 << 10, 8 * len(separator))
    high = request.start - 1
    while high > 0:
        low = max(0, high - block)
        with contextlib.closing(request.open_stored(low)) as stored:
            data = stored.read(high - low)
        gap = _native.last_gap(data, separator)
        if gap >= 0:
            return low + int(gap)
        if low == 0:
            break
        # the positions that could not be judged in this block are judged in the next
        high = low + 2 * len(separator) - 2
        block = min(2 * block, 1 << 20)
    return 0


class RecordReader(SliceReader):
    line: int | None = None
    """The number of the next line, from 1; None if it is not known."""

    def __init__(
        self,
        request: SliceRequest,
        base: int,
        separator: bytes,
        split_buffer: SplitBuffer,
        *,
        overlap: int,
    ) -> None:
        super().__init__(request, base, overlap)
        self._separator = separator
        self._split_buffer = split_buffer

    def _first_start(self) -> int | None:
        buffer, start = self.buffer, self.request.start
        if self.unit is not None:
            return self._separator_end(self._separator, 0, 1)
        first = buffer.base
        if not first:
            first = len(BOM) if buffer.data[: len(BOM)] == BOM else 0
            if start <= first:
                return first
        return self._separator_end(self._separator, first, start, self.stop)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        buffer, max_rows = self.buffer, self.request.max_rows
        search = 0
        while self.next < self.stop:
            self._check_position()
            batch, passed, search = self._split(max(self.next, search))
            if batch is not None:
                yield batch
            if passed and not self._separator:
                return  # the file is one record
            if passed == max_rows or self.next >= self.stop:
                continue
            # The rest is the beginning of a record.
            if buffer.final:
                if buffer.broken:
                    self._reject_rest(buffer.bytes(self.next, buffer.end), line=self.line)
                return
            if buffer.end - self.next > MAX_RECORD_BYTES + len(self._separator):
                self._pass_over(search)
                if not self._separator:
                    return
            else:
                buffer.advance(self.next - buffer.base)

    def _split(self, search: int) -> tuple[pa.RecordBatch | None, int, int]:
        """Return the batch of the buffer's complete records, and move `next` past them.

        Also returns the number of these records, and the position at which the search continues.
        """
        buffer, request = self.buffer, self.request
        base = buffer.base
        where = (
            self.next - base,
            search - base,
            self.stop - base,
            buffer.final and not buffer.broken,
            request.max_rows,
            MAX_RECORD_BYTES,
        )
        id_prefix = None if request.only_text else f"{request.file.name}:"
        if self.unit is not None:  # without a position, only the id names a record
            id_prefix = f"{request.file.name}:{self.unit}+"
        records = self._split_buffer(buffer.data, where, id_prefix, base)
        *columns, starts, bad, start, search, passed = records
        for begin, end, flaw, position, index in bad.tolist():
            reason = RejectReason(_native.RECORD_FLAWS[flaw])
            line = None if self.line is None else self.line + index
            detail = self._detail(reason, position)
            if reason is RejectReason.BROKEN_JSON:
                detail += _json_hint(buffer.data[begin:end], position)
            self._reject(base + begin, reason, detail, buffer.data[begin:end], line=line)
        if self.line is not None:
            self.line += passed
        self.next = base + start
        return self._batch(columns, base, starts), passed, base + search

    def _detail(self, reason: RejectReason, position: int) -> str:
        if reason is RejectReason.FIELD_MISSING:
            return f"no {self.request.settings.text_field!r}"
        if reason is RejectReason.TOO_LONG:
            return f"more than {MAX_RECORD_BYTES} bytes"
        return f"at byte {position} of the record"

    def _batch(
        self, columns: list[np.ndarray[Any, Any]], base: int, starts: np.ndarray[Any, Any]
    ) -> pa.RecordBatch | None:
        """Return the batch of the columns of text, id and source; None if they are empty."""
        texts, text_ends, ids, id_ends, has_id, sources, source_ends = columns
        rows = len(starts)
        if not rows:
            return None
        request = self.request
        unnamed = request.only_text and not request.settings.names_sources
        source = pa.scalar(None if unnamed else request.source, pa.large_string())
        places = (starts + base).astype(np.uint64) | np.uint64(request.number << PLACE_BITS)
        arrays = [
            strings(ids, id_ends, has_id)
            if len(id_ends) > 1
            else pa.nulls(rows, pa.large_string()),
            strings(sources, source_ends) if len(source_ends) > 1 else pa.repeat(source, rows),
            integers(places) if self.unit is None else pa.nulls(rows, pa.uint64()),
            strings(texts, text_ends),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=BATCH_SCHEMA)

    def _pass_over(self, search: int) -> None:
        """Reject a record that is too long to be kept, and move `next` past it."""
        buffer, start = self.buffer, self.next
        head = buffer.bytes(start, start + MAX_REJECT_BYTES)
        after = self._separator_end(self._separator, search)
        if after is None and buffer.broken:
            self._reject_rest(head, buffer.end - start, self.line)
            self.next = buffer.end
            return
        self.next = buffer.end if after is None else after
        size = self.next - start - (0 if after is None else len(self._separator))
        reason = RejectReason.TOO_LONG
        self._reject(start, reason, self._detail(reason, 0), head, size, line=self.line)
        if self.line is not None:
            self.line += 1
