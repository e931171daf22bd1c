"""Arrow IPC: files of record batches, and streams of them.

Batch i of the n of a file belongs to the slice that holds byte `size * i // n`, so that any cut
gives each to one slice, and no plan opens a footer. How many rows come before a batch only the
batches before it tell; so a row's place is i * (2^44 // n) plus its row in the batch, and rejects
name row and batch. A stream has no footer: it is read from its start by the slice that begins
there, and places are rows. A stream that ends between two messages is whole, as the format has it.

Memory: the columns that are read of one record batch, which the format does not allow to be taken
apart, and the dictionaries of the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.losses import Loss
from bpe_beam.corpus.reading.columns import (
    BROKEN,
    CheckedRows,
    RowReader,
    check_names,
    useful_paths,
)
from bpe_beam.corpus.reading.planned_file import PlannedFile
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.errors import DataError

_MAGIC = b"ARROW1"


def read_arrow(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Reads the documents of a slice's record batches.

    A row whose text is null or not UTF-8 is a reject; so is a broken record batch, after which a
    file is read on and a stream is not, and a file whose footer is broken.

    Raises:
        DataError: Storage fails, the file is not as long as planned, or has no column of texts.
    """
    with contextlib.closing(PlannedFile(request)) as held:
        is_file = held.read(len(_MAGIC)) == _MAGIC
        if is_file:
            yield from _read_file(request, held)
        elif request.start == 0:
            yield from _read_stream(request, held)


def _read_file(request: SliceRequest, held: PlannedFile) -> Iterator[pa.RecordBatch]:
    try:
        reader = pa.ipc.open_file(pa.PythonFile(held, mode="r"))
        schema, count = reader.schema, reader.num_record_batches
        check_names(schema)
    except BROKEN as error:
        held.check()
        if request.start == 0:
            _reject_file(request, error)
        return
    if not count:
        return
    reader = pa.ipc.open_file(pa.PythonFile(held, mode="r"), options=_options(request, schema))
    stride = (1 << PLACE_BITS) // count
    rows = RowReader(request)
    for number in range(count):
        if not request.start <= request.file.size * number // count < request.end:
            continue
        try:
            batch = rows.check(reader.get_batch(number))
        except BROKEN as error:
            held.check()
            lost = Loss.of(request.file.size // count)
            detail = f"{error}, record batch {number}"
            _reject_batch(request, detail, lost)
            continue
        if len(batch.text) > stride:
            raise DataError(f"{request.file.name}: record batch {number} has over {stride} rows")
        yield from rows.documents(batch, number * stride, 0, f", record batch {number}")


def _read_stream(request: SliceRequest, held: PlannedFile) -> Iterator[pa.RecordBatch]:
    held.seek(0)
    try:
        schema = pa.ipc.open_stream(pa.PythonFile(held, mode="r")).schema
        check_names(schema)
    except BROKEN as error:
        held.check()
        _reject_file(request, error)
        return
    held.seek(0)
    rows = RowReader(request)
    options = _options(request, schema)
    reader = pa.ipc.open_stream(pa.PythonFile(held, mode="r"), options=options)
    place = number = 0
    while True:
        batch: CheckedRows | None = None
        begins = held.tell()
        try:
            batch = rows.check(reader.read_next_batch())
        except StopIteration:
            return
        except BROKEN as error:
            held.check()
            detail = f"{error}; the stream is lost from here on, record batch {number}"
            lost = Loss.of(request.file.size - begins)
            _reject_batch(request, detail, lost)
            return
        yield from rows.documents(batch, place, 0, f", record batch {number}")
        place, number = place + len(batch.text), number + 1


def _options(request: SliceRequest, schema: pa.Schema) -> pa.ipc.IpcReadOptions:
    """Tells the reader to leave out what is not needed."""
    names = {path[0] for path in useful_paths(request, schema)}
    fields = [index for index, name in enumerate(schema.names) if name in names]
    return pa.ipc.IpcReadOptions(use_threads=False, included_fields=fields)


def _reject_file(request: SliceRequest, error: Exception) -> None:
    size = request.file.size
    request.reject(RejectReason.BROKEN_ARROW, str(error), b"", size, lost=Loss.of(size))


def _reject_batch(request: SliceRequest, detail: str, lost: Loss) -> None:
    size = request.file.size
    request.reject(RejectReason.BROKEN_RECORD_BATCH, detail, b"", size, row=0, lost=lost)


FORMAT = InputFormat(
    name="arrow",
    read=read_arrow,
    endings=(".arrow", ".arrows", ".ipc", ".feather"),
    magic=_MAGIC,
    columnar=True,
)
