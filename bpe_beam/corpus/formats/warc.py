"""WARC and WET: web archives, whose plain text records are documents.

A record is plain text if its type is `conversion` (all records of a WET file have it) and its
Content-Type, if any, is of text, or if its Content-Type is text/plain. Others are passed over. The
id is WARC-Record-ID; `id_field`, `source_field` and `text_field`, where they are not the defaults,
name other headers. Header names ignore case, values may be folded; Content-Length must be a number,
and a line must end after the block. Bytes that are no record are a reject, up to the next record:
to `WARC/1.` after an empty line.

A slice in the middle begins with the first such position, in a compressed file usually the start of
a unit. A text may contain such a position, too, so the slice reports its boundaries, and the job
proves that the slices are contiguous.

Memory: a few times `batch_bytes`, and some three times the longest text. Records that are passed
over are kept up to 64 MiB, so that records are read that begin within one of a wrong length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from bpe_beam.corpus.batches import MAX_RECORD_BYTES
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import OTHER_SOURCE, ReadSettings
from bpe_beam.corpus.reading.slice_reader import END, Gatherer, SliceReader
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams import Stored
from bpe_beam.errors import UsageError

MAX_HEADER_BYTES = 1 << 20
"""Limit of the headers of a record: they have fewer bytes."""

_KEPT_BYTES = 64 << 20
_MAGIC = b"WARC/1."
_OLD_VERSION = re.compile(rb"(WARC/0\.[0-9]+)\s")
_START = re.compile(rb"\n\r?\n(WARC/1\.)")
_EMPTY_LINE = re.compile(rb"\r?\n\r?\n")
_NO_NEWLINE = re.compile(rb"[^\r\n]")
_LONGEST_MATCH = 10
_SOUND_END = re.compile(rb"(?:\r?\n){2}|[\r\n]*(?:\Z|(?=WARC/1\.))")
_LENGTH = re.compile(r"[0-9]{1,18}")
_DEFAULTS = ReadSettings()


def _check_head(head: bytes) -> None:
    if version := _OLD_VERSION.match(head):
        advice = "convert it to WARC/1.0, with warcio or warctools"
        raise UsageError(f"is {version[1].decode()}, which is not read; {advice}")


class _BrokenHeaderError(Exception):
    """The headers of a record are not reliable."""


class _Headers:
    """The headers of a record: `length` is the size of its block, `is_text` makes it a document."""

    def __init__(self, data: bytes) -> None:
        self._values: dict[str, str] = {}
        try:
            lines = re.sub(rb"\r?\n[ \t]+", b" ", data).decode().split("\n")[1:]
        except UnicodeDecodeError as error:
            raise _BrokenHeaderError(f"invalid UTF-8 at byte {error.start}") from None
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise _BrokenHeaderError(f"a line without a colon: {line[:100]!r}")
            name, value = name.strip().lower(), value.strip()
            if name == "content-length" and self._values.get(name, value) != value:
                raise _BrokenHeaderError("two Content-Lengths")
            self._values[name] = value
        length = self._values.get("content-length")
        if length is None:
            raise _BrokenHeaderError("no Content-Length")
        if not _LENGTH.fullmatch(length):
            raise _BrokenHeaderError(f"Content-Length is {length[:100]!r}")
        self.length = int(length)
        kind = self._values.get("content-type", "").partition(";")[0].strip().lower()
        self.is_text = kind == "text/plain" or (
            self._values.get("warc-type", "").lower() == "conversion"
            and (not kind or kind.startswith("text/"))
        )

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())


class _WarcReader(SliceReader):
    def __init__(self, request: SliceRequest) -> None:
        super().__init__(request, request.start if request.plain else 0, overlap=0)
        self._gatherer = Gatherer(request)
        text, name, self._source_field = (".".join(path) for path in request.settings.paths)
        self._text_field = "" if text == _DEFAULTS.text_field else text
        self._id_field = "WARC-Record-ID" if name == _DEFAULTS.id_field else name

    def _first_start(self) -> int:
        """Return the position of the first record, or of what may be one at the file's start."""
        start = self._skip_newlines(self.buffer.base)
        if not self.request.start or self._is_start(start):
            return start
        return self._find_start(start)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        # A look at the next byte may reach the unit with which the next slice begins.
        while self._has(self.next, 1) and self.next < self.stop:
            self._check_position()
            yield from self._read_record()
        yield from self._gatherer.rest()
        if self.buffer.broken and self.next < self.stop:
            self._reject_rest()

    def _read_record(self) -> Iterator[pa.RecordBatch]:
        """Read the record at `next`, and move `next` past it."""
        begin = self.next
        if not self._is_start(begin):
            reason = RejectReason.NO_WARC_RECORD
            self._resynchronize(begin, begin, reason, "no WARC/1. at its start")
            return
        broken = RejectReason.BROKEN_WARC_HEADER
        limit = begin + MAX_HEADER_BYTES
        empty_line = self._search(_EMPTY_LINE, begin, keep=begin, limit=limit)
        if empty_line is None or self.buffer.base + empty_line.start() >= limit:
            detail = f"it does not end within {MAX_HEADER_BYTES} bytes"
            self._resynchronize(begin, begin, broken, detail)
            return
        headers_end, block = (self.buffer.base + position for position in empty_line.span())
        try:
            headers = _Headers(self.buffer.bytes(begin, headers_end))
        except _BrokenHeaderError as error:
            # the end of its last line may be a part of the empty line before the next record
            self._resynchronize(begin, headers_end, broken, str(error))
            return
        end = block + headers.length
        detail = f"Content-Length is {headers.length}"
        if self.request.plain and end > self.request.file.size:
            self._resynchronize(begin, headers_end, broken, detail)
        elif headers.is_text and headers.length > MAX_RECORD_BYTES:
            self._resynchronize(begin, headers_end, RejectReason.TOO_LONG, detail)
        elif not headers.is_text and headers.length > _KEPT_BYTES:
            self._pass_over(begin, end)
        elif not self._has(begin, end - begin + _LONGEST_MATCH) and not self._has(end, 0):
            detail += ", and the file ends before"
            self._resynchronize(begin, headers_end, broken, detail)
        elif not _SOUND_END.match(self.buffer.data, end - self.buffer.base):
            detail += ", and no line ends there"
            self._resynchronize(begin, headers_end, broken, detail)
        else:
            if headers.is_text:
                yield from self._take(begin, block, end, headers)
            self.next = self._skip_newlines(end)

    def _take(
        self, begin: int, block: int, end: int, headers: _Headers
    ) -> Iterator[pa.RecordBatch]:
        """Make a document of a record, and yield a batch if it is full."""
        text = self.buffer.bytes(block, end)
        if self._text_field:
            value = headers.get(self._text_field)
            if value is None:
                data = self.buffer.bytes(begin, end)
                self._reject(begin, RejectReason.FIELD_MISSING, f"no {self._text_field!r}", data)
                return
            text = value.encode()
        try:
            text.decode()
        except UnicodeDecodeError as error:
            detail = f"at byte {block - begin + error.start} of the record"
            self._reject(begin, RejectReason.INVALID_UTF8, detail, self.buffer.bytes(begin, end))
            return
        source = self.request.source
        if self._source_field:
            source = headers.get(self._source_field) or OTHER_SOURCE
        offset = begin if self.unit is None else None
        yield from self._gatherer.add(headers.get(self._id_field), source, offset, text)

    def _pass_over(self, begin: int, end: int) -> None:
        """Pass over a large record without keeping it."""
        buffer = self.buffer
        head = self._head(begin)
        while not self._has(end, 0):
            if buffer.final:
                self.next = buffer.end
                detail = f"Content-Length leads {end - self.next} bytes beyond the file's end"
                reason, size = RejectReason.BROKEN_WARC_HEADER, self.next - begin
                self._reject(begin, reason, detail, head, size, lost_bytes=self._rest(begin))
                return
            buffer.advance(len(buffer.data))
        self.next = self._skip_newlines(end)

    def _resynchronize(self, begin: int, search: int, reason: RejectReason, detail: str) -> None:
        """Reject the bytes from `begin` to the next record, and move `next` there."""
        head = self._head(begin)
        self.next = self._find_start(search)
        size = self.next - begin
        if self.next < self.buffer.end:
            self._reject(begin, reason, detail, head[:size], size)
            return
        if self.buffer.broken:
            reason, detail = RejectReason.BROKEN_STREAM, self.buffer.broken
            self._loss_reported = True
        self._reject(begin, reason, detail, head[:size], size, lost_bytes=self._rest(begin))

    def _head(self, begin: int) -> bytes:
        """Return the first bytes of a record, as many as a reject keeps."""
        self._has(begin, MAX_REJECT_BYTES)
        return self.buffer.bytes(begin, begin + MAX_REJECT_BYTES)

    def _rest(self, begin: int) -> int:
        """Return how many stored bytes are lost from `begin` to the file's end.

        In a compressed file they are the share of the decompressed bytes, or the stored bytes that
        cannot be decompressed.
        """
        end, source = self.buffer.end, self.buffer.source
        if isinstance(source, Stored):
            return end - begin
        stored = self.request.file.size - source.first
        return max(stored * (end - begin) // max(1, end), self.buffer.lost)

    def _find_start(self, position: int) -> int:
        """Return where the first record after an empty line begins, or the file's end."""
        match = self._search(_START, position)
        return self.buffer.base + match.start(1) if match else self.buffer.end

    def _skip_newlines(self, position: int) -> int:
        """Return the first position from this one on at which no line ends."""
        match = self._search(_NO_NEWLINE, position)
        return self.buffer.base + match.start() if match else self.buffer.end

    def _search(
        self, pattern: re.Pattern[bytes], position: int, keep: int = END, limit: int = END
    ) -> re.Match[bytes] | None:
        """Return the first match in the file from a position on; its positions count from `base`.

        Searched bytes before `keep` are dropped from memory. The search ends when the buffer
        reaches `limit`.
        """
        buffer = self.buffer
        while True:
            match = pattern.search(buffer.data, max(0, position - buffer.base))
            if match or buffer.final or buffer.end > limit:
                return match
            unsearched = buffer.end - _LONGEST_MATCH + 1
            position = max(position, unsearched)
            buffer.advance(max(0, min(keep, unsearched) - buffer.base))

    def _is_start(self, position: int) -> bool:
        """Return whether a record begins at a position."""
        self._has(position, len(_MAGIC))
        return self.buffer.bytes(position, position + len(_MAGIC)) == _MAGIC

    def _has(self, position: int, count: int) -> bool:
        """Return whether the file has `count` bytes from a position on; load them if it has."""
        buffer = self.buffer
        while buffer.end < position + count:
            if buffer.final:
                return False
            buffer.advance(max(0, min(position - buffer.base, len(buffer.data))))
        return True


FORMAT = InputFormat(
    name="warc",
    read=lambda request: _WarcReader(request).read(),
    endings=(".warc", ".wet"),
    recognises=lambda head: head.startswith(_MAGIC) or bool(_OLD_VERSION.match(head)),
    check_head=_check_head,
    splittable_units=True,
    speculative=True,
)
