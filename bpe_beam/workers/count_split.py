"""A split to its counts file, and the blocks of a partition to its Parquet part.

A split is counted into one table. Its words go to a file in the run's folder
(`work/counts-00003-of-00012.words`), ordered by partition: for each a range of the file, of blocks
of at most `BLOCK_BYTES`. Only the places of the ranges travel through the shuffle. So a finished
split survives a killed job, and no runner holds words. A table that has grown to its limit within a
split, or within a document, is written out and begun anew. A partition's worker then streams its
ranges into one table and writes its part: it holds that partition's unique words, and one block.

With sources there is a table for each in both places; what is said of a table's memory holds for
all of them together. The blocks of all sources share a range, each behind the name of its source:
how many ranges there are, and what receipts and the driver hold, does not grow with the sources.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from bpe_beam import progress
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.slices import Edges
from bpe_beam.counts.artifact import write_part, write_sources_part
from bpe_beam.counts.manifest import CountsPart, check_sources, part_name
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import PARTITIONS, WordTable, decode_block, encode_block
from bpe_beam.errors import DataError
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.source_tables import SourceBlocks, SourceTables
from bpe_beam.workers.split_task import (
    Receipts,
    SplitWork,
    file_facts,
    piece_name,
    read_texts,
    reading_facts,
    reject_writer,
    rejects_name,
    require_seen,
    split_values,
    text_bytes,
)

TABLE_BYTES = 256_000_000
"""What a split's table may hold before its words are written out."""

RANGES = "ranges"
"""In a split's receipt: partition, first byte and length of each range of its counts file."""

SOURCES = "sources"
"""In a split's receipt: `documents`, `text_bytes` and `words` by source, as JSON text. The driver
holds all receipts, and parsed this would take ten times as much."""

MADE_OF = "made_of"
"""In a part's receipt, see `made_of`: a part stands only together with the splits it is made of."""

RangePlace = tuple[str, str, int, int]
"""Where a partition's blocks stand: the URL of a counts file and that file's SHA-256, the first
byte of the range and its length. A length of 0 says that there are none."""

_HEAD = struct.Struct("<IQ")
"""Stands before each block: the bytes of its source's name, which follows, and of the block."""


@dataclass(frozen=True)
class CountTask:
    """What the workers of a count job need to know; plain and picklable.

    Attributes:
        receipts: The run's folder, and how finished pieces are recorded there.
        reading: How splits become documents.
        rules: How texts are split into words.
        splits: How many splits the plan has.
        by_source: Keep the counts of each source apart.
        pool: The processes that count, see `worker_processes`; None: the worker itself does.
        stage: The progress stage, in bytes, that work is reported to.
    """

    receipts: Receipts
    reading: ReadSettings
    rules: WordRules
    splits: int
    by_source: bool = False
    pool: str | None = None
    stage: str = "count"

    def words_url(self, split: int) -> str:
        """The counts file of a split."""
        storage = self.receipts.storage
        return storage.join(self.receipts.url, "work", words_name(split, self.splits))


def words_name(split: int, splits: int) -> str:
    """The name of a split's counts file in `work`."""
    return f"{piece_name('counts', split, splits)}.words"


class CountedSplit(NamedTuple):
    """What comes of a split: where its words stand by partition, and what was measured."""

    places: list[tuple[int, RangePlace]]
    counts: dict[str, int]
    values: dict[str, int]


def count_split(task: CountTask, element: str) -> CountedSplit:
    """Counts one split into its counts file, and records it."""
    started = time.monotonic()
    work = SplitWork.from_json(element)
    require_seen(task.receipts.storage, task.receipts.url, work.plan.root)
    documents = size = words = 0
    seen: list[Edges] = []
    with ExitStack() as stack:
        rejects = stack.enter_context(reject_writer(task.receipts, work))
        url = task.words_url(work.split.index)
        file = _WordsFile(stack.enter_context(task.receipts.storage.create(url)))
        counts = SourceTables(task.rules, task.by_source, max_bytes=TABLE_BYTES, on_full=file.write)
        for batch in read_texts(
            task.receipts.storage, work, task.reading, rejects.add, seen.append, task.stage
        ):
            words += counts.add(batch)
            documents += batch.num_rows
            size += text_bytes(batch)
            progress.report(task.stage, documents=batch.num_rows, bytes=text_bytes(batch))
        file.write(counts.take())
    name = words_name(work.split.index, task.splits)
    files = [{"name": f"work/{name}", "bytes": file.bytes, "sha256": file.hash.hexdigest()}]
    if rejects.total:
        files.append(file_facts(task.receipts, rejects_name(work.split.index, task.splits)))
    task.receipts.write_receipt(
        piece_name("counts", work.split.index, task.splits),
        files,
        {
            "documents": documents,
            "text_bytes": size,
            "words": words,
            **({SOURCES: json.dumps(counts.facts, sort_keys=True)} if task.by_source else {}),
            **rejects.to_json(),
            RANGES: file.ranges,
            **reading_facts(work.plan, work.split, seen),
        },
    )
    return CountedSplit(
        list(range_places(url, file.hash.hexdigest(), file.ranges)),
        {
            measures.DOCUMENTS_READ: documents,
            measures.TEXT_BYTES_READ: size,
            measures.RECORDS_REJECTED: rejects.total,
            measures.STORED_BYTES_LOST: sum(loss.bytes for loss in rejects.losses),
            measures.WORDS_COUNTED: words,
            measures.COUNT_BLOCKS: file.blocks,
            measures.COUNT_BLOCK_BYTES: file.bytes,
        },
        split_values(documents, size, started),
    )


