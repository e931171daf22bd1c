"""WARC and WET: web archives, of which the records that are plain text are documents.

Those are records of type `conversion` (all of a WET file, but for those that say that they are no
text), and those of any type whose Content-Type is text/plain; others are passed over. The id is
WARC-Record-ID; `id_field`, `source_field` and `text_field`, where they are not the defaults, name
other headers. Header names know no case, values may be folded; Content-Length must be a number, and
an end of line stand behind the block. What is no record is a reject up to where the next begins: at
`WARC/1.` behind an empty line.

A slice in the middle begins with the first such place, in a compressed file with the unit itself if
a record begins there, as usual; a text may hold such a place, too, so it reports its boundaries,
and the job proves that the slices are contiguous. A record belongs to the slice that it begins in.

FastWARC takes 0.4 times the CPU time for the same batches, plain and gzip. It is not used: it skips
broken records without a word, so there would be no rejects, and it names no position in the file at
which a slice could begin or end.

Memory: a few times `batch_bytes`, and some three times the longest text. Records that are passed
over are kept up to 64 MiB, so that those within one with a wrong length are found.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pyarrow as pa

from bpe_beam.corpus.batches import MAX_RECORD_BYTES
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.losses import Loss
from bpe_beam.corpus.plan import MAX_FILE_BYTES
from bpe_beam.corpus.read_settings import OTHER_SOURCE, ReadSettings
from bpe_beam.corpus.reading.document_gatherer import Gatherer
from bpe_beam.corpus.reading.window import END, Window
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, RejectReason
from bpe_beam.corpus.slices import Boundaries, Position, SliceRequest
from bpe_beam.errors import DataError

MAX_HEADER_BYTES = 1 << 20
"""The headers of a record have fewer bytes."""

_KEPT_BYTES = 64 << 20
_MAGIC = b"WARC/1."
_START = re.compile(rb"\n\r?\n(WARC/1\.)")
_START_BYTES = 10  # of the longest match
_EMPTY_LINE = re.compile(rb"\r?\n\r?\n")
_NEWLINES = re.compile(rb"[\r\n]*")
_SOUND_END = re.compile(rb"(?:\r?\n){2}|[\r\n]*(?:\Z|(?=WARC/1\.))")
_LENGTH = re.compile(r"[0-9]{1,18}")
_DEFAULTS = ReadSettings()


def read_warc(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Reads the documents that begin in a slice of a WARC or WET file.

    Raises:
        DataError: Storage fails, or the file is not as long as planned.
    """
    plain = request.file.compression == "none"
    base = request.start if plain else 0
    source = request.open(base)
    if source is None:
        return
    with contextlib.closing(source):
        stop = request.end if plain else END
        block = min(request.batch_bytes, request.file.size + 1) if plain else request.batch_bytes
        yield from _Reader(request, Window(source, base, max(block, 64), stop)).read()


class _BrokenHeaderError(Exception):
    """The headers of a record tell nothing to rely on."""


class _Headers:
    """The headers of a record.

    Attributes:
        length: Of the block, in bytes.
        is_text: Whether the record is a document.
    """

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
        """A header's value."""
        return self._values.get(name.lower())


