"""`CountSplits`, what the count job is made of: splits to counts files, those to Parquet parts.

A split is counted into one table. Its words go to a file of blocks in the job's folder
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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import apache_beam as beam

from bpe_beam import progress
from bpe_beam.corpus import ReadSettings
from bpe_beam.corpus.slices import Edges
from bpe_beam.counts.artifact import part_name, write_part, write_sources_part
from bpe_beam.counts.manifest import CountsPart, check_sources
from bpe_beam.counts.word_counts import PARTITIONS, WordCounts, decode_block, encode_block
from bpe_beam.transforms import counters
from bpe_beam.transforms.given_elements import GivenElements
from bpe_beam.transforms.source_tables import NO_SOURCE, SourceTables
from bpe_beam.transforms.split_work import (
    Receipts,
    SplitWork,
    SpreadWorks,
    file_facts,
    piece_name,
    read_texts,
    reading_facts,
    reject_writer,
    rejects_name,
    text_bytes,
)

TABLE_BYTES = 256_000_000
"""What a split's table may hold before its words are written out."""

_WORKER_RAM = "2GB"

BlockPlace = tuple[int, int, int, str]
"""Where a block stands: the split, and the first byte and the length in its counts file; and the
source of its words, or NO_SOURCE."""


@dataclass(frozen=True)
class CountTask:
    """What the workers of a count job need to know; plain and picklable.

    Attributes:
        receipts: The job's folder, and how finished pieces are recorded there.
        reading: How splits become documents.
        counting: Settings of `WordCounts`.
        splits: How many splits the plan has.
        by_source: Keep the counts of each source apart.
        stage: The progress stage that finished splits are reported to.
    """

    receipts: Receipts
    reading: ReadSettings
    counting: Mapping[str, Any]
    splits: int
    by_source: bool = False
    stage: str = "count"

    def blocks_url(self, split: int) -> str:
        """The counts file of a split."""
        storage = self.receipts.storage
        return storage.join(self.receipts.url, "work", blocks_name(split, self.splits))


def blocks_name(split: int, splits: int) -> str:
    """The name of a split's counts file in `work`."""
    return f"{piece_name('counts', split, splits)}.blocks"


