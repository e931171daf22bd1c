"""Parquet: row groups; only the columns of text, id and source are read.

A row group belongs to the slice that has byte `size * rows before it // all rows` of the file: any
slices have each row group once, and no plan opens a footer. A document's place is its row in the
file.

Memory: a page of each column that is read with its dictionary, and a batch of rows: `batch_bytes`
if they are of the row group's average size, all columns together. Where rows are short, texts are
read as a dictionary and resolved one batch at a time: the stored size of a column that repeats a
few long texts does not show how large its rows are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.reading.columns import (
    BROKEN,
    check_names,
    checked_rows,
    documents_of,
    is_extension,
    lose_file,
    useful_paths,
)
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.corpus.streams import Stored
from bpe_beam.corpus.streams.stored import ignore
from bpe_beam.errors import DataError

if TYPE_CHECKING:
    import pyarrow.parquet as pq  # slow to import: only for files of this format

_MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the footer's length, and the magic bytes once more
_ARROW_TYPES = b"ARROW:schema"  # the key of what Arrow's writers note of types
_ENCRYPTED = "Cannot decrypt"  # pyarrow's message for a column without its key
_BUFFER_BYTES = 256 << 10
_SHORT_TEXT = 1 << 10
_PLAIN_ROWS = 1 << 10
"""The rows of a batch of columns that cannot be read as dictionaries: DELTA_BYTE_ARRAY may store a
long text that repeats in a few bytes a row."""


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a slice's row groups.

    A row whose text is null or not UTF-8 is a reject; so is the lost part of a broken row group,
    after which the next one is read, and a file whose footer is broken.
    """
    # Reports count rows, since the columns of other fields are not read.
    unread = replace(request, on_read=ignore)
    with contextlib.closing(unread.open_stored()) as file:
        try:
            metadata = _read_metadata(file)
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            schema = metadata.schema.to_arrow_schema()
            check_names(schema)
            if any(count < 0 for count in rows):
                raise ValueError("a row group has a negative number of rows")
        except BROKEN as error:
            lose_file(request, file, RejectReason.BROKEN_PARQUET, error)
            return
        total = sum(rows)
        if not total:
            return
        paths = useful_paths(request, schema)
        columns = [".".join(path) for path in paths]
        # pyarrow reads no column of an extension type as a dictionary.
        plain = {".".join(path) for path in paths if is_extension(schema, path)}
        dictionaries = [column for column in columns if column not in plain]
        before = 0
        for group, count in enumerate(rows):
            if count and request.start <= request.file.size * before // total < request.end:
                reader = _RowGroup(
                    request, file, metadata, total, columns, dictionaries, group, before
                )
                yield from reader.read()
            before += count


def _read_metadata(file: Stored) -> pq.FileMetaData:
    """Return the footer, without the types that its columns had in Arrow.

    With these a column of type dictionary would be read as a dictionary, whether its encoding
    allows that or not; see `_RowGroup.read`.
    """
    import pyarrow.parquet as pq

    file.seek(max(0, file.size - _TAIL_BYTES))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length + _TAIL_BYTES + len(_MAGIC) > file.size:
        raise ValueError("the file does not end with a Parquet footer")
    file.seek(file.size - _TAIL_BYTES - length)
    footer = file.read(length)
    at = footer.rfind(_ARROW_TYPES)
    if at >= 0:
        footer = footer[:at] + _ARROW_TYPES.lower() + footer[at + len(_ARROW_TYPES) :]
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer + tail))


@dataclass
class _RowGroup:
    """One row group; `dictionaries` are the columns that may be read as dictionaries."""

    request: SliceRequest
    file: Stored
    metadata: pq.FileMetaData
    all_rows: int
    columns: list[str]
    dictionaries: list[str]
    number: int
    first_row: int

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield its documents; the lost part of it is one reject."""
        expected = self.metadata.row_group(self.number).num_rows
        done, why = 0, "it ends too soon"
        batches: Iterator[pa.RecordBatch] | None = None
        dictionaries = list(self.dictionaries) if self._average < _SHORT_TEXT else []
        reopened = False
        while done < expected:
            try:
                if batches is None:
                    batches = self._open(dictionaries, done)
                batch = next(batches, None)
                if batch is None or not len(batch):
                    break
                rows = checked_rows(self.request, batch)
            except BROKEN as error:
                self.file.check(error)
                why = str(error)
                if _ENCRYPTED in why:
                    problem = f"{self.request.file.name} is encrypted Parquet, which is not read"
                    remedy = "write it without encryption, or leave it out with {exclude}"
                    raise DataError(problem, remedy=remedy) from None
                if not dictionaries:
                    break
                # pyarrow reads no dictionary from the DELTA encodings, which a column may have
                # from a page in the middle on, and calls that an OSError as it does damage.
                dictionaries = [] if reopened or done else self._dictionaries()
                batches, reopened = None, True
                continue
            first = self.first_row + done
            self.request.on_read(self.request.file.size * len(batch) // self.all_rows)
            yield from documents_of(self.request, rows, first, first)
            done += len(batch)
        if done < expected:
            lost = expected - done
            detail = f"row group {self.number}: {lost} of its {expected} rows are lost: {why}"
            size = self.metadata.row_group(self.number).total_byte_size
            row, lost_bytes = self.first_row + done, self.request.file.size * lost // self.all_rows
            losses = {"row": row, "lost_bytes": lost_bytes, "lost_records": lost}
            self.request.reject(RejectReason.BROKEN_ROW_GROUP, detail, total=size, **losses)

    @property
    def _average(self) -> int:
        """The average bytes of a row, of all columns together."""
        # Not of one column: `RowGroupMetaData.column` of pyarrow ends the process where a column's
        # statistics are broken.
        group = self.metadata.row_group(self.number)
        return int(max(0, group.total_byte_size) // group.num_rows + 1)

    def _dictionaries(self) -> list[str]:
        """Return the columns whose first page can be read as a dictionary."""
        columns = []
        for column in self.dictionaries:
            try:
                next(self._batches([column], [column], _PLAIN_ROWS), None)
            except BROKEN as error:
                self.file.check(error)
            else:
                columns.append(column)
        return columns

    def _open(self, dictionaries: list[str], done: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows after the first `done`, with some columns as dictionaries."""
        max_rows = min(self.request.max_rows, max(1, self.request.batch_bytes // self._average))
        if len(dictionaries) < len(self.columns):
            max_rows = min(max_rows, _PLAIN_ROWS)
        for batch in self._batches(self.columns, dictionaries, max_rows):
            if len(batch) > done:
                yield batch.slice(done)
            done = max(0, done - len(batch))

    def _batches(
        self, columns: list[str], dictionaries: list[str], rows: int
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(
            pa.PythonFile(self.file, mode="r"),
            metadata=self.metadata,
            read_dictionary=dictionaries or None,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        batches: Iterator[pa.RecordBatch] = file.iter_batches(
            rows, row_groups=[self.number], columns=columns, use_threads=False
        )
        return batches


FORMAT = InputFormat(
    name="parquet",
    read=_read,
    endings=(".parquet", ".pq"),
    recognises=lambda head: head.startswith(_MAGIC),
    columnar=True,
)
