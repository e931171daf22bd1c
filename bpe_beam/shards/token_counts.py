"""`__token_counts`: how often each id occurs in a tokens folder, by source.

One row for each source and each id of the tokenizer, also for ids that do not occur: `id` (uint32)
and `count` (int64), with sources the column `source` before them, sorted by source and id. The rows
depend on the tokens alone, not on the shards that they are in. The schema's metadata have the
tokenizer's fingerprint; the sums by source equal the manifest's, and pages have checksums.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.corpus.batches import integers
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import require_files
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import HashingFile

Ids = npt.NDArray[np.uint32]
Amounts = npt.NDArray[np.int64]

_SCHEMA = pa.schema([("id", pa.uint32()), ("count", pa.int64())])
_ROW_GROUP = 1 << 20


class SourceCounts(NamedTuple):
    """The ids of a source, uint32[n], ascending, and how often each occurs, int64[n]."""

    source: str | None
    ids: Ids
    counts: Amounts


def write_token_counts(
    storage: Storage,
    folder: str,
    fingerprint: str,
    counts: Iterable[SourceCounts],
) -> FileInfo:
    """Write the file, whole or not at all; return it as a manifest lists it."""
    from bpe_beam.storage.parquet_file import ParquetFile  # slow to import

    rows = iter(counts)
    first = next(rows, None)
    by_source = first is None or first.source is not None
    schema = _schema(by_source).with_metadata({b"bpe_beam": _metadata(fingerprint)})
    with (
        storage.create(storage.join(folder, TOKEN_COUNTS_FILE)) as file,
        ParquetFile(
            hashing := HashingFile(file),
            schema,
            dictionary=["source"],
            encodings={"id": "DELTA_BINARY_PACKED"},
        ) as writer,
    ):
        while first is not None:
            columns: list[pa.Array] = [integers(first.ids), integers(first.counts)]
            if first.source is not None:
                source = pa.scalar(first.source, pa.large_string())
                columns.insert(0, pa.repeat(source, len(first.ids)))
            table = pa.Table.from_arrays(columns, schema=schema)
            for start in range(0, table.num_rows, _ROW_GROUP):
                writer.add(table.slice(start, _ROW_GROUP))
            first = next(rows, None)
    return FileInfo.written(TOKEN_COUNTS_FILE, hashing)


def read_token_counts(
    storage: Storage,
    folder: str,
    fingerprint: str,
    tokens: Mapping[str | None, int],
    expected: FileInfo,
) -> Iterator[SourceCounts]:
    """Yield how often each id occurs in each source; without sources, the only source is None.

    Cost: reads the file twice, the first time for its hash; in memory is one source at a time.
    """
    import pyarrow.parquet as pq  # slow to import

    require_files(storage, folder, [expected])
    url = storage.join(folder, TOKEN_COUNTS_FILE)
    with storage.open(url) as stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            schema = _schema(None not in tokens)
            stored = file.schema_arrow
            if not stored.equals(schema) or stored.metadata[b"bpe_beam"] != _metadata(fingerprint):
                raise DataError(f"{redact(url)} is not of the tokenizer and sources of its folder")
            yield from _read_sources(file, tokens, redact(url))
        except (pa.ArrowException, OSError, KeyError, TypeError) as error:
            raise DataError(f"{redact(url)} is no Parquet file of token counts: {error}") from error


def joined_token_counts(
    parts: Iterable[Iterable[SourceCounts]], *, by_source: bool
) -> Iterator[SourceCounts]:
    """Yield how often each id occurs in several tokens folders together."""
    merged = heapq.merge(*parts, key=lambda counts: counts.source or "")
    for source, same in groupby(merged, lambda counts: counts.source if by_source else None):
        total = reduce(lambda one, other: one._replace(counts=one.counts + other.counts), same)
        yield total._replace(source=source)


def _read_sources(
    file: pa.parquet.ParquetFile, tokens: Mapping[str | None, int], url: str
) -> Iterator[SourceCounts]:
    """Yield each source, whose rows are some row groups of their own."""
    size = file.metadata.num_rows // max(len(tokens), 1)
    groups = iter(range(file.num_row_groups))
    for source, expected in tokens.items():
        table = _SCHEMA.empty_table() if source is None else _schema(True).empty_table()
        while table.num_rows < size and (group := next(groups, None)) is not None:
            more = file.read_row_group(group, use_threads=False).replace_schema_metadata(None)
            table = pa.concat_tables([table, more])
        counts = table["count"].to_numpy()
        right = table.num_rows == size and (
            source is None or table["source"].unique().to_pylist() == [source]
        )
        if not right or int(counts.sum()) != expected or counts.min(initial=0) < 0:
            raise DataError(f"{url} has other tokens than the manifest of its folder")
        yield SourceCounts(source, table["id"].to_numpy(), counts)


def _schema(by_source: bool) -> pa.Schema:
    return pa.schema([("source", pa.large_string()), *_SCHEMA]) if by_source else _SCHEMA


def _metadata(fingerprint: str) -> bytes:
    return json.dumps({"tokenizer": fingerprint, "version": 1}).encode()