@beam.typehints.with_output_types(str)
class CountSplits(beam.PTransform):
    """Counts splits, and writes the parts of a counts folder; the output is the parts' names.

    Args:
        task: The job.
        works: The splits that are not counted yet; see `works_of`.
        known: Places of the blocks of splits that were counted before, by partition.
        partitions: The parts that are not written yet.
    """

    def __init__(
        self,
        task: CountTask,
        works: Iterable[str],
        known: Iterable[tuple[int, BlockPlace]],
        partitions: Iterable[int],
    ) -> None:
        super().__init__()
        # Of all steps: those that differ in their hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.works = list(works)
        self.partitions = frozenset(partitions)
        # Every part gets an opener, a block of no length, so that one without words is written.
        self.known = [(partition, (0, 0, 0, NO_SOURCE)) for partition in sorted(self.partitions)]
        self.known += [row for row in known if row[0] in self.partitions]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        counted = (
            begin
            | "Splits" >> SpreadWorks(self.works)
            | "CountSplit" >> beam.ParDo(_CountSplit(self.task, self.partitions))
        )
        known = begin | "KnownBlocks" >> GivenElements(self.known, tuple[int, BlockPlace])
        return (
            (counted, known)
            | "AllBlocks" >> beam.Flatten().with_output_types(tuple[int, BlockPlace])
            | "GatherPartitions" >> beam.GroupByKey()
            | "WritePart" >> beam.ParDo(_WritePart(self.task))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(tuple[int, BlockPlace])
class _CountSplit(beam.DoFn):
    """A split to its counts file; out come the blocks' places by partition."""

    def __init__(self, task: CountTask, partitions: frozenset[int]) -> None:
        self.task = task
        self.partitions = partitions

    def process(self, element: str) -> Iterator[tuple[int, BlockPlace]]:
        """Counts one split."""
        task = self.task
        work = SplitWork.from_json(element)
        facts = {"documents": 0, "text_bytes": 0, "words": 0}
        counts = SourceTables(task.counting, task.by_source)
        seen: list[Edges] = []
        with ExitStack() as stack:
            rejects = stack.enter_context(reject_writer(task.receipts, work))
            url = task.blocks_url(work.split.index)
            file = _BlocksFile(stack.enter_context(task.receipts.storage.create(url)))
            for batch in read_texts(
                task.receipts.storage, work, task.reading, rejects.add, seen.append
            ):
                words = counts.add(batch)
                _count(facts, batch.num_rows, text_bytes(batch), words)
                progress.report(task.stage, documents=batch.num_rows, bytes=text_bytes(batch))
                if counts.memory_bytes > TABLE_BYTES:
                    file.write(counts)
            file.write(counts)
        name = blocks_name(work.split.index, task.splits)
        files = [{"name": f"work/{name}", "bytes": file.bytes, "sha256": file.hash.hexdigest()}]
        if rejects.total:
            files.append(file_facts(task.receipts, rejects_name(work.split.index, task.splits)))
        counters.counter(counters.RECORDS_REJECTED).inc(rejects.total)
        task.receipts.write_receipt(
            piece_name("counts", work.split.index, task.splits),
            files,
            {
                **facts,
                **({"sources": dict(sorted(counts.facts.items()))} if task.by_source else {}),
                "rejects": dict(sorted(rejects.counts.items())),
                "blocks": file.blocks,
                **reading_facts(work.plan, work.split, seen),
            },
        )
        progress.report(task.stage, done=1)
        for partition, place in block_places(work.split.index, file.blocks):
            if partition in self.partitions:
                yield partition, place


def block_places(split: int, rows: Iterable[list[Any]]) -> Iterator[tuple[int, BlockPlace]]:
    """The places of a split's blocks by partition, from the rows of its receipt."""
    for partition, start, size, *source in rows:
        yield partition, (split, start, size, source[0] if source else NO_SOURCE)


def _count(facts: dict[str, int], documents: int, size: int, words: int) -> None:
    """Adds a batch to a split's facts and to the counters."""
    facts["documents"] += documents
    facts["text_bytes"] += size
    facts["words"] += words
    counters.counter(counters.DOCUMENTS_READ).inc(documents)
    counters.counter(counters.TEXT_BYTES_READ).inc(size)
    counters.counter(counters.WORDS_COUNTED).inc(words)


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
                counters.counter(counters.COUNT_BLOCKS).inc()
                counters.counter(counters.COUNT_BLOCK_BYTES).inc(len(data))
            table.clear()


@beam.typehints.with_input_types(tuple[int, Iterable[BlockPlace]])
@beam.typehints.with_output_types(str)
class _WritePart(beam.DoFn):
    """A partition's blocks to its part."""

    def __init__(self, task: CountTask) -> None:
        self.task = task

    def process(self, element: tuple[int, Iterable[BlockPlace]]) -> Iterator[str]:
        """Adds the blocks of one partition and writes its words."""
        partition, places = element
        task = self.task
        name = part_name(partition, PARTITIONS)
        tables: dict[str, WordCounts] = {}
        self._add(tables, places)
        part = self._write(name, tables)
        counters.counter(counters.UNIQUE_WORDS).inc(part.unique_words)
        file = {"name": name, "bytes": part.bytes, "sha256": part.sha256}
        task.receipts.write_receipt(piece_name("part", partition, PARTITIONS), [file], part.facts())
        yield name

    def _write(self, name: str, tables: dict[str, WordCounts]) -> CountsPart:
        task = self.task
        to = (task.receipts.storage, task.receipts.url, name)
        with_places = task.counting["with_places"]
        if task.by_source:
            return write_sources_part(*to, tables, with_places)
        blocks = (block for table in tables.values() for _, block in table.blocks(partitions=1))
        return write_part(*to, blocks, with_places)

    def _add(self, tables: dict[str, WordCounts], places: Iterable[BlockPlace]) -> None:
        """Adds blocks in the order of their files, each file opened once."""
        storage = self.task.receipts.storage
        opened = -1
        with ExitStack() as stack:
            for split, start, size, source in sorted(place for place in places if place[2]):
                if split != opened:
                    stack.close()
                    file = stack.enter_context(storage.open(self.task.blocks_url(split)))
                    opened = split
                if source not in tables:
                    check_sources([*tables, source])
                    tables[source] = WordCounts(**self.task.counting)
                file.seek(start)
                block = decode_block(file.read(size), tables[source].with_places)
                tables[source].add_block(block)
