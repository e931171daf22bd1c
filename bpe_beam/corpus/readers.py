"""A split of the plan to Arrow batches of documents: text and JSON Lines.

A window of a file is read, cut into records and checked by one native call with the GIL released,
so that threads scale and no Python object is made for a record; Python sees batches and rejects.

JSON Lines go through a parser of our own (`native/jsonl.hpp`): one path, so that no answer depends
on which parser met a line. The figures behind that, in MB/s for one thread and for two at once (two
shared cores, blocks of 4 MB, English; documents of 200 bytes, then of 25 KB):

    native     870  1310     1240  2440
    pyarrow    350   650      610   910   for a bad line it fails the block, which needs another way
    orjson     245   270      620   650   holds the GIL
    json        57    68      350   350   holds the GIL

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
from bpe_beam.corpus.plan import (
    MAX_FILE_BYTES,
    WHOLE_FILE,
    Plan,
    Slice,
    Split,
    check_document_separator,
    check_input_format,
)
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, Reject
from bpe_beam.corpus.streams import BrokenStream, Source, open_source
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage

BATCH_SCHEMA = pa.schema(
    [
        ("id", pa.large_string()),
        ("source", pa.large_string()),
        ("place", pa.uint64()),
        ("text", pa.large_string()),
    ]
)
"""A batch of documents: the id, null if it has none; the file's name; the place; the text. The
place is the file's number in the plan << 44 | the byte of the decompressed file at which the record
begins: it orders documents as they stand in the corpus."""

MAX_RECORD_BYTES = (1 << 31) - 1
"""A record of more bytes as it stands in the file is a reject."""

PLACE_BITS = 44
_MAX_BATCH_ROWS = 1 << 16
_BOM = b"\xef\xbb\xbf"
_END = 1 << 62
_BEYOND_STOP = 64 << 10
_BROKEN = "broken compressed stream"
_TOO_LONG = "record too long"


@dataclass(frozen=True)
class ReadSettings:
    r"""How files become documents.

    Attributes:
        input_format: "text", "jsonl", or "auto" (by the file's name).
        text_field: The field of a JSON line that holds the text.
        id_field: The field that holds the id, a string or a number; it may be missing.
        document_separator: What ends a document of a text file. With the default, a newline, a
            `\r` before it is not part of the document either. "file": each file is a document.
        source_field: The field of a JSON line that names the document's source; or
        sources: (name, glob) of sources by files' names in the plan: the first that matches.

    Raises:
        UsageError: A setting cannot work.
    """

    input_format: str = "auto"
    text_field: str = "text"
    id_field: str = "id"
    document_separator: str = "\n"
    source_field: str | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_input_format(self.input_format)
        check_document_separator(self.document_separator)
        for option, value in (("text-field", self.text_field), ("id-field", self.id_field)):
            if not isinstance(value, str) or not value:
                raise UsageError(f"{option} is {value!r}; it must be the name of a field")
            try:
                value.encode()
            except UnicodeEncodeError:
                raise UsageError(f"{option} is {value!r}, which is not text") from None


def read_split(
    storage: Storage,
    plan: Plan,
    split: Split,
    settings: ReadSettings,
    on_reject: Callable[[Reject], None],
    *,
    batch_bytes: int = 4 << 20,
) -> Iterator[pa.RecordBatch]:
    r"""Reads the documents that begin in a split.

    Text: a record ends at the separator or at the file's end; the last separator opens no empty
    record behind it, all other empty records are documents. Separators are found from left to
    right from the file's start, also where they could overlap (`\n\n` in `\n\n\n`). The id is
    `<file's name>:<offset>`.
    JSON Lines: the last of equal keys counts; a number as id is its JSON text; blank lines are no
    records. In both, a UTF-8 byte order mark at a file's start is no part of a record.

    Args:
        storage: The door to storage.
        plan: The plan.
        split: One of its splits.
        settings: How files become documents; the formats are the plan's.
        on_reject: Called for each record that cannot be used, in the order of the file between
            the batches: invalid UTF-8, broken or unfit JSON, half a surrogate pair, a record that
            is too long. What is lost of a compressed file that is corrupt or ends too soon is one
            reject.
        batch_bytes: About so many bytes of text are in a batch; smaller files are joined.

    Yields:
        Batches of BATCH_SCHEMA, none of them empty, of at most 65,536 documents.

    Raises:
        DataError: Storage fails, or a file is not as long as it was planned.
    """
    pending: list[pa.RecordBatch] = []
    size = rows = 0
    for piece in split.slices:
        for batch in _read_slice(storage, plan, piece, settings, on_reject, batch_bytes):
            if pending and (
                size + batch.nbytes > batch_bytes or rows + len(batch) > _MAX_BATCH_ROWS
            ):
                yield _join(pending)
                pending, size, rows = [], 0, 0
            pending.append(batch)
            size, rows = size + batch.nbytes, rows + len(batch)
            if size >= batch_bytes // 2:
                yield _join(pending)
                pending, size, rows = [], 0, 0
    if pending:
        yield _join(pending)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _read_slice(
    storage: Storage,
    plan: Plan,
    piece: Slice,
    settings: ReadSettings,
    on_reject: Callable[[Reject], None],
    batch_bytes: int,
) -> Iterator[pa.RecordBatch]:
    file = plan.files[piece.file]
    separator = b"\n" if file.format == "jsonl" else settings.document_separator.encode()
    if file.format == "text" and settings.document_separator == WHOLE_FILE:
        separator = b""
    url = plan.url(piece.file)
    search = 0
    if piece.start:
        search = _place_to_search_from(storage, url, file.size, separator, piece.start)
    with contextlib.closing(
        open_source(storage, url, file.compression, file.size, search)
    ) as source:
        # no longer than the file, so that ten thousand tiny files cost little
        block = batch_bytes if file.compression != "none" else min(batch_bytes, file.size + 1)
        stop = piece.end if piece.end < file.size else _END
        reader = _SliceReader(
            window=_Window(source, search, max(block, 4 * len(separator), 16), stop),
            piece=piece,
            stop=stop,
            name=file.name,
            format=file.format,
            separator=separator,
            settings=settings,
            on_reject=on_reject,
            max_rows=max(1, min(_MAX_BATCH_ROWS, 4 * batch_bytes // (2 * len(file.name) + 64))),
        )
        yield from reader.read()


def _place_to_search_from(
    storage: Storage, url: str, size: int, separator: bytes, start: int
) -> int:
    """A place in a plain file from which a search for separators meets every one that ends at
    `start` or later and that a search from the file's start would take.

    Separators that cannot overlap are met from wherever one begins. Of those that can, which ones
    are taken depends on what stands before, back to a gap that none lies across: usually the very
    place, but a file of newlines only is read back to its start, in blocks of bounded size.
    """
    high = max(0, start - len(separator))
    if high < len(_BOM):
        return 0  # where a byte order mark would be seen
    if not any(separator.startswith(separator[i:]) for i in range(1, len(separator))):
        return high
    block = max(4 << 10, 8 * len(separator))
    high = start - 1
    while high > 0:
        low = max(0, high - block)
        with contextlib.closing(open_source(storage, url, "none", size, low)) as source:
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


def _read_exactly(source: Source, count: int) -> memoryview:
    view = memoryview(bytearray(count))
    filled = 0
    while filled < count:
        filled += source.readinto(view[filled:])
    return view


class _Window:
    """The part of a file that is in memory: its bytes from `base` on.

    Attributes:
        base: The place in the (decompressed) file of the first byte here.
        data: The bytes.
        final: The file ends where these end.
        broken: Why the file cannot be read further, if so; then `final` is true as well.
    """

    def __init__(self, source: Source, base: int, block: int, stop: int) -> None:
        self.base = base
        self.data = memoryview(b"")
        self.final = False
        self.broken = ""
        self._source = source
        self._block = block
        self._stop = stop
        self._buffer = memoryview(b"")  # used again and again: batches hold copies

    def advance(self, used: int) -> None:
        """Drops the first `used` bytes and reads more behind the rest: a block, but little beyond
        `stop`, where only the last record's end is wanted; and as much as is kept, if that is
        more, so that a long record is not copied again and again."""
        kept = self.data[used:]
        ahead = max(0, self._stop - self.base - len(self.data)) + _BEYOND_STOP
        room = len(kept) + max(min(self._block, ahead), len(kept))
        if room > len(self._buffer):
            self._buffer = np.empty(max(room, 2 * self._block), np.uint8).data
        buffer = self._buffer[:room]
        buffer[: len(kept)] = kept
        filled = len(kept)
        try:
            while filled < len(buffer):
                count = self._source.readinto(buffer[filled:])
                if not count:
                    self.final = True
                    break
                filled += count
        except BrokenStream as error:
            self.final, self.broken = True, str(error)
        self.base += used
        self.data = buffer[:filled]


@dataclass
class _SliceReader:
    """Reads the records that begin in one slice. Places are those of the decompressed file."""

    window: _Window
    piece: Slice
    stop: int  # records that begin here or later are the next slice's
    name: str
    format: str
    separator: bytes  # empty: the file is one record
    settings: ReadSettings
    on_reject: Callable[[Reject], None]
    max_rows: int

    def __post_init__(self) -> None:
        # Lines have numbers where all of them pass by.
        self.line = 1 if self.separator == b"\n" and not self.piece.start else None

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the slice."""
        window = self.window
        window.advance(0)
        start = self._first_start()
        search = 0
        while start is not None and start < self.stop:
            if start >= MAX_FILE_BYTES:
                raise DataError(f"{self.name}: it decompresses to over {MAX_FILE_BYTES} bytes")
            batch, passed, start, search = self._cut(start, max(start, search))
            if batch is not None:
                yield batch
            if passed and not self.separator:
                return
            if passed == self.max_rows or start >= self.stop:
                continue
            # What is left here is a part of a record.
            if window.final:
                if window.broken:
                    self._reject_rest(start, bytes(window.data[start - window.base :]))
                return
            if len(window.data) - (start - window.base) > MAX_RECORD_BYTES + len(self.separator):
                start = self._pass_over(start, search)
            else:
                window.advance(start - window.base)

    def _first_start(self) -> int | None:
        """Where the slice's first record begins."""
        window = self.window
        first = window.base
        if not first:
            if window.data[: len(_BOM)] == _BOM:
                first = len(_BOM)
            if self.piece.start <= first:
                return first
        return self._next_start(first, self.piece.start, self.stop)

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
        if self.format == "jsonl":
            cut = _native.jsonl_records(
                window.data, *where, self.settings.text_field, self.settings.id_field
            )
        else:
            cut = _native.text_records(window.data, self.separator, *where, f"{self.name}:", base)
        texts, text_ends, ids, id_ends, has_id, starts, bad, start, search, passed = cut
        for begin, end, flaw, position, index in bad.tolist():
            reason = _native.RECORD_FLAWS[flaw]
            detail = f"at byte {position} of the record"
            if reason == "field missing":
                detail = f"no {self.settings.text_field!r}"
            elif reason == _TOO_LONG:
                detail = f"more than {MAX_RECORD_BYTES} bytes"
            line = None if self.line is None else self.line + index
            self.on_reject(
                Reject.of(self.name, base + begin, line, reason, detail, window.data[begin:end])
            )
        if self.line is not None:
            self.line += passed
        batch = None
        if len(starts):
            columns = [
                _strings(ids, id_ends, has_id),
                pa.repeat(pa.scalar(self.name, pa.large_string()), len(starts)),
                pa.array(
                    (starts + base).astype(np.uint64) | np.uint64(self.piece.file << PLACE_BITS)
                ),
                _strings(texts, text_ends),
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)
        return batch, passed, base + start, base + search

    def _pass_over(self, start: int, search: int) -> int | None:
        """Rejects a record that is too long to be kept; returns where the next one begins."""
        window = self.window
        head = bytes(window.data[start - window.base :][:MAX_REJECT_BYTES])
        after = self._next_start(search, 0, _END)
        end = window.base + len(window.data) if after is None else after - len(self.separator)
        if after is None and window.broken:
            self._reject_rest(start, head, end - start)
            return None
        detail = f"more than {MAX_RECORD_BYTES} bytes"
        self.on_reject(Reject.of(self.name, start, self.line, _TOO_LONG, detail, head, end - start))
        if self.line is not None:
            self.line += 1
        return after

    def _reject_rest(self, start: int, data: bytes, total: int | None = None) -> None:
        """Rejects the unfinished record at a broken stream's end, and all that is lost behind."""
        detail = self.window.broken
        self.on_reject(Reject.of(self.name, start, self.line, _BROKEN, detail, data, total))


def _strings(
    data: np.ndarray[Any, Any],
    ends: np.ndarray[Any, Any],
    valid: np.ndarray[Any, Any] | None = None,
) -> pa.Array:
    """A column over the kernel's buffers, without a copy."""
    nulls = None
    if valid is not None and len(valid) and not valid.all():
        nulls = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [nulls, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)
