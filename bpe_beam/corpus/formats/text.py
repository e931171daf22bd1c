"""Text: a document is the text between two separators, by default a line.

A record ends at the separator or at the file's end. The last separator opens no empty record; all
other empty records are documents. Separators are found from left to right from the file's start,
also where they could overlap (`\\n\\n` in `\\n\\n\\n`). In a file whose first line ends with CR LF,
each newline of a separator is CR LF. A byte order mark at the file's start is no part of a record.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pyarrow as pa
from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import WHOLE_FILE
from bpe_beam.corpus.reading.records import read_records
from bpe_beam.corpus.reading.slice_reader import FileBuffer
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams.stored import ignore

_FIRST_BLOCK = 64 << 10
_MAX_FIRST_LINE = 16 << 20


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    separator = request.settings.document_separator.encode()
    if request.settings.document_separator == WHOLE_FILE:
        separator = b""
    elif b"\n" in separator and separator != b"\n" and _has_crlf(request):
        separator = re.sub(rb"(?<!\r)\n", b"\r\n", separator)
    return read_records(
        request,
        separator,
        lambda data, where, *ids: _native.text_records(data, separator, *where, *ids),
    )


def _has_crlf(request: SliceRequest) -> bool:
    """Return whether the first line of the file ends with CR LF; at most 16 MiB are searched."""
    source = replace(request, start=0, on_boundaries=ignore).open()
    assert source is not None  # the first unit begins at the start
    with contextlib.closing(source):
        buffer = FileBuffer(source, 0, _FIRST_BLOCK)
        newline = -1
        while newline < 0 and not buffer.final and len(buffer.data) < _MAX_FIRST_LINE:
            buffer.advance(0)
            newline = bytes(buffer.data).find(b"\n")
        return newline > 0 and buffer.data[newline - 1] == ord("\r")


FORMAT = InputFormat(name="text", read=_read, separated=True)
