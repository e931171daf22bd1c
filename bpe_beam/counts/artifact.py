"""The parts of a counts folder: Parquet files of words.

A part holds the words of one partition, sorted by their bytes: `word` (string) and `count`
(int64), and on request where each word occurred first. With sources it has the column `source`
before them, and is sorted by source first. Parts are a function of the documents alone, whatever
files they came in and however those were cut. The manifest says by which normalizer and
pre-tokenizer the words were made, so that nobody trains on words of another kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bpe_beam.counts.manifest import CountsManifest, CountsPart
from bpe_beam.counts.word_table import WordTable, schema_of
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

_ROW_GROUP = 1 << 20


def write_part(
    storage: Storage, folder: str, name: str, blocks: Iterable[pa.RecordBatch], with_places: bool
) -> CountsPart:
    """Writes one part without sources, whole or not at all; equal blocks give equal bytes.

    Args:
        storage: Where to.
        folder: The counts folder.
        name: See `part_name`.
        blocks: The partition's words in order. Held until a row group is full.
        with_places: Whether the blocks carry places.
    """
    word_bytes = 0

    def measured() -> Iterator[pa.RecordBatch]:
        nonlocal word_bytes
        for block in blocks:
            word_bytes += _word_bytes(block)
            yield block

    rows, size, sha256 = _write(storage, folder, name, measured(), schema_of(with_places))
    return CountsPart(name, rows, word_bytes, size, sha256)


def write_sources_part(
    storage: Storage,
    folder: str,
    name: str,
    tables: Mapping[str, WordTable],
    with_places: bool,
) -> CountsPart:
    """Writes one part with sources, whole or not at all; equal tables give equal bytes.

    Args:
        storage: Where to.
        folder: The counts folder.
        name: See `part_name`.
        tables: The partition's words by source; emptied as they are written.
        with_places: Whether the tables have places.
    """
    sources = {source: len(tables[source]) for source in sorted(tables) if len(tables[source])}
    every = WordTable()

    def blocks() -> Iterator[pa.RecordBatch]:
        for source in sources:
            for _, block in tables[source].blocks(partitions=1):
                every.add_block(block.select(["word", "count"]))
                yield with_source(block, source)
            tables[source].clear()

    schema = schema_of(with_places, with_sources=True)
    _, size, sha256 = _write(storage, folder, name, blocks(), schema)
    word_bytes = sum(_word_bytes(block) for _, block in every.blocks(partitions=1))
    return CountsPart(name, len(every), word_bytes, size, sha256, sources)


def with_source(block: pa.RecordBatch, source: str) -> pa.RecordBatch:
    """A block of one source's words with the column that says so."""
    column = pa.repeat(pa.scalar(source, pa.large_string()), block.num_rows)
    schema = schema_of("first_document" in block.schema.names, with_sources=True)
    return pa.RecordBatch.from_arrays([column, *block.columns], schema=schema)


def _write(
    storage: Storage, folder: str, name: str, blocks: Iterable[pa.RecordBatch], schema: pa.Schema
) -> tuple[int, int, str]:
    """Writes a Parquet file; gives its rows, its size and its SHA-256."""
    rows = 0
    with storage.create(storage.join(folder, name)) as file:
        hashing = HashingFile(file)
        sink = pa.PythonFile(hashing, mode="w")
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for table in _row_groups(blocks, schema):
                writer.write_table(table)
                rows += table.num_rows
    return rows, hashing.bytes, hashing.sha256


def _word_bytes(block: pa.RecordBatch) -> int:
    return int(pc.sum(pc.binary_length(block.column("word"))).as_py() or 0)


def _row_groups(blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Gathers blocks to row groups of a size that does not depend on the blocks' sizes."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for block in blocks:
        held.append(block)
        rows += block.num_rows
        while rows >= _ROW_GROUP:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, _ROW_GROUP)
            held = table.slice(_ROW_GROUP).to_batches()
            rows -= _ROW_GROUP
    if rows:
        yield pa.Table.from_batches(held, schema)


def iter_parts(storage: Storage, folder: str, manifest: CountsManifest) -> Iterator[pa.Table]:
    """The parts of a counts folder as they stand, one after another; see `read_part`."""
    for part in manifest.parts:
        yield read_part(storage, folder, manifest, part)


