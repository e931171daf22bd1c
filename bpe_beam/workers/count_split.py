"""Count a split into its counts file, and the blocks of partitions into their Parquet parts.

The words of a split go to a file in the run's folder (`work/counts-00003-of-00012.words`), ordered
by partition: each partition has blocks of at most `BLOCK_BYTES`, one after another, each with the
name of its source. Only references to a partition's blocks travel. A table that has grown to its
limit within a split, or within a document, is written out and begun anew. The worker of a partition
has in memory its unique words, and one block. A task writes one part, or several of a small corpus,
whose files it keeps in memory.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import pyarrow as pa
from msgspec import Struct

from bpe_beam import progress
from bpe_beam.counts.manifest import CountsPart, check_sources, part_name
from bpe_beam.counts.part_files import words_of, write_part
from bpe_beam.counts.word_table import PARTITIONS, WordRules, WordTable, decode_block, encode_block
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.json_file import Count
from bpe_beam.storage.names import is_local
from bpe_beam.workers.source_tables import SourceBlocks, SourceTables
from bpe_beam.workers.split_reader import CorpusTask, SplitReader, SplitStats
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import TaskResult

REQUESTS_AHEAD, AHEAD_BYTES = 8, 32 << 20
"""The files of a store whose blocks are read at once, and the bytes of them in memory."""

TABLE_BYTES = 256_000_000  # maximum bytes of a split's table; then its words are written out

BlocksReference = tuple[str, str, int, int]
"""The blocks of a partition in a counts file: its URL and SHA-256, their first byte and their
length. A length of 0 means no block."""

_HEAD = struct.Struct("<IQ")
"""Before each block: the bytes of its source's name, which follows, and the bytes of the block."""


class CountedSplit(SplitStats, frozen=True, kw_only=True):
    """The facts about a counted split that its manifest needs: a driver has them of all splits."""

    words: Count
    # `documents`, `text_bytes` and `words` by source, as JSON text, which takes a tenth of
    # the memory of the parsed values.
    sources: str | None = None


class CountStats(CountedSplit, frozen=True, kw_only=True):
    """The receipt's facts about a counted split."""

    blocks: list[list[Count]]  # partition, first byte and length of the blocks in its counts file


class PartsStats(Struct, frozen=True):
    """The receipt's facts about the parts of a task, which are valid only with their splits.

    `made_of` is None if the parts were restored from the manifest of finished counts.
    """

    parts: tuple[CountsPart, ...]
    made_of: str | None = None


class CountTask(CorpusTask, frozen=True, kw_only=True):
    """The settings of a count job for its workers."""

    rules: WordRules
    parts_per_task: int = 1
    stage: str = "count"


def words_name(split: int, splits: int) -> str:
    """Return the name of a split's counts file in the folder of a run or a job."""
    return f"{WORK}/{task_name('counts', split, splits)}.words"


def count_split(task: CountTask, element: str) -> TaskResult:
    """Count one split into its counts file, and write its receipt.

    The outputs are the partitions and the references to their blocks.
    """
    folder = task.folder
    split = SplitReader(task, element)
    number, splits = split.task.split.index, split.task.splits
    name = words_name(number, splits)
    with split.rejects, folder.storage.create(folder.path(name)) as stream:
        file = WordsFile(stream)
        counts = SourceTables(task.rules, task.by_source, max_bytes=TABLE_BYTES, on_full=file.write)
        words = 0
        for batch in split.batches():
            words += counts.add(batch)
            split.add(batch)
        file.write(counts.take())
    info = FileInfo.written(name, file.file)
    stats = CountStats(
        **split.stats(), words=words, blocks=file.references, sources=sources_json(counts)
    )
    files = [info, *split.reject_files()]
    folder.write_receipt(task_name("counts", number, splits), files, stats)
    return split.result(
        list(block_references(folder.path(name), info.sha256, stats.blocks)),
        {
            "documents_read": split.documents,
            "text_bytes_read": split.text_bytes,
            "words_counted": words,
            "count_blocks": file.blocks,
            "count_block_bytes": info.bytes,
        },
    )


def sources_json(counts: SourceTables) -> str | None:
    """Return the totals of each source as receipts have them; None without sources."""
    return json.dumps(counts.totals, sort_keys=True) if counts.by_source else None


def block_references(
    url: str, sha256: str, blocks: Iterable[list[int]]
) -> Iterator[tuple[int, BlocksReference]]:
    """Yield the partitions of a split's words, each with the reference to its blocks."""
    for partition, start, size in blocks:
        yield partition, (url, sha256, start, size)


def made_of(blocks: Iterable[tuple[int, BlocksReference]]) -> str:
    """Return a hash of the blocks that parts are made of, by content; URLs do not matter."""
    added = BlocksHash()
    for contents in sorted(reference[1:] for _, reference in blocks if reference[3]):
        added.add(*contents)
    return added.hexdigest()


