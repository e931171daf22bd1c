"""Counts of each id in the tokens of a split, by source, and their sum over all splits.

A worker adds 1 to a table for each token: a row for each source, a column for each id. The file of
a split, `work/shard-00003-of-00012.token-counts`, is an Arrow stream compressed by lz4; each row is
a block: a source, ids and their counts. A table that would have more than `TABLE_BYTES` is written
out and begun anew, so a source may have several blocks. The driver adds up as many sources at a
time as such a table has rows, and reads the files again for the next sources.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.batches import integers
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.numbering import TOKEN_COUNTS_SUFFIX
from bpe_beam.shards.token_counts import Amounts, Ids, SourceCounts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.storage.retry import REQUESTS_AT_ONCE
from bpe_beam.tokenizer.tokenizer import Tokenizer

TABLE_BYTES = 256_000_000  # the maximum bytes of a table, but for one row

_BLOCKS = pa.schema(
    [
        ("source", pa.large_string()),
        ("ids", pa.large_list(pa.uint32())),
        ("counts", pa.large_list(pa.int64())),
    ]
)
_NO_SOURCE = ""


class IdColumns:
    """The columns of a table: a tokenizer's ids, or positions in them if most are unused."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocab = tokenizer.vocab
        self.ids: Ids = np.sort(np.fromiter(vocab.values(), np.uint32, len(vocab)))
        self._by_id = tokenizer.max_id < 2 * len(self.ids)
        self.width = tokenizer.max_id + 1 if self._by_id else len(self.ids)

    def of(self, ids: Ids) -> Ids:
        """Return the columns of ids that the tokenizer has."""
        return ids if self._by_id else np.searchsorted(self.ids, ids).astype(np.uint32)

    def known(self, row: Amounts) -> Amounts:
        """Return the counts of all ids, in their order, from a row of a table."""
        return row if self.width == len(self.ids) else row[self.ids]

    def rows_within(self, size: int) -> int:
        """Return the number of rows of a table of so many bytes, at least 1."""
        return max(1, size // (8 * self.width))


@lru_cache(maxsize=4)
def id_columns(tokenizer: Tokenizer) -> IdColumns:
    """Return the columns for a tokenizer, made once a process."""
    return IdColumns(tokenizer)


class TokenCounter:
    def __init__(
        self, columns: IdColumns, by_source: bool, *, table_bytes: int | None = None
    ) -> None:
        self._columns = columns
        self._by_source = by_source
        self._height = columns.rows_within(table_bytes or TABLE_BYTES) if by_source else 1
        self._rows: dict[str, int] = {}
        self._blocks = io.BytesIO()
        self._writer = pa.ipc.new_stream(
            self._blocks,
            _BLOCKS,
            options=pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False),
        )
        self._new_table()

    def add(self, batch: pa.RecordBatch, ids: pa.LargeListArray) -> None:
        values = self._columns.of(ids.values.to_numpy())
        offsets = ids.offsets.to_numpy()
        if not self._by_source:
            self._rows[_NO_SOURCE] = 0
            _native.add_id_counts(values, offsets, np.empty(0, np.uint32), self._table)
            return
        column = batch.column("source").dictionary_encode()
        names, codes = column.dictionary.to_pylist(), column.indices.to_numpy()
        for start in range(0, len(names), self._height):
            group = names[start : start + self._height]
            if len(self._rows.keys() | set(group)) > self._height:
                self._write_out()
            rows = np.zeros(len(names), np.uint32)
            for code, name in enumerate(group, start):
                rows[code] = self._rows.setdefault(name, len(self._rows))
            within = (codes >= start) & (codes < start + len(group))
            for first, last in _runs(within):
                bounds = offsets[first : last + 1]
                _native.add_id_counts(values, bounds, rows[codes[first:last]], self._table)

    def write(self, folder: TaskFolder, task: str) -> FileInfo:
        """Write the file of the split; return its description."""
        self._write_out()
        self._writer.close()
        data = self._blocks.getvalue()
        name = token_counts_name(task)
        folder.storage.write_bytes(folder.path(name), data)
        return FileInfo.of(name, data)

    def _new_table(self) -> None:
        # Pages of zeros take no memory until something is added to them.
        self._table = np.zeros((self._height, self._columns.width), np.int64)
        self._rows.clear()

    def _write_out(self) -> None:
        """Write the counts of the table, sorted by source, and empty it."""
        for source, row in sorted(self._rows.items()):
            counts = self._columns.known(self._table[row])
            used = np.flatnonzero(counts)
            block = [[source], _list_of(self._columns.ids[used]), _list_of(counts[used])]
            self._writer.write_batch(pa.RecordBatch.from_arrays(block, schema=_BLOCKS))
        self._new_table()


def token_counts_name(task: str) -> str:
    """Return the name of the file of a split's token counts, of its task."""
    return f"{WORK}/{task}{TOKEN_COUNTS_SUFFIX}"


def added_up(
    folder: TaskFolder,
    files: Sequence[FileInfo],
    columns: IdColumns,
    sources: Sequence[str] | None,
) -> Iterator[SourceCounts]:
    """Yield how often each id occurs in each source, over all splits."""
    names = [_NO_SOURCE] if sources is None else list(sources)
    height = columns.rows_within(TABLE_BYTES)
    for start in range(0, len(names), height):
        group = names[start : start + height]
        table = np.zeros((len(group), columns.width), np.int64)
        rows = {name: row for row, name in enumerate(group)}
        for first in range(0, len(files), REQUESTS_AT_ONCE):
            read = folder.request_each(partial(_read, folder), files[first:][:REQUESTS_AT_ONCE])
            for source, ids, counts in chain.from_iterable(map(_blocks_of, read)):
                if source in rows:
                    table[rows[source], columns.of(ids)] += counts
        for name, row in rows.items():
            yield SourceCounts(
                None if sources is None else name, columns.ids, columns.known(table[row])
            )


def _read(folder: TaskFolder, file: FileInfo) -> bytes:
    return read_hashed(folder.storage, folder.path(file.name), file.sha256)


def _blocks_of(data: bytes) -> Iterator[tuple[str, Ids, Amounts]]:
    # A pool of threads takes longer to start than the blocks to read.
    for batch in pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)):
        ids, counts = batch.column("ids").values, batch.column("counts").values
        yield batch.column("source")[0].as_py(), ids.to_numpy(), counts.to_numpy()


def _list_of(values: npt.NDArray[np.integer]) -> pa.LargeListArray:
    """Return values as the one item of a list array."""
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), integers(values))


def _runs(flags: npt.NDArray[np.bool_]) -> Iterable[tuple[int, int]]:
    """Return the start and the end of each run of true values."""
    bounds = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True)
