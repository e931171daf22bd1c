"""A split encoded again and held against its shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpe_beam.corpus import ReadSettings, read_split
from bpe_beam.shards.formats.megatron import MegatronReader
from bpe_beam.shards.verify import compare_split
from bpe_beam.splits.encoding import Encoding
from bpe_beam.splits.work import SplitWork
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CompareTask:
    """What is needed to compare splits with shards; plain and picklable.

    Attributes:
        storage: The door to storage.
        folder: The folder of the shards.
        reading: How splits become documents.
        encoding: How documents become ids.
    """

    storage: Storage
    folder: str
    reading: ReadSettings
    encoding: Encoding


def compare_with_shard(task: CompareTask, element: str, shard: str) -> str | None:
    """Says how a shard differs from its split, or None if it does not."""
    with MegatronReader(task.storage, task.folder, shard) as reader:
        difference = compare_split(reader, _encoded(task, SplitWork.from_json(element)))
    return difference and f"{shard}: {difference}"


def _encoded(
    task: CompareTask, work: SplitWork
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """A split's documents as ids; its rejects are in the manifest already."""
    for batch in read_split(task.storage, work.plan, work.split, task.reading, lambda reject: None):
        ids = task.encoding.encode(batch.column("text"))
        yield ids.values.to_numpy(), ids.offsets.to_numpy()
