"""The second step: write the slices of a shard's documents by the new shards that they are for.

A slice is a document, or the range of it that one sequence has. The slices of a shard come into one
block file, in a block for each new shard, or for each group of new shards.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import json_structs, progress
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards import packing
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.workers.arrange.block_files import BlockFileWriter, id_column
from bpe_beam.workers.arrange.measure import divided, read_documents
from bpe_beam.workers.arrange.task import LABELS, STAGE, ArrangeTask, DocumentsShard
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.unused_memory import release_unused_memory

MAX_UNUSED_BYTES = 128 << 20
"""The freed bytes that malloc may keep while slices are written: two workers free about as much.
Getting the buffers of each shard from the system again takes a quarter of the job's system time."""


def scatter_shard(task: ArrangeTask, element: str) -> TaskResult:
    """Write the block file of a shard's documents, and the receipt; the output is its URL."""
    release_unused_memory(MAX_UNUSED_BYTES)
    shard = json_structs.decode(element, DocumentsShard)
    folder = task.folder
    require_visible(folder.storage, folder.url, task.documents)
    name = task_name("scatter", shard.index, task.shards)
    file_name = f"{WORK}/{name}.bin"
    layouts = [layout_of(task, number, shard) for number in range(len(task.parts))]
    with (
        folder.storage.create(folder.path(file_name)) as stored,
        BlockFileWriter(stored, task.slices_schema, task.blocks) as file,
    ):
        for batch in read_documents(task, shard.name):
            for number, documents in enumerate(divided(task, batch)):
                slices = layouts[number].slices(np.diff(documents.offsets))
                part, seed = task.parts[number], task.arrangement.shuffle_seed
                positions = packing.shuffled(slices.rows, part.rows, seed)
                columns = [
                    pa.array(positions),
                    pa.array(slices.offsets),
                    id_column(documents.ids, slices.lengths, task.id_type),
                ]
                if task.with_labels and documents.labels is not None:
                    labels = documents.labels.take(pa.array(slices.documents))
                    columns += [labels.column(each.name).cast(each.type) for each in LABELS]
                rows = pa.RecordBatch.from_arrays(columns, schema=task.slices_schema)
                file.add(rows, task.block_of(number, positions))
            progress.report(STAGE, done=batch.ids.size)
        file.finish()
    info = FileInfo.written(file_name, file.file)
    folder.write_receipt(name, [info], {"made_of": task.blocks_made_of})
    return TaskResult([folder.path(file_name)])


def layout_of(task: ArrangeTask, part: int, shard: DocumentsShard) -> packing.Layout:
    """Return what divides the documents of a part of a measured shard into slices."""
    arrangement, before = task.arrangement, shard.before[part]
    if arrangement.sequence_length is None:
        return packing.WholeDocuments(before.documents)
    if not arrangement.is_best_fit:
        return packing.Concatenated(arrangement.sequence_length, before.tokens)
    plan = _plan(_ranks(task, task.shards, part).tobytes(), arrangement.max_documents_per_sequence)
    return packing.BestFit(plan, _ranks(task, shard.index, part))


@functools.lru_cache(maxsize=2)
def _plan(histogram: bytes, max_slices: int | None) -> packing.PackingPlan:
    """Return the plan of a part; every process makes its own."""
    return packing.plan_best_fit(np.frombuffer(histogram, np.int64), max_slices)


def _ranks(task: ArrangeTask, shard: int, part: int) -> NDArray[np.int64]:
    """Return int64[N + 1], the numbers of slices of a part before a shard; see `write_ranks`."""
    assert task.arrangement.sequence_length is not None
    size = 8 * (task.arrangement.sequence_length + 1)
    with RangeFile(task.folder.storage, task.ranks) as file:
        data = file.read((shard * len(task.parts) + part) * size, size)
    return np.frombuffer(data, "<i8").astype(np.int64)
