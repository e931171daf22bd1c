"""Arrow IPC: files of record batches, and streams of them.

Batch i of the n of a file belongs to the slice that has byte `size * i // n`: any slices have each
batch once, and no plan opens a footer. The number of rows before a batch is unknown until all
batches before it are read; so a row's place is i * (2^44 // n) plus its row in the batch, and
rejects name row and batch. A stream has no footer: it is read from its start by the slice that
begins there, and places are rows. A stream that ends between two messages is complete by the rules
of the format.

Memory: the columns that are read of one record batch, which can only be read as a whole, and the
dictionaries of the file.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.reading import columns
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams import Stored
from bpe_beam.errors import DataError

_MAGIC = b"ARROW1"
_STREAM = re.compile(rb"\xff{4}[\0-\xff]{2}[\0-\xff]\0[\x08-\x40]\0\0\0")
"""The first bytes of a stream: a mark, the length of the schema, and a position in it."""


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a slice's record batches.

    A row whose text is null or not UTF-8 is a reject; so is a broken record batch, after which a
    file is read on and a stream is not, and a file whose footer is broken.
    """
    with contextlib.closing(request.open_stored()) as file:
        is_file = file.read(len(_MAGIC)) == _MAGIC
        if request.start and not is_file:
            return
        open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
        file.seek(0)
        try:
            reader = open_reader(pa.PythonFile(file, mode="r"))
            schema = reader.schema
            columns.check_names(schema)
        except columns.BROKEN as error:
            columns.lose_file(request, file, RejectReason.BROKEN_ARROW, error)
            return
        if is_file and not reader.num_record_batches:
            return
        file.seek(0)
        # Only the columns of text, id and source are read.
        used = {path[0] for path in columns.useful_paths(request, schema)}
        fields = [index for index, name in enumerate(schema.names) if name in used]
        options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        reader = open_reader(pa.PythonFile(file, mode="r"), options=options)
        read = _read_file if is_file else _read_stream
        yield from read(request, file, reader)


def _read_file(request: SliceRequest, file: Stored, reader: Any) -> Iterator[pa.RecordBatch]:
    count = reader.num_record_batches
    stride = (1 << PLACE_BITS) // count
    for number in range(count):
        if not request.start <= request.file.size * number // count < request.end:
            continue
        try:
            batch = columns.checked_rows(request, reader.get_batch(number))
        except columns.BROKEN as error:
            file.check(error)
            _reject_batch(request, f"{error}, record batch {number}", request.file.size // count)
            continue
        if len(batch) > stride:
            raise DataError(f"{request.file.name}: record batch {number} has over {stride} rows")
        yield from columns.documents_of(
            request, batch, number * stride, 0, f", record batch {number}"
        )


def _read_stream(request: SliceRequest, file: Stored, reader: Any) -> Iterator[pa.RecordBatch]:
    place = 0
    for number in itertools.count():
        begins = file.tell()
        try:
            batch = columns.checked_rows(request, reader.read_next_batch())
        except StopIteration:
            return
        except columns.BROKEN as error:
            file.check(error)
            detail = f"{error}; the stream is lost from here on, record batch {number}"
            _reject_batch(request, detail, request.file.size - begins)
            return
        yield from columns.documents_of(request, batch, place, 0, f", record batch {number}")
        place += len(batch)


def _reject_batch(request: SliceRequest, detail: str, lost: int) -> None:
    reason, size = RejectReason.BROKEN_RECORD_BATCH, request.file.size
    request.reject(reason, detail, total=size, row=0, lost_bytes=lost)


FORMAT = InputFormat(
    name="arrow",
    read=_read,
    endings=(".arrow", ".arrows", ".ipc", ".feather"),
    recognises=lambda head: head.startswith(_MAGIC) or _STREAM.match(head) is not None,
    columnar=True,
)
