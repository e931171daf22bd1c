"""dolma shards: a `.npy` of token ids without a header, and a `.csv.gz` of the documents' bounds.

`dolma/tokenizer/memmap_writer.py` (dolma) defines the layout, which OLMo-core reads:

    .npy     the ids of all documents one after the other, little-endian, in the narrowest of uint8,
             uint16 and uint32; no numpy header, in spite of the name
    .csv.gz  a row `start,end,id,src,loc` a document, ended by CR LF, compressed by gzip; start and
             end in tokens, id and src empty, loc the number of the document in the shard, from 0

OLMo-core takes the bounds from the rows, or from the end-of-text id if it has one: to agree
with both, each document must end with one such id, and contain no other.

gzip has no time and no name in its header, so equal documents give equal bytes.
"""

from __future__ import annotations

import gzip
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.ends_reader import EndsReader
from bpe_beam.shards.formats.id_stream import (
    SPOOL_IN_MEMORY,
    IdStreamCheck,
    IdStreamWriter,
    spool_errors,
)
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS, ShardFormat
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.formats.stream_access import StreamAccess, check_documents, fitting_width
from bpe_beam.shards.stored_shard import MappedFile, ShardFile, StoredShard
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

_IDS, _ROWS = ".npy", ".csv.gz"
_DTYPES = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))
_GZIP_LEVEL = 4
"""Rows become smaller than at level 6, in a quarter of the time."""
_GZIP_STEP = 16 << 10
"""The compressed bytes that are decompressed at once: to 16 MB at most."""

_ROW = re.compile(rb"([0-9]{1,19}),([0-9]{1,19}),,,([0-9]{1,19})")
_LONGEST_ROW = 64


class DolmaWriter(IdStreamWriter):
    """A `ShardWriter`."""

    suffixes = (_IDS, _ROWS)
    dtypes = _DTYPES

    def write_lengths(self, *files: HashingFile) -> None:
        """Write the rows."""
        (file,) = files
        number = 0
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as rows:
            for starts, ends in self.bounds():
                numbers = range(number, number + ends.size)
                bounds = zip(starts.tolist(), ends.tolist(), numbers, strict=True)
                rows.write("".join(map("%d,%d,,,%d\r\n".__mod__, bounds)).encode())
                number += ends.size


