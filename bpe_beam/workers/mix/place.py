"""The last steps: where each taken document goes, and the documents in blocks for new shards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam import json_structs, progress
from bpe_beam.corpus.batches import integers
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards import packing
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.table_schema import TEXT_BYTES
from bpe_beam.shards.mixture_documents import sources_of
from bpe_beam.shards.shard_rows import PartTexts, SourceTotals
from bpe_beam.workers.arrange.block_files import BlockFileWriter, id_column, one_of_each
from bpe_beam.workers.arrange.measure import part_task
from bpe_beam.workers.arrange.scatter import MAX_UNUSED_BYTES, layout_of
from bpe_beam.workers.arrange.task import LABELS, STAGE, DocumentsShard
from bpe_beam.workers.mix.task import (
    InputShard,
    KeyRange,
    MixTask,
    RecordBlocks,
    read_blocks,
    read_table,
)
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TABLE_BYTES, TokenCounter, id_columns
from bpe_beam.workers.unused_memory import release_unused_memory

PLACED = np.dtype(
    [
        ("index", "<u8"),  # the document's position in its shard
        ("start", "<u4"),  # the slice's first token in the document
        ("length", "<u4"),
        ("position", "<i8"),  # the new document or sequence
        ("offset", "<i8"),  # the slice's first token there
        ("part", "u1"),
    ]
)
"""A slice of a taken document."""


class ScatterStats(Struct, frozen=True):
    """The stats in the receipt of a scattered shard: the texts of each part."""

    made_of: str
    texts: tuple[PartTexts, ...]


def place_range(task: MixTask, element: str) -> TaskResult:
    """Write where the documents of a range of keys go, in a block for each shard that is read.

    The output is the file's URL.
    """
    key_range = json_structs.decode(element, KeyRange)
    folder, arrange = task.folder, task.arrange
    require_visible(folder.storage, folder.url)
    name = task_name("placed", key_range.index, task.partitions)
    selected = read_table(folder.storage, key_range.selected, tables.KEYED)
    # The ranges of keys are what was measured.
    measured = replace(arrange, shards=task.partitions)
    shard = DocumentsShard(key_range.index, "", key_range.sums)
    with RecordBlocks(folder, name, PLACED, arrange.shards) as file:
        for number, plan in enumerate(arrange.parts):
            chosen = selected[selected["part"] == number]
            slices = layout_of(measured, number, shard).slices(chosen["length"].astype(np.int64))
            before = bounds_of(chosen["length"])
            starts = bounds_of(slices.lengths)[:-1] - before[slices.documents]
            within = slices.rows < plan.rows  # the others fill no sequence
            placed = np.zeros(int(within.sum()), PLACED)
            placed["part"] = number
            placed["index"] = chosen["index"][slices.documents[within]]
            placed["start"], placed["length"] = starts[within], slices.lengths[within]
            seed = arrange.arrangement.shuffle_seed
            placed["position"] = packing.shuffled(slices.rows[within], plan.rows, seed)
            placed["offset"] = slices.offsets[within]
            shards = chosen["shard"][slices.documents[within]].astype(np.int64)
            file.add_table(placed, shards)
        file.finish()
    folder.write_receipt(name, [file.info()], {"made_of": arrange.made_of})
    return TaskResult([folder.path(file.info().name)])


def scatter_taken(task: MixTask, known: list[str], placed: list[str], element: str) -> TaskResult:
    """Write the block file of the taken documents of a shard, the counts of their tokens, and the
    receipt; the output is the block file's URL.
    """
    release_unused_memory(MAX_UNUSED_BYTES)
    shard = json_structs.decode(element, InputShard)
    source, folder, arrange = task.folders[shard.folder], task.folder, task.arrange
    require_visible(folder.storage, folder.url, source.url)
    files = one_of_each([*known, *placed], task.partitions)
    rows = read_blocks(folder.storage, files, PLACED, shard.index, arrange.shards)
    rows = rows[np.lexsort([rows[name] for name in ("position", "start", "part", "index")])]
    name = task_name("scatter", shard.index, arrange.shards)
    file_name = f"{WORK}/{name}.bin"
    format_ = shard_format(source.format)
    counters = [_PartCounter(task, number) for number in range(len(arrange.parts))]
    first = at = 0
    with (
        folder.storage.create(folder.path(file_name)) as stored,
        BlockFileWriter(stored, arrange.slices_schema, arrange.blocks) as file,
        format_.reader(folder.storage, source.url, shard.name) as reader,
    ):
        for batch in document_batches(reader, labelled=format_.labelled) if len(rows) else ():
            end = first + batch.offsets.size - 1
            stop = int(np.searchsorted(rows["index"], end))
            _add(
                task,
                file,
                counters,
                batch,
                rows[at:stop],
                first,
                sources_of(source, task.names, batch),
            )
            progress.report(STAGE, done=batch.ids.size)
            first, at = end, stop
        file.finish()
    infos = [FileInfo.written(file_name, file.file)]
    infos += [each.tokens.write(folder, part_task(name, each.part)) for each in counters]
    stats = ScatterStats(arrange.blocks_made_of, tuple(each.texts() for each in counters))
    folder.write_receipt(name, infos, stats)
    return TaskResult([folder.path(file_name)])


def _add(
    task: MixTask,
    file: BlockFileWriter,
    counters: list[_PartCounter],
    batch: DocumentBatch,
    rows: tables.Table,
    first: int,
    sources: NDArray[np.int64],
) -> None:
    """Add the slices of a batch of documents to the block file, and count them."""
    arrange = task.arrange
    for number in range(len(arrange.parts)):
        chosen = rows[rows["part"] == number]
        documents = chosen["index"].astype(np.int64) - first
        lengths = chosen["length"].astype(np.int64)
        ids = _slices(batch, documents, chosen["start"].astype(np.int64), lengths)
        positions = chosen["position"].astype(np.int64)
        columns = [
            integers(positions),
            integers(chosen["offset"].astype(np.int64)),
            id_column(ids, lengths, arrange.id_type),
        ]
        labels = _labels(task, batch, documents, sources)
        if arrange.with_labels:
            columns += labels.columns
        slices = pa.RecordBatch.from_arrays(columns, schema=arrange.slices_schema)
        file.add(slices, arrange.block_of(number, positions))
        counters[number].add(labels, ids, lengths, chosen["start"] == 0)


def _slices(
    batch: DocumentBatch,
    documents: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[np.uint32]:
    """Return the ids of slices of a batch's documents, one slice after the other."""
    begins = batch.offsets[documents] + starts
    if begins.size and lengths.sum() == batch.ids.size:
        ends = begins + lengths
        if begins[0] == 0 and (begins[1:] == ends[:-1]).all():
            return batch.ids
    bounds = zip(begins.tolist(), (begins + lengths).tolist(), strict=True)
    return np.concatenate([np.empty(0, np.uint32), *(batch.ids[a:b] for a, b in bounds)])