class _Reader:
    """Reads the records of one slice.

    Places are as in `records._SliceReader`: of the decompressed file, or, behind a cut of a
    compressed one, of what its first unit and those behind it decompress to.
    """

    def __init__(self, request: SliceRequest, window: Window) -> None:
        self.request = request
        self.window = window
        self.plain = request.file.compression == "none"
        self.unit = window.source.first if not self.plain and request.start else None
        self.lost = False  # what was lost of a broken stream is reported
        self.gatherer = Gatherer(request)
        text, name, self.source_field = (".".join(path) for path in request.settings.paths)
        self.text_field = "" if text == _DEFAULTS.text_field else text
        self.id_field = "WARC-Record-ID" if name == _DEFAULTS.id_field else name

    @property
    def stop(self) -> int:
        """Records that begin here or later are the next slice's."""
        if self.plain:
            return self.request.end if self.request.end < self.request.file.size else END
        boundary = self.window.source.boundary
        return END if boundary is None or self.request.whole else boundary

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches of the slice, and reports its boundaries if they are speculative."""
        request, window = self.request, self.window
        window.advance(0)
        self.next = self._first_start()
        begins = self.next
        # what is there tells whether the next slice's first unit begins there
        while self._has(self.next, 1) and self.next < self.stop:
            if self.next >= MAX_FILE_BYTES:
                raise DataError(
                    f"{request.file.name}: it decompresses to over {MAX_FILE_BYTES} bytes"
                )
            yield from self._read_record()
        yield from self.gatherer.rest()
        if window.broken and not self.lost and self.next < self.stop:
            self._reject(
                self.next, RejectReason.BROKEN_STREAM, window.broken, b"", lost=Loss.of(window.lost)
            )
        if not request.whole:
            self._report(begins)

    def _report(self, begins: int) -> None:
        request, source = self.request, self.window.source
        ends = None
        if self.plain:
            ends = Position(0, self.next) if request.end < request.file.size else None
            first = Position(0, begins)
        else:
            first = Position(source.first, begins)
            if source.boundary is not None:
                ends = Position(source.boundary_unit, self.next - source.boundary)
        broken = bool(self.window.broken)
        request.on_boundaries(
            Boundaries(request.number, request.start, request.end, first, ends, broken)
        )

    def _first_start(self) -> int:
        """Where the slice's first record begins, or what may be one at the file's start."""
        base = self.window.base
        start = self._pass_newlines(base)
        if not self.request.start or self._is_start(start):
            return start
        return self._search(start)

    def _read_record(self) -> Iterator[pa.RecordBatch]:
        """Reads what begins at `next`, and moves that behind it."""
        begin = self.next
        if not self._is_start(begin):
            self._resynchronize(
                begin, begin, RejectReason.NO_WARC_RECORD, "no WARC/1. at its start"
            )
            return
        found = self._find(_EMPTY_LINE, begin, MAX_HEADER_BYTES)
        if found is None:
            detail = f"it does not end within {MAX_HEADER_BYTES} bytes"
            self._resynchronize(begin, begin, RejectReason.BROKEN_WARC_HEADER, detail)
            return
        headers_end, block = found
        try:
            headers = _Headers(self._bytes(begin, headers_end))
        except _BrokenHeaderError as error:
            # its last line's end may be a part of the empty line that a record stands behind
            self._resynchronize(begin, headers_end, RejectReason.BROKEN_WARC_HEADER, str(error))
            return
        end = block + headers.length
        beyond = self.plain and end > self.request.file.size
        if beyond or (headers.is_text and headers.length > MAX_RECORD_BYTES):
            reason = RejectReason.BROKEN_WARC_HEADER if beyond else RejectReason.TOO_LONG
            detail = f"Content-Length is {headers.length}"
            self._resynchronize(begin, headers_end, reason, detail)
        elif not headers.is_text and headers.length > _KEPT_BYTES:
            self._pass_over(begin, end)
        elif not self._has(begin, end - begin + _START_BYTES) and not self._has(end, 0):
            detail = f"Content-Length is {headers.length}, and the file ends before"
            self._resynchronize(begin, headers_end, RejectReason.BROKEN_WARC_HEADER, detail)
        elif not _SOUND_END.match(self.window.data, end - self.window.base):
            detail = f"Content-Length is {headers.length}, and no line ends there"
            self._resynchronize(begin, headers_end, RejectReason.BROKEN_WARC_HEADER, detail)
        else:
            if headers.is_text:
                yield from self._take(begin, block, end, headers)
            self.next = self._pass_newlines(end)

    def _take(
        self, begin: int, block: int, end: int, headers: _Headers
    ) -> Iterator[pa.RecordBatch]:
        """Makes a document of a record."""
        text = self._bytes(block, end)
        if self.text_field:
            value = headers.get(self.text_field)
            if value is None:
                data = self._bytes(begin, end)
                self._reject(begin, RejectReason.FIELD_MISSING, f"no {self.text_field!r}", data)
                return
            text = value.encode()
        try:
            text.decode()
        except UnicodeDecodeError as error:
            detail = f"at byte {block - begin + error.start} of the record"
            self._reject(begin, RejectReason.INVALID_UTF8, detail, self._bytes(begin, end))
            return
        source = self.request.source
        if self.source_field:
            source = headers.get(self.source_field) or OTHER_SOURCE
        place = begin if self.unit is None else None
        yield from self.gatherer.add(headers.get(self.id_field), source, place, text)

    def _pass_over(self, begin: int, end: int) -> None:
        """Passes over a large record without keeping it."""
        window = self.window
        self._has(begin, MAX_REJECT_BYTES)
        head = self._bytes(begin, begin + MAX_REJECT_BYTES)
        while not self._has(end, 0):
            if window.final:
                self.next = window.base + len(window.data)
                detail = f"Content-Length leads {end - self.next} bytes behind the file's end"
                self._reject(
                    begin,
                    RejectReason.BROKEN_WARC_HEADER,
                    detail,
                    head,
                    self.next - begin,
                    self._rest(begin),
                )
                return
            window.advance(len(window.data))
        self.next = self._pass_newlines(end)

    def _resynchronize(self, begin: int, search: int, reason: RejectReason, detail: str) -> None:
        """Rejects what begins at `begin`, up to where the next record does."""
        window = self.window
        self._has(begin, MAX_REJECT_BYTES)
        head = self._bytes(begin, begin + MAX_REJECT_BYTES)
        self.next = self._search(search)
        size = self.next - begin
        lost = None
        if self.next == window.base + len(window.data):
            lost = self._rest(begin)
            if window.broken:
                reason, detail, self.lost = RejectReason.BROKEN_STREAM, window.broken, True
        self._reject(begin, reason, detail, head[:size], size, lost)

    def _rest(self, begin: int) -> Loss:
        """What is lost from `begin` to the file's end, where no other record was found: of a
        compressed file the share of what comes of it, or what cannot be decompressed."""
        end = self.window.base + len(self.window.data)
        if self.plain:
            return Loss.of(end - begin)
        stored = self.request.file.size - self.window.source.first
        return Loss.of(max(stored * (end - begin) // max(1, end), self.window.lost))

    def _search(self, place: int) -> int:
        """Where the first record behind an empty line at `place` or later begins, or the file's
        end. Keeps nothing in memory of what it passes."""
        window = self.window
        while True:
            found = _START.search(window.data, max(0, place - window.base))
            if found is not None:
                return window.base + found.start(1)
            if window.final:
                return window.base + len(window.data)
            window.advance(max(0, len(window.data) - _START_BYTES))

    def _find(self, what: re.Pattern[bytes], place: int, within: int) -> tuple[int, int] | None:
        """Where a pattern begins and ends that begins less than `within` bytes behind."""
        window = self.window
        search = place
        while True:
            found = what.search(window.data, search - window.base)
            if found is not None:
                start, end = window.base + found.start(), window.base + found.end()
                return (start, end) if start < place + within else None
            known = window.base + len(window.data)
            if window.final or known - place > within:
                return None
            search = max(place, known - 4)
            window.advance(place - window.base)

    def _pass_newlines(self, place: int) -> int:
        """The first place from here on where no line ends."""
        window = self.window
        while True:
            found = _NEWLINES.match(window.data, max(0, place - window.base))
            place = window.base + (found.end() if found else 0)
            if window.final or place < window.base + len(window.data):
                return place
            window.advance(place - window.base)

    def _is_start(self, place: int) -> bool:
        return self._has(place, len(_MAGIC)) and self._bytes(place, place + len(_MAGIC)) == _MAGIC

    def _has(self, place: int, count: int) -> bool:
        """Whether the file has so many bytes from there on; they are in the window then."""
        window = self.window
        while window.base + len(window.data) < place + count:
            if window.final:
                return False
            window.advance(max(0, min(place - window.base, len(window.data))))
        return True

    def _bytes(self, start: int, end: int) -> bytes:
        base = self.window.base
        return bytes(self.window.data[start - base : end - base])

    def _reject(
        self,
        offset: int,
        reason: RejectReason,
        detail: str,
        data: bytes,
        total: int | None = None,
        lost: Loss | None = None,
    ) -> None:
        self.request.reject(reason, detail, data, total, offset=offset, unit=self.unit, lost=lost)


FORMAT = InputFormat(
    name="warc",
    read=read_warc,
    endings=(".warc", ".wet"),
    magic=_MAGIC,
    splittable_units=True,
    speculative=True,
    reject_gap=4,  # two ends of lines
)
