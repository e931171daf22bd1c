"""Rules for empty and for long documents: which of them are dropped, cut or split."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.counts.word_table import string_buffers
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.tokenizer.components.postprocessors import framed


class DocumentRules(Struct, frozen=True):
    """What happens to documents that are empty or long.

    Attributes:
        empty_documents: Whether documents without tokens of their text are kept or dropped.
        max_document_tokens: The most tokens of a document, those around it included; None: any.
        long_documents: What happens to longer ones. `split`: documents of that many tokens, and a
            rest; the tokens around it are in the first and in the last. `cut`: tokens at the end of
            the text are left out.
    """

    empty_documents: Literal["keep", "drop"] = "keep"
    max_document_tokens: int | None = None
    long_documents: Literal["split", "cut"] = "split"


class RuledDocuments(NamedTuple):
    """Documents after the rules, with the ids around each.

    The first part of a split document has its text, the others none.
    """

    batch: pa.RecordBatch
    ids: pa.LargeListArray
    changes: DocumentChanges


def apply_rules(
    rules: DocumentRules,
    batch: pa.RecordBatch,
    ids: pa.LargeListArray,
    before: list[int],
    after: list[int],
) -> RuledDocuments:
    """Apply the rules to a batch of documents, and put ids around each."""
    dropped = cut = split = 0
    if rules.empty_documents == "drop":
        kept = np.flatnonzero(_lengths(ids))
        dropped = len(ids) - kept.size
        if dropped:
            batch, ids = batch.take(pa.array(kept)), ids.take(pa.array(kept))
    most = rules.max_document_tokens
    if most is not None and rules.long_documents == "cut":
        ids, cut = _cut(ids, most - len(before) - len(after))
    doubled = _doubled(ids, before, after)
    ids = framed(ids, before, after)
    if most is not None and rules.long_documents == "split":
        parts = -(-_lengths(ids) // most)
        split = int(np.count_nonzero(parts > 1))
        if split:
            batch, ids = _split(batch, ids, np.maximum(parts, 1), most)
    return RuledDocuments(batch, ids, DocumentChanges(dropped, cut, split, doubled))


def _lengths(ids: pa.LargeListArray) -> NDArray[np.int64]:
    return np.diff(ids.offsets.to_numpy())  # type: ignore[no-any-return]


def _doubled(ids: pa.LargeListArray, before: list[int], after: list[int]) -> int:
    """Return how many documents begin with an id of `before`, or end with one of `after`."""
    if not before and not after:
        return 0
    offsets, values = ids.offsets.to_numpy(), ids.values.to_numpy()
    used = np.flatnonzero(offsets[:-1] < offsets[1:])
    is_doubled = np.zeros(used.size, np.bool_)
    for added, positions in ((before, offsets[used]), (after, offsets[used + 1] - 1)):
        at_end = values[positions]
        for token in added:
            is_doubled |= at_end == token
    return int(np.count_nonzero(is_doubled))


def _cut(ids: pa.LargeListArray, most: int) -> tuple[pa.LargeListArray, int]:
    """Leave out all but the first ids of each document; return how many documents were longer."""
    lengths = _lengths(ids)
    longer = int(np.count_nonzero(lengths > most))
    if not longer:
        return ids, 0
    starts = ids.offsets.to_numpy()[:-1]
    positions = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.minimum(lengths, most))))
    values = ids.values.to_numpy()[positions < most]
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values)), longer


def _split(
    batch: pa.RecordBatch, ids: pa.LargeListArray, parts: NDArray[np.int64], most: int
) -> tuple[pa.RecordBatch, pa.LargeListArray]:
    """Split documents into so many parts of at most `most` ids."""
    rows = np.repeat(np.arange(len(ids)), parts)
    number = np.arange(rows.size) - np.repeat(np.cumsum(parts) - parts, parts)
    offsets = np.append(ids.offsets.to_numpy()[:-1][rows] + most * number, len(ids.values))
    # Parts without a text begin where it ends: a long text is not copied for each of its parts.
    data, ends = string_buffers(batch["text"])
    starts = np.append(ends[rows + (number > 0)], ends[-1])
    text = pa.LargeStringArray.from_buffers(rows.size, pa.py_buffer(starts), data)
    columns = [
        text if name == "text" else batch[name].take(pa.array(rows)) for name in batch.schema.names
    ]
    return (
        pa.RecordBatch.from_arrays(columns, schema=batch.schema),
        pa.LargeListArray.from_arrays(pa.array(offsets), ids.values),
    )
