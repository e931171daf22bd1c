"""Encode a split again, and compare it with its shard and with the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bpe_beam import progress
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.shard_rows import NO_CHANGES, DocumentChanges, Shard, TokenlessSplit
from bpe_beam.shards.verify import JoinedReader, compare_split
from bpe_beam.storage import Storage
from bpe_beam.workers.document_encoding import Encoding, encode_documents
from bpe_beam.workers.split_task import SplitTask, text_bytes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


STAGE = "compare"  # the progress stage, in bytes, that gets the stored bytes as they are read


@dataclass(frozen=True)
class CompareTask:
    """The settings for workers that compare splits with shards; plain and picklable."""

    storage: Storage
    folder: str
    reading: ReadSettings
    encoding: Encoding
    shard_format: str


def compare_with_split(
    task: CompareTask, element: str, rows: Sequence[Shard | TokenlessSplit]
) -> str | None:
    """Read and encode a split again, and compare it with its shards and the manifest."""
    read = _ReadAgain(task, SplitTask.from_json(element))
    shards = [row for row in rows if isinstance(row, Shard)]
    if shards:
        with ExitStack() as stack:
            open_shard = partial(shard_format(task.shard_format).reader, task.storage, task.folder)
            readers = [stack.enter_context(open_shard(shard.name)) for shard in shards]
            reader = readers[0] if len(readers) == 1 else JoinedReader(readers)
            difference = compare_split(reader, read.encoded())
    else:
        difference = read.first_token()
    difference = difference or read.difference_from(rows)
    for row in rows:
        progress.report(STAGE, documents=row.documents, bytes=row.text_bytes)
    names = [row.name for row in rows]
    shown = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    return difference and f"{shown}: {difference}"


class _ReadAgain:
    """A split that is read and encoded again, with its documents, bytes and rejects so far."""

    def __init__(self, task: CompareTask, split_task: SplitTask) -> None:
        self._task, self._split_task = task, split_task
        self._changes = NO_CHANGES
        self._totals = {"documents": 0, "text_bytes": 0, "rejects": 0}

    def encoded(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yield the ids of all documents in batches, as `compare_split` takes them."""
        task, split_task = self._task, self._split_task
        max_tokens = shard_format(task.shard_format).max_document_tokens
        for batch in read_split(
            task.storage,
            split_task.plan,
            split_task.split,
            task.reading,
            self._reject,
            on_read=lambda count: progress.report(STAGE, done=count),
        ):
            batch, ids, changed = encode_documents(
                task.encoding, batch, split_task.plan, self._reject, max_tokens
            )
            self._changes += changed
            self._totals["documents"] += batch.num_rows
            self._totals["text_bytes"] += text_bytes_of(batch)
            yield ids.values.to_numpy(), ids.offsets.to_numpy()

    def first_token(self) -> str | None:
        """Return a problem if the split has a token."""
        for ids, offsets in self.encoded():
            if len(ids):
                before = self._totals["documents"] - (len(offsets) - 1)
                number = before + int((offsets[1:] > 0).argmax())
                return f"has no shard, and its document {number} has tokens"
        return None

    def difference_from(self, rows: Sequence[Shard | TokenlessSplit]) -> str | None:
        """Return how the manifest's numbers differ from what was read."""
        changes = sum((row.changes or NO_CHANGES for row in rows), NO_CHANGES)
        for kind in DocumentChanges.__struct_fields__:
            count, expected = getattr(self._changes, kind), getattr(changes, kind)
            if count != expected:
                return (
                    f"{count:,} documents of the input are {kind}; {MANIFEST_FILE} has {expected:,}"
                )
        for name, count in self._totals.items():
            expected = sum(getattr(row, name) for row in rows)
            if count != expected:
                return f"the input has {count:,} {name}; {MANIFEST_FILE} has {expected:,}"
        return None

    def _reject(self, reject: Reject) -> None:
        self._totals["rejects"] += 1
