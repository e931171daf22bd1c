"""The last step: write a new shard from its blocks in block files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from bpe_beam import json_structs, progress
from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards.document_batches import bounds_of, groups_of_documents
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardWriter
from bpe_beam.shards.formats.table_schema import SEQUENCE_LENGTHS
from bpe_beam.workers.arrange.block_files import ids_of, one_batch, one_of_each, read_block
from bpe_beam.workers.arrange.task import (
    BLOCK_TOKENS,
    LABELS,
    LOST,
    STAGE,
    ArrangeTask,
    NewShard,
    NewShardStats,
)
from bpe_beam.workers.split_task import require_visible
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.unused_memory import release_unused_memory


def write_new_shard(
    task: ArrangeTask, known: Sequence[str], blocks: Sequence[str], element: str
) -> TaskResult:
    """Write a new shard from all its slices, and the receipt; the output is the task's name.

    `known` and `blocks` are the URLs of all block files of the step before.
    """
    release_unused_memory()
    new = json_structs.decode(element, NewShard)
    folder = task.folder
    require_visible(folder.storage, folder.url)
    part = task.parts[new.part]
    number = new.shard + sum(each.shards for each in task.parts[: new.part])
    name = part.task(new.shard)
    table = _read_slices(task, [*known, *blocks], number)
    new_rows = NewRows(table, task.id_type.itemsize, *part.bounds(new.shard))
    del table
    format_ = shard_format(task.shard_format)
    target = folder.storage, folder.path(WORK), name, task.vocab_size
    with format_.writer(*target, task.origin) as writer:
        padding = _write_rows(task, writer, new_rows)
    shard = writer.result()
    files_written = [replace(file, name=f"{WORK}/{file.name}") for file in shard.files]
    stats = NewShardStats(task.made_of, new_rows.bounds.size - 1, shard.tokens, padding)
    folder.write_receipt(name, files_written, stats)
    return TaskResult(
        [name], {"documents_written": shard.documents, "tokens_written": shard.tokens}
    )


def _read_slices(task: ArrangeTask, urls: Sequence[str], number: int) -> pa.Table:
    """Return the slices of a new shard, by its number over all parts."""
    groups = task.groups
    if groups is None:
        return read_block(task, one_of_each(urls, task.shards), number, task.new_shards)
    group = groups.group_of(number)
    first, stop = groups.starts[group : group + 2]
    names = {f"{name}.bin" for name in groups.tasks(group * groups.sets, (group + 1) * groups.sets)}
    files = [url for url in urls if url.rpartition("/")[2] in names]
    return read_block(task, one_of_each(files, groups.sets), number - first, stop - first)


class NewRows:
    """The rows of a new shard, made of its slices in any order.

    `bounds` is int64[rows + 1]: the first token of each row, and the end of the last.
    """

    def __init__(self, table: pa.Table, id_bytes: int, first: int, stop: int) -> None:
        self._slices = one_batch(table)
        positions, offsets = (self._slices[name].to_numpy() for name in ("position", "offset"))
        lengths = pc.binary_length(self._slices["ids"]).to_numpy() // id_bytes
        self._order = np.lexsort((lengths, offsets, positions))
        positions, offsets = positions[self._order] - first, offsets[self._order]
        self._slice_lengths = lengths[self._order]
        self._begins = np.searchsorted(positions, np.arange(stop - first + 1))
        ends = bounds_of(self._slice_lengths)
        self.bounds = ends[self._begins]
        # A slice begins where the slice before it ends, and the first one at 0.
        whole = self._begins[0] == 0 and self._begins[-1] == positions.size
        if (
            not whole
            or (np.diff(self._begins) == 0).any()
            or (ends[:-1] - self.bounds[positions] != offsets).any()
        ):
            raise DataError(LOST)

    def slices(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the slices of rows, in order."""
        chosen = self._order[self._begins[start] : self._begins[stop]]
        return self._slices.take(pa.array(chosen))

    def slice_lengths(self, start: int, stop: int) -> pa.ListArray:
        """Return the tokens of each slice of rows, a list a row."""
        begins = self._begins[start : stop + 1]
        lengths = self._slice_lengths[begins[0] : begins[-1]].astype(np.int32)
        offsets = pa.array((begins - begins[0]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array(lengths))


def _write_rows(task: ArrangeTask, writer: ShardWriter, rows: NewRows) -> int:
    """Write all rows; return the number of padding tokens."""
    length, labelled = task.arrangement.sequence_length, shard_format(task.shard_format).labelled
    padding = 0
    for start, stop in groups_of_documents(rows.bounds, BLOCK_TOKENS):
        slices = rows.slices(start, stop)
        offsets = rows.bounds[start : stop + 1] - rows.bounds[start]
        ids = ids_of(slices["ids"], task.id_type)
        labels = None
        if task.with_labels:
            labels = slices.select(LABELS.names)
        elif labelled:
            lengths = rows.slice_lengths(start, stop)
            labels = pa.RecordBatch.from_arrays([lengths], [SEQUENCE_LENGTHS])
        progress.report(STAGE, done=ids.size, **{task.origin.unit: stop - start})
        if length is not None and task.pad is not None:
            filled = np.full((stop - start, length), task.pad, np.uint32)
            filled[np.arange(length) < np.diff(offsets)[:, np.newaxis]] = ids
            padding += filled.size - ids.size
            ids, offsets = filled.reshape(-1), np.arange(stop - start + 1) * length
        writer.write_documents(ids, offsets, labels)
    return padding
