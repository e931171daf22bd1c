"""Text: a document is the text between two separators, by default a line."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import WHOLE_FILE
from bpe_beam.corpus.reading.records import read_records
from bpe_beam.corpus.slices import SliceRequest


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Yield the documents that begin in a slice of a text file; see `read_split`."""
    separator = request.settings.document_separator.encode()
    if request.settings.document_separator == WHOLE_FILE:
        separator = b""
    return read_records(
        request,
        separator,
        lambda data, where, prefix, base: _native.text_records(
            data, separator, *where, prefix, base
        ),
    )


FORMAT = InputFormat(name="text", read=_read, separated=True)
