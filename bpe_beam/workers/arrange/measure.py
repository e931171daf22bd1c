"""The first step: measure the documents of a shard, in each part of a validation share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import json_structs
from bpe_beam.corpus.batches import integers
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards.document_batches import DocumentBatch, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.table_schema import ID_HASH, TEXT_BYTES, TEXT_HASH
from bpe_beam.shards.packing import slices_of
from bpe_beam.shards.shard_rows import PartTexts, SourceTotals
from bpe_beam.workers.arrange.task import (
    BLOCK_TOKENS,
    ArrangeTask,
    DocumentsShard,
    MeasureStats,
    PartSums,
)
from bpe_beam.workers.document_hashes import for_validation, sampled_texts
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TABLE_BYTES, TokenCounter, id_columns


def read_documents(task: ArrangeTask, name: str) -> Iterator[DocumentBatch]:
    """Yield the documents of a shard, with their labels if the format has any."""
    source = shard_format(task.documents_format)
    with source.reader(task.folder.storage, task.documents, name) as reader:
        yield from document_batches(reader, labelled=source.labelled)


def divided(task: ArrangeTask, batch: DocumentBatch) -> list[DocumentBatch]:
    """Return the documents of each part.

    All documents that `tokenize` has made of a long one have its hash, and so go to one part.
    """
    if task.arrangement.validation_share is None:
        return [batch]
    assert batch.labels is not None
    validation = _for_validation(task, batch.labels)
    return [batch.filter(chosen) for chosen in (~validation, validation)]


def _for_validation(task: ArrangeTask, labels: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return bool[n]: true for the documents for validation."""
    share, by = task.arrangement.validation_share, task.arrangement.validation_by
    assert share is not None
    return for_validation(labels.column(TEXT_HASH if by == "text" else ID_HASH).to_numpy(), share)


def measure_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Measure the documents of a shard, and write the receipt; the output is the task's name.

    If documents are divided, the tokens of each part are counted, too.
    """
    shard = json_structs.decode(element, DocumentsShard)
    arrangement, folder = task.arrangement, task.folder
    require_visible(folder.storage, folder.url, task.documents)
    length, parts = arrangement.sequence_length, arrangement.parts
    sums = [PartSums(0, 0) for _ in parts]
    histogram = np.zeros((len(parts), (length or 0) + 1), np.int64)
    counters: list[_PartCounter] = []
    if arrangement.validation_share is not None:
        counters = [_PartCounter(task, part) for part in parts]
    compared: list[NDArray[np.uint64]] = []
    for part_lengths in _lengths(task, shard, counters, compared):
        for number, lengths in enumerate(part_lengths):
            sums[number] += PartSums(lengths.size, int(lengths.sum()))
            if arrangement.is_best_fit and length is not None:
                slice_lengths = slices_of(lengths, length)[1]
                histogram[number] += np.bincount(slice_lengths, minlength=length + 1)
    name = task_name("measure", shard.index, task.shards)
    contents = {}
    if arrangement.is_best_fit:
        contents[f"{WORK}/{name}.bin"] = histogram.astype("<i8").tobytes()
    if task.counts_overlap:
        hashes = b"".join(each.astype("<u8").tobytes() for each in compared)
        contents[f"{WORK}/{texts_name(name)}"] = hashes
    for file, data in contents.items():
        folder.storage.write_bytes(folder.path(file), data)
    files = [FileInfo.of(file, data) for file, data in contents.items()]
    files += [each.tokens.write(folder, part_task(name, each.part)) for each in counters]
    texts = tuple(each.texts() for each in counters)
    folder.write_receipt(name, files, MeasureStats(task.made_of, tuple(sums), texts))
    return TaskResult([name])


class _PartCounter:
    """Counts the texts and the tokens of one part of a shard's documents."""

    def __init__(self, task: ArrangeTask, part: str) -> None:
        self.part = part
        self._by_source = task.by_source
        columns = id_columns(task.encoding.tokenizer())
        size = TABLE_BYTES // len(task.arrangement.parts)
        self.tokens = TokenCounter(columns, task.by_source, table_bytes=size)
        self._text_bytes = 0
        self._sources: dict[str, Counter[str]] = {}

    def add(self, batch: DocumentBatch) -> None:
        """Add documents."""
        assert batch.labels is not None
        lists = pa.LargeListArray.from_arrays(integers(batch.offsets), integers(batch.ids))
        self.tokens.add(batch.labels, lists)
        self._text_bytes += int(batch.labels.column(TEXT_BYTES).to_numpy().sum())
        if self._by_source:
            add_token_totals(self._sources, batch.labels, batch.offsets)

    def texts(self) -> PartTexts:
        """Return the totals of the added documents."""
        sources = {name: SourceTotals(**row) for name, row in sorted(self._sources.items())}
        return PartTexts(self._text_bytes, sources if self._by_source else None)


def _lengths(
    task: ArrangeTask,
    shard: DocumentsShard,
    counters: Sequence[_PartCounter],
    compared: list[NDArray[np.uint64]],
) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the lengths of documents of each part. Without a validation share no id is read.

    If the overlap is to be counted, the hashes of texts are appended to `compared`.
    """
    if not counters:
        source = shard_format(task.documents_format)
        with source.reader(task.folder.storage, task.documents, shard.name) as reader:
            for first in range(0, len(reader), BLOCK_TOKENS):
                stop = min(first + BLOCK_TOKENS, len(reader))
                yield [reader.lengths(first, stop).astype(np.int64)]
        return
    for batch in read_documents(task, shard.name):
        if task.counts_overlap:
            assert batch.labels is not None
            hashes = batch.labels.column(TEXT_HASH).to_numpy()
            compared.append(sampled_texts(hashes, _for_validation(task, batch.labels), task.count))
        parts = divided(task, batch)
        for counter, part in zip(counters, parts, strict=True):
            counter.add(part)
        yield [np.diff(part.offsets) for part in parts]


def texts_name(task: str) -> str:
    """Return the name of the file of hashes of texts that a task writes, see `sampled_texts`."""
    return f"{task}-texts.bin"


def part_task(task: str, part: str) -> str:
    """Return the name under which a task of a shard writes the token counts of a part."""
    return f"{task}-{part}"