class BlocksHash:
    """The hash of `made_of`, of blocks that are added in the order of hash, first byte, length."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._before = "["

    def add(self, sha256: str, start: int, size: int) -> None:
        """Add the blocks of a partition in a counts file."""
        self._hash.update(f"{self._before}{(sha256, start, size)}".encode())
        self._before = ", "

    def hexdigest(self) -> str:
        """Return the hash of the blocks so far."""
        whole = self._hash.copy()
        whole.update(b"]" if self._before == ", " else b"[]")
        return whole.hexdigest()


class WordsFile:
    """A counts file while it is written; for `references` see `CountStats.blocks`."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = HashingFile(file)
        self.blocks = 0
        self.references: list[list[int]] = []

    def write(self, words: SourceBlocks) -> None:
        partitions: dict[int, list[tuple[str, pa.RecordBatch]]] = {}
        for source, blocks in words.items():
            for partition, block in blocks:
                partitions.setdefault(partition, []).append((source, block))
        for partition in sorted(partitions):
            start = self.file.bytes
            for source, block in partitions[partition]:
                name, data = source.encode("utf-8", "surrogatepass"), encode_block(block)
                self.file.write(_HEAD.pack(len(name), len(data)) + name)
                self.file.write(data)
                self.blocks += 1
            self.references.append([partition, start, self.file.bytes - start])


def first_parts(per_task: int) -> range:
    """Return the first part of each task that writes parts, which names the task's receipt."""
    return range(0, PARTITIONS, per_task)


def write_parts(
    task: CountTask, element: tuple[int, Iterable[tuple[int, BlocksReference]]]
) -> TaskResult:
    """Add up the blocks of a task's partitions, write the parts, and write their receipt.

    The outputs are the names of the parts.
    """
    first, blocks = element[0], list(element[1])
    folder, parts = task.folder, []
    # Far from a store, each request counts: several parts are of the same small files.
    kept = functools.cache(folder.storage.read_bytes)
    several = task.parts_per_task > 1
    opened = (lambda url: io.BytesIO(kept(url))) if several else folder.storage.open
    for partition in range(PARTITIONS)[first:][: task.parts_per_task]:
        references = [reference for each, reference in blocks if each == partition]
        words = words_of(_added_up(task, references, opened), task.by_source)
        name = part_name(partition, PARTITIONS)
        parts.append(write_part(folder.storage, folder.url, name, words, task.rules.with_places))
        progress.report(task.stage, parts_written=1)
    stats = PartsStats(tuple(parts), made_of(blocks))
    folder.write_receipt(task_name("part", first, PARTITIONS), [part.file for part in parts], stats)
    unique_words = sum(part.unique_words for part in parts)
    return TaskResult([part.name for part in parts], {"unique_words": unique_words})


def _added_up(
    task: CountTask,
    references: Iterable[BlocksReference],
    opened: Callable[[str], BinaryIO],
) -> dict[str, WordTable]:
    """Return the words of blocks by source, added in the order of their files."""
    tables: dict[str, WordTable] = {}
    rows = sorted(row for row in references if row[3])
    files = [[*rows] for _, rows in groupby(rows, itemgetter(0))]
    largest = max((sum(size for *_, size in rows) for rows in files), default=1)
    remote = not is_local(task.folder.url) and task.parts_per_task == 1
    ahead = min(REQUESTS_AHEAD, AHEAD_BYTES // largest) if remote else 0
    blocks_of_files: Iterable[Iterable[tuple[str, bytes]]] = map(partial(_blocks_of, opened), files)
    if ahead > 1:
        from bpe_beam.storage.read_ahead import read_ahead  # few jobs need it

        blocks_of_files = read_ahead(lambda rows: [*_blocks_of(opened, rows)], files, ahead)
    for blocks in blocks_of_files:
        for source, data in blocks:
            if source not in tables:
                check_sources([*tables, source])
                tables[source] = WordTable(with_places=task.rules.with_places)
            tables[source].add_block(decode_block(data, tables[source].with_places))
    return tables


def _blocks_of(
    opened: Callable[[str], BinaryIO], rows: Sequence[BlocksReference]
) -> Iterator[tuple[str, bytes]]:
    """Yield the blocks of a file, with their sources."""
    url = rows[0][0]
    with opened(url) as file:
        for _, _, start, size in rows:
            file.seek(start)
            yield from _read_blocks(file, size, url)


def _read_blocks(file: BinaryIO, size: int, url: str) -> Iterator[tuple[str, bytes]]:
    """Yield the next blocks of a file, `size` bytes in total, with their sources."""
    remaining = size
    while remaining:
        name_bytes, block_bytes = _HEAD.unpack(_read(file, _HEAD.size, url))
        remaining -= _HEAD.size + name_bytes + block_bytes
        if remaining < 0:
            raise DataError(f"{url} does not contain the words that its receipt names")
        name = _read(file, name_bytes, url).decode("utf-8", "surrogatepass")
        yield name, _read(file, block_bytes, url)


def _read(file: BinaryIO, size: int, url: str) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise DataError(f"{url} ends in the middle of its words")
    return data
