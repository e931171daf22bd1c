"""The documents of a shard, divided into parts for training and validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.document_batches import DocumentBatch, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import LabelledReader
from bpe_beam.shards.formats.table_schema import ID_HASH, TEXT_HASH
from bpe_beam.workers.arrange.task import ArrangeTask
from bpe_beam.workers.document_hashes import for_validation


def read_documents(task: ArrangeTask, name: str) -> Iterator[DocumentBatch]:
    """Yield the documents of a shard, with their labels if the format has any."""
    source = shard_format(task.documents_format)
    with source.reader(task.folder.storage, task.documents, name) as reader:
        has_labels = source.labelled_writer is not None
        labels_of = cast(LabelledReader, reader) if has_labels else None
        yield from document_batches(reader, labels_of=labels_of)


def divided(task: ArrangeTask, batch: DocumentBatch) -> list[DocumentBatch]:
    """Return the documents of each part.

    All documents that `tokenize` has made of a long one have its hash, and so go to one part.
    """
    if task.arrangement.validation_share is None:
        return [batch]
    chosen = for_validation_of(task, batch)
    return [_only(batch, np.flatnonzero(~chosen)), _only(batch, np.flatnonzero(chosen))]


def for_validation_of(task: ArrangeTask, batch: DocumentBatch) -> NDArray[np.bool_]:
    """Return bool[n]: which documents are for validation."""
    arrangement = task.arrangement
    assert batch.labels is not None
    assert arrangement.validation_share is not None
    column = TEXT_HASH if arrangement.validation_by == "text" else ID_HASH
    return for_validation(batch.labels.column(column).to_numpy(), arrangement.validation_share)


def _only(batch: DocumentBatch, documents: NDArray[np.int64]) -> DocumentBatch:
    """Return some documents of a batch."""
    lengths = np.diff(batch.offsets)
    chosen = np.zeros(lengths.size, np.bool_)
    chosen[documents] = True
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[documents])))
    labels = None if batch.labels is None else batch.labels.take(pa.array(documents))
    return DocumentBatch(batch.ids[np.repeat(chosen, lengths)], offsets, labels)