def _labels(
    task: MixTask, batch: DocumentBatch, documents: NDArray[np.int64], sources: NDArray[np.int64]
) -> pa.RecordBatch:
    """Return the labels of slices; the source is the mixture's."""
    names = pa.array(task.names, pa.large_string())
    columns = [
        pa.nulls(documents.size, pa.large_string()),
        names.take(integers(sources[documents])),
        pa.nulls(documents.size, pa.int64()),
    ]
    if batch.labels is not None:
        labels = batch.labels.take(integers(documents))
        for number in (0, 2):
            field = LABELS.field(number)
            columns[number] = labels.column(field.name).cast(field.type)
    return pa.RecordBatch.from_arrays(columns, schema=LABELS)


class _PartCounter:
    """Counts the texts and the tokens of the taken documents of one part."""

    def __init__(self, task: MixTask, number: int) -> None:
        parts = task.arrange.arrangement.parts
        self.part = parts[number] or "all"
        columns = id_columns(task.arrange.encoding.tokenizer())
        self.tokens = TokenCounter(columns, True, table_bytes=TABLE_BYTES // len(parts))
        self._sources: dict[str, Counter[str]] = {}

    def add(
        self,
        labels: pa.RecordBatch,
        ids: NDArray[np.uint32],
        lengths: NDArray[np.int64],
        begins: NDArray[np.bool_],
    ) -> None:
        """Add slices; `begins` is bool[n]: which of them are the first of their documents."""
        if not lengths.size:
            return
        lists = pa.LargeListArray.from_arrays(integers(bounds_of(lengths)), integers(ids))
        self.tokens.add(labels, lists)
        texts = labels.column(TEXT_BYTES).fill_null(0).to_numpy() * begins
        column = labels.column("source").dictionary_encode()
        codes = column.indices.to_numpy()
        for code, source in enumerate(column.dictionary.to_pylist()):
            chosen = codes == code
            row = self._sources.setdefault(source, Counter())
            row["documents"] += int(begins[chosen].sum())
            row["text_bytes"] += int(texts[chosen].sum())
            row["tokens"] += int(lengths[chosen].sum())

    def texts(self) -> PartTexts:
        """Return the totals of the added documents."""
        sources = {
            name: SourceTotals(row["documents"], row["text_bytes"], row["tokens"])
            for name, row in sorted(self._sources.items())
        }
        return PartTexts(sum(each.text_bytes for each in sources.values()), sources)
