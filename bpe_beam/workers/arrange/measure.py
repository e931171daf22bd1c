"""The first step: measure the documents of a shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import json_structs
from bpe_beam.corpus.batches import integers
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.document_batches import DocumentBatch
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.table_schema import (
    TEXT_BYTES,
    TEXT_HASH,
)
from bpe_beam.shards.layouts import (
    slices_of,
)
from bpe_beam.shards.shard_rows import PartTexts, SourceTotals
from bpe_beam.workers.arrange.documents import divided, for_validation_of, read_documents
from bpe_beam.workers.arrange.task import (
    BLOCK_TOKENS,
    ArrangeTask,
    DocumentsShard,
    MeasureStats,
    PartSums,
)
from bpe_beam.workers.document_hashes import sampled_texts
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TABLE_BYTES, IdColumns, TokenCounter, id_columns


def measure_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Measure the documents of a shard, and write the receipt; the output is the task's name.

    If documents are divided, the tokens of each part are counted, too.
    """
    shard = json_structs.decode(element, DocumentsShard)
    folder = task.folder
    require_visible(folder.storage, folder.url, task.documents)
    length = task.arrangement.sequence_length
    parts = task.arrangement.parts
    sums = [PartSums(0, 0) for _ in parts]
    histogram = np.zeros((len(parts), (length or 0) + 1), np.int64)
    name = task_name("measure", shard.index, task.shards)
    counters = [] if task.arrangement.validation_share is None else _part_counters(task)
    compared: list[NDArray[np.uint64]] = []
    for part_lengths in _lengths(task, shard, counters, compared):
        for number, lengths in enumerate(part_lengths):
            before = sums[number]
            documents, tokens = lengths.size, int(lengths.sum())
            sums[number] = PartSums(before.documents + documents, before.tokens + tokens)
            if task.arrangement.is_best_fit and length is not None:
                slice_lengths = slices_of(lengths, length)[1]
                histogram[number] += np.bincount(slice_lengths, minlength=length + 1)
    files = []
    if task.arrangement.is_best_fit:
        data = histogram.astype("<i8").tobytes()
        files.append(FileInfo.of(f"{WORK}/{name}.bin", data))
        folder.storage.write_bytes(folder.path(files[0].name), data)
    if task.counts_overlap:
        data = b"".join(each.astype("<u8").tobytes() for each in compared)
        files.append(FileInfo.of(f"{WORK}/{texts_name(name)}", data))
        folder.storage.write_bytes(folder.path(files[-1].name), data)
    files += [each.write(folder, part_task(name, each.part)) for each in counters]
    texts = tuple(each.texts() for each in counters)
    folder.write_receipt(name, files, MeasureStats(task.made_of, tuple(sums), texts))
    return TaskResult([name])


def write_ranks(file: BinaryIO, measured: Iterator[bytes], size: int) -> NDArray[np.int64]:
    """Write the numbers of slices of each length before each shard, and return the totals."""
    total = np.zeros(size, np.int64)
    for data in measured:
        file.write(total.astype("<i8").tobytes())
        total += np.frombuffer(data, "<i8")
    file.write(total.astype("<i8").tobytes())
    return total


class _PartCounter:
    """Counts the texts and the tokens of one part of a shard's documents."""

    def __init__(self, part: str, columns: IdColumns, by_source: bool, table_bytes: int) -> None:
        self.part = part
        self._by_source = by_source
        self._tokens = TokenCounter(columns, by_source, table_bytes=table_bytes)
        self._text_bytes = 0
        self._sources: dict[str, Counter[str]] = {}

    def add(self, batch: DocumentBatch) -> None:
        """Add documents."""
        assert batch.labels is not None
        lists = pa.LargeListArray.from_arrays(integers(batch.offsets), integers(batch.ids))
        self._tokens.add(batch.labels, lists)
        self._text_bytes += int(batch.labels.column(TEXT_BYTES).to_numpy().sum())
        if self._by_source:
            add_token_totals(self._sources, batch.labels, batch.offsets)

    def texts(self) -> PartTexts:
        """Return the totals of the added documents."""
        sources = {name: SourceTotals(**row) for name, row in sorted(self._sources.items())}
        return PartTexts(self._text_bytes, sources if self._by_source else None)

    def write(self, folder: TaskFolder, task: str) -> FileInfo:
        """See `TokenCounter.write`."""
        return self._tokens.write(folder, task)


def _part_counters(task: ArrangeTask) -> list[_PartCounter]:
    columns, parts = id_columns(task.encoding.tokenizer()), task.arrangement.parts
    size = TABLE_BYTES // len(parts)
    return [_PartCounter(part, columns, task.by_source, size) for part in parts]


def texts_name(task: str) -> str:
    """Return the name of the file of hashes of texts that a task writes, see `sampled_texts`."""
    return f"{task}-texts.bin"


def part_task(task: str, part: str) -> str:
    """Return the name under which a task of a shard writes the token counts of a part."""
    return f"{task}-{part}"


def _lengths(
    task: ArrangeTask,
    shard: DocumentsShard,
    counters: Sequence[_PartCounter],
    compared: list[NDArray[np.uint64]],
) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the lengths of documents of each part. Without a validation share no id is read.

    If the overlap is to be counted, the hashes of texts are appended to `compared`.
    """
    if task.arrangement.validation_share is not None:
        for batch in read_documents(task, shard.name):
            parts = divided(task, batch)
            if task.counts_overlap:
                assert batch.labels is not None
                hashes = batch.labels.column(TEXT_HASH).to_numpy()
                compared.append(sampled_texts(hashes, for_validation_of(task, batch), task.count))
            for counter, part in zip(counters, parts, strict=True):
                counter.add(part)
            yield [np.diff(part.offsets) for part in parts]
        return
    source = shard_format(task.documents_format)
    with source.reader(task.folder.storage, task.documents, shard.name) as reader:
        for first in range(0, len(reader), BLOCK_TOKENS):
            stop = min(first + BLOCK_TOKENS, len(reader))
            yield [reader.lengths(first, stop).astype(np.int64)]
