"""The parts of a counts folder: Parquet files of words.

A part has the words of one partition, sorted by their bytes: `word` (string) and `count` (int64),
and on request the position where each word occurs first. With sources it has the column `source`
before them, and is sorted by source first. Parts depend on the documents alone, not on the files
that they came in, nor on how those were split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from bpe_beam import _native
from bpe_beam.counts.manifest import CountsManifest, CountsPart
from bpe_beam.counts.word_table import WordTable, schema_of, string_buffers, string_bytes
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import HashingFile, read_hashed
from bpe_beam.storage.parquet_file import ParquetFile

_ROW_GROUP = 1 << 20
_MAX_INT64 = 2**63 - 1


def write_part(
    storage: Storage,
    folder: str,
    name: str,
    words: Mapping[str | None, Iterable[pa.RecordBatch]],
    with_places: bool,
) -> CountsPart:
    """Write a part, whole or not at all; equal words give equal bytes.

    Returns:
        The part as the manifest has it.
    """
    by_source = None not in words
    rows: Counter[str] = Counter()
    every = WordTable()
    word_bytes = 0

    def blocks() -> Iterator[pa.RecordBatch]:
        nonlocal word_bytes
        for source in sorted(words, key=str):
            for block in words[source]:
                if source is None:
                    word_bytes += string_bytes(block.column("word"))
                    yield block
                else:
                    rows[source] += block.num_rows
                    every.add_block(block.select(["word", "count"]))
                    column = pa.repeat(pa.scalar(source, pa.large_string()), block.num_rows)
                    yield pa.RecordBatch.from_arrays([column, *block.columns], schema=schema)

    schema = schema_of(with_places, by_source)
    repeated = [column for column in schema.names if column != "word"]
    unique_words = 0
    with storage.create(storage.join(folder, name)) as output:
        file = HashingFile(output)
        with ParquetFile(file, schema, dictionary=repeated) as writer:
            for table in _row_groups(blocks(), schema):
                writer.add(table)
                unique_words += table.num_rows
    if by_source:
        unique_words = len(every)
        word_bytes = sum(string_bytes(block.column("word")) for block in every.drain())
    sources = dict(rows) if by_source else None
    return CountsPart(name, unique_words, word_bytes, file.bytes, file.sha256, sources)


def words_of(
    tables: Mapping[str, WordTable], by_source: bool
) -> Mapping[str | None, Iterable[pa.RecordBatch]]:
    """Return the words of tables, for `write_part`; they are removed from the tables."""
    if by_source:
        return {source: table.drain() for source, table in tables.items()}
    return {None: chain.from_iterable(table.drain() for table in tables.values())}


def _row_groups(blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield row groups of a size that does not depend on the sizes of the blocks."""
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for block in blocks:
        gathered.append(block)
        rows += block.num_rows
        while rows >= _ROW_GROUP:
            table = pa.Table.from_batches(gathered, schema)
            yield table.slice(0, _ROW_GROUP)
            gathered = table.slice(_ROW_GROUP).to_batches()
            rows -= _ROW_GROUP
    if rows:
        yield pa.Table.from_batches(gathered, schema)


def read_part(
    storage: Storage, folder: str, manifest: CountsManifest, part: CountsPart
) -> dict[str | None, pa.Table]:
    """Return the words of one part by source, compared with the manifest and checked.

    The sources are in order; without sources, the only key is None.
    """
    url = storage.join(folder, part.name)
    data = read_hashed(storage, url, part.sha256)
    schema = schema_of(manifest.with_places, manifest.sources is not None)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        # Before anything is decompressed: the rows may be more than memory allows.
        if not file.schema_arrow.equals(schema) or file.metadata.num_rows != part.rows:
            raise DataError(f"{redact(url)}: expected {part.rows} rows of {schema.names}")
        # With threads, one of pyarrow's may release `data` after this has returned: at the end of
        # the interpreter that aborts the process.
        table = file.read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{redact(url)} is no Parquet file of words: {error}") from error
    sources: dict[str | None, pa.Table] = {None: table}
    if part.sources is not None:
        sources, start = {}, 0
        for source, rows in sorted(part.sources.items()):
            sources[source] = table.slice(start, rows)
            start += rows
    fault = _fault(table, sources)
    if fault:
        raise DataError(f"{redact(url)}: {fault}; no job of bpe-beam wrote it")
    if part.sources is None:
        return sources
    return {source: words.drop_columns(["source"]) for source, words in sources.items()}


def _fault(table: pa.Table, sources: Mapping[str | None, pa.Table]) -> str | None:
    """Return what is wrong with the rows of a part; None if nothing is."""
    if table.num_rows == 0:
        return None
    for name in table.schema.names:
        if table[name].null_count:
            return f"the column {name} has nulls"
    if table["count"].to_numpy().min() < 1:
        return "a count is below 1"
    for source, own in sources.items():
        if source is not None and own["source"].unique().to_pylist() != [source]:
            return "its sources differ from the sources in the manifest, in order"
        if not _native.texts_ascend(*string_buffers(own["word"].combine_chunks())):
            return "a word is empty, or its words are out of order"
    return None


def iter_words(
    storage: Storage,
    folder: str,
    manifest: CountsManifest,
    factors: Mapping[str, int] | None = None,
) -> Iterator[pa.Table]:
    """See `read_part` and `added_up`; yields the words of each part in order."""
    for part in manifest.parts:
        words = read_part(storage, folder, manifest, part)
        yield added_up(words, manifest.with_places, factors)


def added_up(
    words: Mapping[str | None, pa.Table],
    with_places: bool,
    factors: Mapping[str, int] | None = None,
) -> pa.Table:
    """Return the words of a part in order, added up over all sources."""
    if None in words:
        return words[None]
    every = WordTable(with_places=with_places)
    for source, own in words.items():
        factor = 1 if factors is None else factors[str(source)]
        if factor == 0 or own.num_rows == 0:
            continue
        if factor != 1:
            counts = own["count"].to_numpy()
            if int(counts.max()) * factor > _MAX_INT64:
                raise DataError(f"a count multiplied by {factor:,} is beyond 64 bits")
            own = own.set_column(1, "count", pa.array(counts * factor))
        for block in own.to_batches():
            every.add_block(block)
    return pa.Table.from_batches(every.drain(), schema_of(with_places))