class DolmaReader(EndsReader):
    """A `ShardReader`.

    Opening reads all rows once and refuses every violation of the layout. The documents' ends are
    kept in a local temporary file, 8 bytes a document.
    """

    def __init__(self, storage: Storage, folder: str, name: str) -> None:
        rows_url = storage.join(folder, name + _ROWS)
        with ExitStack() as opened:
            self.ids = opened.enter_context(RangeFile(storage, storage.join(folder, name + _IDS)))
            self._ends = opened.enter_context(
                tempfile.SpooledTemporaryFile(max_size=SPOOL_IN_MEMORY)
            )
            with RangeFile(storage, rows_url) as rows:
                self._rows_url = rows.url
                self.count, self.token_count = self._store_ends(rows)
            self.dtype = self._find_dtype()
            opened.pop_all()

    def close(self) -> None:
        """See `IdStreamReader.close`."""
        self._ends.close()
        self.ids.close()

    def read_ends(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `EndsReader.read_ends`."""
        with self._spooling():
            self._ends.seek(8 * start)
            return np.frombuffer(self._ends.read(8 * (stop - start)), np.int64)

    def describe_end(self, document: int) -> str:
        """See `EndsReader.describe_end`."""
        return f"{self._rows_url}: row {document}"

    def _spooling(self) -> AbstractContextManager[None]:
        """Name the temporary file in the errors of the block."""
        return spool_errors(f"the ends of the documents of {self._rows_url}", "8 bytes a document")

    def _store_ends(self, file: RangeFile) -> tuple[int, int]:
        """Write the ends of all documents to the temporary file; return documents and tokens."""
        count = tokens = 0
        rest = b""
        for text in _decompressed(file):
            *rows, rest = (rest + text).split(b"\r\n")
            if len(rest) > _LONGEST_ROW:
                rows.append(rest)
            ends = np.empty(len(rows), np.int64)
            for position, row in enumerate(rows):
                tokens = self._end_of(row, count + position, tokens)
                ends[position] = tokens
            count += len(rows)
            with self._spooling():
                self._ends.write(ends.tobytes())
        if rest:
            raise DataError(f"{file.url}: row {count}: is {_shown(rest)}, without its end, CR LF")
        return count, tokens

    def _end_of(self, row: bytes, number: int, start: int) -> int:
        """Return the end in the row of document `number`, which must begin at token `start`."""
        match = _ROW.fullmatch(row)
        end = int(match[2]) if match else -1
        if (
            match is None
            or (int(match[1]), int(match[3])) != (start, number)
            or not start <= end <= start + MAX_DOCUMENT_TOKENS
        ):
            raise DataError(
                f"{self.describe_end(number)}: is {_shown(row)}; expected {start},END,,,{number}, "
                f"END at least {start} and at most {MAX_DOCUMENT_TOKENS} more"
            )
        return end

    def _find_dtype(self) -> np.dtype[Any]:
        """Return the type of the ids, which follows from the sizes of both files alone."""
        for dtype in _DTYPES:
            if self.token_count and self.token_count * dtype.itemsize == self.ids.size:
                return dtype
        raise DataError(
            f"{self.ids.url}: has {self.ids.size} bytes; the {self.count} documents of "
            f"{self._rows_url} have {self.token_count} tokens, of 1, 2 or 4 bytes"
        )


def _decompressed(file: RangeFile) -> Iterator[bytes]:
    """Yield the text of one gzip member, which must be the whole file."""
    member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    for start in range(0, file.size, _GZIP_STEP):
        stored = file.read(start, min(_GZIP_STEP, file.size - start))
        try:
            yield member.decompress(stored)
        except zlib.error as error:
            raise DataError(
                f"{file.url}: bytes {start} to {start + len(stored)}: the gzip stream is corrupt "
                f"({error})"
            ) from error
        if member.unused_data:
            at = start + len(stored) - len(member.unused_data)
            raise DataError(f"{file.url}: byte {at}: the gzip stream ends before the file does")
    if not member.eof:
        raise DataError(f"{file.url}: byte {file.size}: the gzip stream ends too soon")


def _shown(row: bytes) -> str:
    """Return a row for an error."""
    return repr(row[:_LONGEST_ROW].decode("ascii", "replace"))


def _access(shard: StoredShard) -> StreamAccess:
    """Open a shard for reading at any position: all rows are read once.

    The documents' ends are kept in a local temporary file, 8 bytes a document.
    """
    ids, rows = shard.file(_IDS), shard.file(_ROWS)
    dtype = fitting_width(shard, ids, _DTYPES)
    content = f"the ends of the documents of {rows.url}"
    with tempfile.NamedTemporaryFile() as file:
        count = 0
        for ends in _table_of_ends(rows):
            count += ends.size
            with spool_errors(content, "8 bytes a document"):
                file.write(ends.tobytes())
        with spool_errors(content, "8 bytes a document"):
            file.flush()
        check_documents(rows, count, shard)
        bounds = MappedFile(file.name).array(np.dtype(np.int64), count)
    return StreamAccess(shard, ids, dtype, bounds, missing="first")


def _table_of_ends(rows: ShardFile) -> Iterator[NDArray[np.int64]]:
    """Yield the ends of documents in blocks; each must be where the next one starts."""
    columns = ("start", "end", "id", "src", "loc")
    start = count = 0
    try:
        table = csv.open_csv(
            pa.CompressedInputStream(rows.stream(), "gzip"),
            csv.ReadOptions(column_names=columns, use_threads=False),
            convert_options=csv.ConvertOptions(
                include_columns=columns[:2], column_types=dict.fromkeys(columns[:2], pa.int64())
            ),
        )
        for batch in table:
            starts, ends = (column.to_numpy(zero_copy_only=True) for column in batch.columns)
            wrong = np.flatnonzero(starts != np.concatenate(([start], ends[:-1])))
            if wrong.size:
                raise DataError(
                    f"{rows.url}: row {count + int(wrong[0])}: does not start where the row before "
                    "it ends"
                )
            count += ends.size
            start = int(ends[-1])
            yield ends
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"{rows.url}: cannot be read after row {count}: {reason}") from error


FORMAT = ShardFormat(
    name="dolma",
    suffixes=DolmaWriter.suffixes,
    max_document_tokens=MAX_DOCUMENT_TOKENS,
    writer=DolmaWriter,
    reader=DolmaReader,
    check=partial(IdStreamCheck, writer=DolmaWriter),
    access=_access,
)