def read_part(
    storage: Storage, folder: str, manifest: CountsManifest, part: CountsPart
) -> pa.Table:
    """One part, checked against the manifest and for what every part keeps to.

    Raises:
        DataError: A part that is missing, or is not what was written, or that no job writes: other
            columns, nulls, counts below 1, words out of order or more than once.
    """
    url = storage.join(folder, part.name)
    data = storage.read_bytes(url)
    if hashlib.sha256(data).hexdigest() != part.sha256:
        raise DataError(f"{url} is not the file that was written: its SHA-256 differs")
    schema = schema_of(manifest.with_places, manifest.sources is not None)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        # Before anything is unpacked: its rows may be more than memory holds.
        if not file.schema_arrow.equals(schema) or file.metadata.num_rows != part.rows:
            raise DataError(f"{url}: expected {part.rows} rows of {schema.names}")
        # With threads, one of pyarrow's may release `data` after this has returned: at the end of
        # the interpreter that aborts the process.
        table = file.read(use_threads=False)
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{url} is no Parquet file of words: {error}") from error
    fault = _fault(table, part)
    if fault:
        raise DataError(f"{url}: {fault}; no job of bpe-beam wrote it")
    return table


def _fault(table: pa.Table, part: CountsPart) -> str | None:
    """What is wrong with a part's rows, if anything."""
    if table.num_rows == 0:
        return None
    for name in table.schema.names:
        if table[name].null_count:
            return f"the column {name} holds nulls"
    if pc.min(table["count"]).as_py() < 1:
        return "a count is below 1"
    words = table["word"]
    if pc.min(pc.binary_length(words)).as_py() < 1:
        return "a word is empty"
    start = 0
    for source, rows in _sources(table, part):
        if source is not None and not pc.all(pc.equal(table["source"][start:rows], source)).as_py():
            return "its sources are not those of the manifest, in order"
        piece = words[start:rows]
        if not pc.all(pc.less(piece[:-1], piece[1:]), min_count=0).as_py():
            return "its words are out of order"
        start = rows
    return None


def _sources(table: pa.Table, part: CountsPart) -> Iterator[tuple[str | None, int]]:
    """Each source, in order, and the row that its words end before."""
    end = 0
    for source, rows in (
        {None: table.num_rows}.items() if part.sources is None else sorted(part.sources.items())
    ):
        end += rows
        yield source, end


def iter_sources(table: pa.Table, part: CountsPart) -> Iterator[tuple[str | None, pa.Table]]:
    """What `read_part` gave, cut by source; None is the source where there are none."""
    start = 0
    for source, end in _sources(table, part):
        piece = table.slice(start, end - start)
        yield source, piece if source is None else piece.drop_columns(["source"])
        start = end


def iter_words(
    storage: Storage,
    folder: str,
    manifest: CountsManifest,
    factors: Mapping[str, int] | None = None,
) -> Iterator[pa.Table]:
    """The words of each part in order, those of all sources added up: as counted without sources.

    Args:
        storage: The door to storage.
        folder: The counts folder.
        manifest: Its manifest.
        factors: See `added_up`; only with sources.

    Raises:
        DataError: As `read_part`; or counts that are beyond 64 bits.
    """
    for part in manifest.parts:
        table = read_part(storage, folder, manifest, part)
        if part.sources is not None:
            table = added_up(table, part, manifest.with_places, factors)
        yield table


def added_up(
    table: pa.Table,
    part: CountsPart,
    with_places: bool,
    factors: Mapping[str, int] | None = None,
) -> pa.Table:
    """The words of a part in order, those of all sources added up.

    Args:
        table: What `read_part` gave.
        part: Of this part.
        with_places: Whether it has places.
        factors: What the counts of each source are multiplied by; 0 leaves it out. None: as they
            are.

    Raises:
        DataError: A count, or a sum of counts, that is beyond 64 bits.
    """
    every = WordTable(with_places=with_places)
    for source, words in iter_sources(table, part):
        factor = 1 if factors is None else factors[str(source)]
        if factor == 0:
            continue
        if factor != 1:
            words = words.set_column(1, "count", _times(words["count"], factor))
        for block in words.to_batches():
            every.add_block(block)
    blocks = [block for _, block in every.blocks(partitions=1)]
    return pa.Table.from_batches(blocks, schema_of(with_places))


def _times(counts: pa.ChunkedArray, factor: int) -> pa.ChunkedArray:
    try:
        return pc.multiply_checked(counts, pa.scalar(factor, pa.int64()))
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DataError(f"a count multiplied by {factor:,} is beyond 64 bits") from error
