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
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import IdStream, IdStreamWriter, stream_format
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS
from bpe_beam.shards.formats.spool import mapped_rows
from bpe_beam.shards.stored_shard import RangeFile, ShardFile
from bpe_beam.storage.hashing import HashingFile

_GZIP_LEVEL = 4  # rows become smaller than at level 6, in a quarter of the time
_GZIP_STEP = 16 << 10  # the compressed bytes that are decompressed at once: to 16 MB at most

_ROW = re.compile(rb"([0-9]{1,19}),([0-9]{1,19}),,,([0-9]{1,19})")
_LONGEST_ROW = 64


class DolmaWriter(IdStreamWriter):
    """A `ShardWriter`."""

    suffixes = (".npy", ".csv.gz")
    dtypes = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))

    def finish(self, *others: HashingFile) -> None:
        (file,) = others
        number = 0
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as rows:
            for starts, ends in self.bounds():
                numbers = range(number, number + ends.size)
                bounds = zip(starts.tolist(), ends.tolist(), numbers, strict=True)
                rows.write("".join(map("%d,%d,,,%d\r\n".__mod__, bounds)).encode())
                number += ends.size


class DolmaStream(IdStream):
    """The documents of a dolma shard.

    Opening reads all rows once. The documents' ends are kept in a local temporary file, 8 bytes a
    document.
    """

    suffixes = DolmaWriter.suffixes
    missing = "first"

    def read_heads(self, *others: RangeFile | ShardFile) -> None:
        (rows,) = others
        self._rows_url = rows.url
        blocks = self._read_ends(rows) if isinstance(rows, RangeFile) else _table_of_ends(rows)
        ends = mapped_rows(blocks, 1, f"the ends of the documents of {rows.url}")[:, 0]
        self.bounds, self.count = ends, ends.size

    def count_tokens(self) -> int:
        return int(self.bounds[self.count - 1 :][0]) if self.count else 0

    def dtypes(self) -> Sequence[np.dtype[Any]]:
        return DolmaWriter.dtypes

    def describe_bound(self, document: int) -> str:
        return f"{self._rows_url}: row {document}"

    def _read_ends(self, file: RangeFile) -> Iterator[NDArray[np.int64]]:
        """Yield the ends of all documents in blocks."""
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
            yield ends
        if rest:
            raise DataError(f"{file.url}: row {count}: is {_shown(rest)}, without its end, CR LF")

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
                f"{self.describe_bound(number)}: is {_shown(row)}; expected "
                f"{start},END,,,{number}, END at least {start} and at most "
                f"{MAX_DOCUMENT_TOKENS} more"
            )
        return end


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


FORMAT = stream_format("dolma", DolmaWriter, DolmaStream)
