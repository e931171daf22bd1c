"""A split to its counts file, and the blocks of a partition to its Parquet part.

A split is counted into one table. Its words go to a file of blocks in the run's folder
(`work/counts-00003-of-00012.blocks`), at most `BLOCK_BYTES` a block, and only the blocks' places
travel through the shuffle. So a finished split survives a killed job, and no runner holds words. A
table that has grown to its limit within a split is written out and begun anew. A partition's
worker then streams its blocks into one table and writes its part: it holds that partition's unique
words, and one block.

With sources there is a table for each in both places; what is said of a table's memory holds for
all of them together.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from bpe_beam import progress
from bpe_beam.corpus import ReadSettings
from bpe_beam.corpus.slices import Edges
from bpe_beam.counts.artifact import write_part, write_sources_part
from bpe_beam.counts.manifest import CountsPart, check_sources, part_name
from bpe_beam.counts.word_counts import PARTITIONS, WordCounts, decode_block, encode_block
from bpe_beam.splits import measures
from bpe_beam.splits.source_tables import NO_SOURCE, SourceTables
from bpe_beam.splits.work import (
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

MADE_OF = "made_of"
"""In a part's receipt, see `made_of`: a part stands only together with the splits it is made of."""

BlockPlace = tuple[str, str, int, int, str]
"""Where a block stands: the URL of its counts file and that file's SHA-256, the block's first byte
and length; and the source of its words, or NO_SOURCE."""


@dataclass(frozen=True)
class CountTask:
    """What the workers of a count job need to know; plain and picklable.

    Attributes:
        receipts: The run's folder, and how finished pieces are recorded there.
        reading: How splits become documents.
        counting: Settings of `WordCounts`.
        splits: How many splits the plan has.
        by_source: Keep the counts of each source apart.
        pool: The processes that count, see `worker_processes`; None: the worker itself does.
        stage: The progress stage that finished splits are reported to.
    """

    receipts: Receipts
    reading: ReadSettings
    counting: Mapping[str, Any]
    splits: int
    by_source: bool = False
    pool: str | None = None
    stage: str = "count"

    def blocks_url(self, split: int) -> str:
        """The counts file of a split."""
        storage = self.receipts.storage
        return storage.join(self.receipts.url, "work", blocks_name(split, self.splits))


def blocks_name(split: int, splits: int) -> str:
    """The name of a split's counts file in `work`."""
    return f"{piece_name('counts', split, splits)}.blocks"


class CountedSplit(NamedTuple):
    """What comes of a split: where its blocks stand by partition, and what was measured."""

    places: list[tuple[int, BlockPlace]]
    counts: dict[str, int]
    values: dict[str, int]


def count_split(task: CountTask, element: str) -> CountedSplit:
    """Counts one split into its counts file, and records it."""
    started = time.monotonic()
    work = SplitWork.from_json(element)
    require_seen(task.receipts.storage, task.receipts.url, work.plan.root)
    documents = size = words = 0
    counts = SourceTables(task.counting, task.by_source)
    seen: list[Edges] = []
    with ExitStack() as stack:
        rejects = stack.enter_context(reject_writer(task.receipts, work))
        url = task.blocks_url(work.split.index)
        file = _BlocksFile(stack.enter_context(task.receipts.storage.create(url)))
        for batch in read_texts(
            task.receipts.storage, work, task.reading, rejects.add, seen.append
        ):
            words += counts.add(batch)
            documents += batch.num_rows
            size += text_bytes(batch)
            progress.report(task.stage, documents=batch.num_rows, bytes=text_bytes(batch))
            if counts.memory_bytes > TABLE_BYTES:
                file.write(counts)
        file.write(counts)
    name = blocks_name(work.split.index, task.splits)
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
            **({"sources": dict(sorted(counts.facts.items()))} if task.by_source else {}),
            "rejects": dict(sorted(rejects.counts.items())),
            "blocks": file.blocks,
            **reading_facts(work.plan, work.split, seen),
        },
    )
    progress.report(task.stage, done=1)
    return CountedSplit(
        list(block_places(url, file.hash.hexdigest(), file.blocks)),
        {
            measures.DOCUMENTS_READ: documents,
            measures.TEXT_BYTES_READ: size,
            measures.RECORDS_REJECTED: rejects.total,
            measures.WORDS_COUNTED: words,
            measures.COUNT_BLOCKS: len(file.blocks),
            measures.COUNT_BLOCK_BYTES: file.bytes,
        },
        split_values(documents, size, started),
    )


def block_places(
    url: str, sha256: str, rows: Iterable[list[Any]]
) -> Iterator[tuple[int, BlockPlace]]:
    """The places of a split's blocks by partition, from its counts file and its receipt's rows."""
    for partition, start, size, *source in rows:
        yield partition, (url, sha256, start, size, source[0] if source else NO_SOURCE)


def made_of(places: Iterable[BlockPlace]) -> str:
    """What tells the blocks that a part was made of from others, wherever they stand."""
    blocks = sorted(place[1:] for place in places if place[3])
    return hashlib.sha256(repr(blocks).encode("utf-8", "surrogatepass")).hexdigest()


class _BlocksFile:
    """Writes a table's blocks one after another, and keeps where each stands."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.hash = hashlib.sha256()
        self.bytes = 0
        self.blocks: list[list[Any]] = []  # partition, first byte, length, and source if any

    def write(self, counts: SourceTables) -> None:
        """Writes all words of all tables and empties them."""
        for source, table in counts.tables():
            for partition, block in table.blocks(PARTITIONS):
                data = encode_block(block)
                self.file.write(data)
                self.hash.update(data)
                row = [partition, self.bytes, len(data)]
                self.blocks.append([*row, source] if counts.by_source else row)
                self.bytes += len(data)
            table.clear()


def write_partition(task: CountTask, partition: int, places: Iterable[BlockPlace]) -> CountsPart:
    """Adds the blocks of one partition up, writes its words, and records the part."""
    name = part_name(partition, PARTITIONS)
    places = list(places)
    tables: dict[str, WordCounts] = {}
    _add(task, tables, places)
    part = _write(task, name, tables)
    file = {"name": name, "bytes": part.bytes, "sha256": part.sha256}
    facts = {**part.facts(), MADE_OF: made_of(places)}
    task.receipts.write_receipt(piece_name("part", partition, PARTITIONS), [file], facts)
    return part


def _write(task: CountTask, name: str, tables: dict[str, WordCounts]) -> CountsPart:
    to = (task.receipts.storage, task.receipts.url, name)
    with_places = task.counting["with_places"]
    if task.by_source:
        return write_sources_part(*to, tables, with_places)
    blocks = (block for table in tables.values() for _, block in table.blocks(partitions=1))
    return write_part(*to, blocks, with_places)


def _add(task: CountTask, tables: dict[str, WordCounts], places: Iterable[BlockPlace]) -> None:
    """Adds blocks in the order of their files, each file opened once."""
    storage = task.receipts.storage
    opened = ""
    with ExitStack() as stack:
        for url, _, start, size, source in sorted(place for place in places if place[3]):
            if url != opened:
                stack.close()
                file = stack.enter_context(storage.open(url))
                opened = url
            if source not in tables:
                check_sources([*tables, source])
                tables[source] = WordCounts(**task.counting)
            file.seek(start)
            block = decode_block(file.read(size), tables[source].with_places)
            tables[source].add_block(block)