def range_places(
    url: str, sha256: str, rows: Iterable[list[int]]
) -> Iterator[tuple[int, RangePlace]]:
    """The places of a split's words by partition.

    Args:
        url: The split's counts file.
        sha256: Of this file.
        rows: As the split's receipt holds them, see `RANGES`.
    """
    for partition, start, size in rows:
        yield partition, (url, sha256, start, size)


def made_of(places: Iterable[RangePlace]) -> str:
    """What tells the words that a part was made of from others, wherever they stand."""
    ranges = sorted(place[1:] for place in places if place[3])
    return hashlib.sha256(repr(ranges).encode()).hexdigest()


class _WordsFile:
    """Writes the words of tables one after another, and keeps where those of a partition stand."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.hash = hashlib.sha256()
        self.bytes = 0
        self.blocks = 0
        self.ranges: list[list[int]] = []  # see RANGES

    def write(self, words: SourceBlocks) -> None:
        """Writes the words that all tables held."""
        partitions: dict[int, list[tuple[str, pa.RecordBatch]]] = {}
        for source, blocks in words.items():
            for partition, block in blocks:
                partitions.setdefault(partition, []).append((source, block))
        for partition in sorted(partitions):
            start = self.bytes
            for source, block in partitions[partition]:
                self._write_block(source.encode("utf-8", "surrogatepass"), encode_block(block))
            self.ranges.append([partition, start, self.bytes - start])

    def _write_block(self, source: bytes, block: bytes) -> None:
        for data in (_HEAD.pack(len(source), len(block)), source, block):
            self.file.write(data)
            self.hash.update(data)
            self.bytes += len(data)
        self.blocks += 1


def write_partition(task: CountTask, partition: int, places: Iterable[RangePlace]) -> CountsPart:
    """Adds the blocks of one partition up, writes its words, and records the part."""
    name = part_name(partition, PARTITIONS)
    places = list(places)
    tables: dict[str, WordTable] = {}
    _add(task, tables, places)
    part = _write(task, name, tables)
    file = {"name": name, "bytes": part.bytes, "sha256": part.sha256}
    facts = {**part.facts(), MADE_OF: made_of(places)}
    task.receipts.write_receipt(piece_name("part", partition, PARTITIONS), [file], facts)
    progress.report(task.stage, parts_written=1)
    return part


def _write(task: CountTask, name: str, tables: dict[str, WordTable]) -> CountsPart:
    to = (task.receipts.storage, task.receipts.url, name)
    with_places = task.rules.with_places
    if task.by_source:
        return write_sources_part(*to, tables, with_places)
    blocks = (block for table in tables.values() for _, block in table.blocks(partitions=1))
    return write_part(*to, blocks, with_places)


def _add(task: CountTask, tables: dict[str, WordTable], places: Iterable[RangePlace]) -> None:
    """Adds blocks in the order of their files, each file opened once."""
    storage = task.receipts.storage
    opened = ""
    with ExitStack() as stack:
        for url, _, start, size in sorted(place for place in places if place[3]):
            if url != opened:
                stack.close()
                file = stack.enter_context(storage.open(url))
                opened = url
            file.seek(start)
            for source, data in _read_blocks(file, size, url):
                if source not in tables:
                    check_sources([*tables, source])
                    tables[source] = WordTable(with_places=task.rules.with_places)
                tables[source].add_block(decode_block(data, tables[source].with_places))


def _read_blocks(file: BinaryIO, size: int, url: str) -> Iterator[tuple[str, bytes]]:
    """The blocks of a range with their sources, from where the file is, one at a time.

    Raises:
        DataError: The file ends before the range does, or its blocks do not fill the range.
    """
    left = size
    while left:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise DataError(f"{url} ends in the middle of its words")
        name_bytes, block_bytes = _HEAD.unpack(head)
        left -= _HEAD.size + name_bytes + block_bytes
        if left < 0:
            raise DataError(f"{url} does not hold the words that its receipt names")
        name, block = file.read(name_bytes), file.read(block_bytes)
        if len(name) < name_bytes or len(block) < block_bytes:
            raise DataError(f"{url} ends in the middle of its words")
        yield name.decode("utf-8", "surrogatepass"), block
