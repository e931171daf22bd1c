"""The tasks that arrange the documents of shards, and the plan of the new shards."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.shard_rows import Arrangement, PartTexts
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import task_name

STAGE = "arrange"  # the progress stage that gets reports, in tokens that each step reads

REGROUP = "regroup"  # the kind of the tasks that regroup blocks

BLOCK_TOKENS = 1 << 20

LABELS = pa.schema(
    [("id", pa.large_string()), ("source", pa.large_string()), ("text_bytes", pa.int64())]
)

RANKS = "ranks.bin"
"""The file of the numbers of slices of each length, before each shard and in total."""

LOST = (
    "a slice of a document is missing or doubled: the runner lost a result, or a file of this run "
    "was changed; run this job again"
)


class PartSums(Struct, frozen=True):
    """The number of documents of a part, and of their tokens."""

    documents: Count
    tokens: Count

    def __add__(self, other: PartSums) -> PartSums:
        return PartSums(self.documents + other.documents, self.tokens + other.tokens)


class MeasureStats(Struct, frozen=True):
    """The stats in the receipt of a measured shard: the sums and texts of each part.

    `made_of` is the SHA-256 of what decides the files, see `planning.made_of`. `texts` is empty
    if documents are not divided.
    """

    made_of: str
    parts: tuple[PartSums, ...]
    texts: tuple[PartTexts, ...]


class NewShardStats(Struct, frozen=True):
    """The stats in the receipt of a new shard; its tokens include padding tokens."""

    made_of: str
    rows: Count
    tokens: Count
    padding: Count


@dataclass(frozen=True)
class PartPlan:
    """The new shards of a part, planned when all shards are measured.

    `rows` is the number of its documents or sequences, `starts` the first row of each new shard.
    """

    name: str
    rows: int
    starts: tuple[int, ...]

    @staticmethod
    def even(name: str, rows: int, shards: int) -> PartPlan:
        """Return a plan of shards with about as many rows each."""
        return PartPlan(name, rows, tuple(rows * shard // shards for shard in range(shards)))

    @staticmethod
    def by_tokens(name: str, measured: Sequence[PartSums], shards: int) -> PartPlan:
        """Return a plan of shards with about as many tokens each, of documents in their order.

        Documents of one measured shard count as equally long.
        """
        ends = [0, *itertools.accumulate(each.tokens for each in measured)]
        before = [0, *itertools.accumulate(each.documents for each in measured)]
        starts = {0}
        for shard in range(1, shards):
            token = ends[-1] * shard // shards
            index = bisect_right(ends, token) - 1
            rest = (token - ends[index]) * measured[index].documents
            starts.add(before[index] + rest // measured[index].tokens)
        return PartPlan(name, before[-1], tuple(sorted(starts)))

    @property
    def shards(self) -> int:
        """The number of new shards."""
        return len(self.starts)

    def bounds(self, shard: int) -> tuple[int, int]:
        """Return the first position of a new shard, and the position after its last."""
        return self.starts[shard], (*self.starts, self.rows)[shard + 1]

    def shard_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the new shard that has each position."""
        return np.searchsorted(np.array(self.starts), positions, side="right") - 1

    def task(self, shard: int) -> str:
        """Return the name of the task of a new shard."""
        return task_name(self.name or "shard", shard, self.shards)


@dataclass(frozen=True)
class ShardGroups:
    """Groups of new shards that have one block in the file of each shard of documents.

    Attributes:
        starts: The number of the first new shard of each group, over all parts, and then the number
            of new shards. The parts of a validation share have no group in common.
        sets: The number of sets of block files; a file is regrouped with the others of its set.
    """

    starts: tuple[int, ...]
    sets: int

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.starts) - 1

    def group_of(self, shard: int) -> int:
        """Return the group of a new shard."""
        return bisect_right(self.starts, shard) - 1

    def tasks(self, first: int = 0, stop: int | None = None) -> list[str]:
        """Return the names of the tasks that regroup blocks, a number of `sets` for each group."""
        tasks = self.count * self.sets
        return [task_name(REGROUP, number, tasks) for number in range(tasks)[first:stop]]


@dataclass(frozen=True)
class ArrangeTask:
    """What the tasks of all shards share; plain and picklable."""

    folder: TaskFolder  # the folder of the run
    documents: str  # the folder of the shards of documents
    documents_format: str
    made_of: str  # see `planning.made_of`
    shards: int  # the number of the shards of documents
    count: int  # the number of documents
    arrangement: Arrangement
    pad: int | None  # the id of the padding token; None: no padding
    shard_format: str  # the format of the new shards
    vocab_size: int  # one more than the tokenizer's greatest id
    origin: ShardOrigin
    ranks: str  # the file of the numbers of slices of each length before each shard, and in total
    encoding: Encoding
    by_source: bool  # whether the documents have sources
    whole_sequences: bool = False  # whether tokens that fill no sequence at the end are left out
    parts: tuple[PartPlan, ...] = ()  # the plans of the parts; empty until all shards are measured
    groups: ShardGroups | None = None  # None: each new shard is read from the file of each shard

    @property
    def new_shards(self) -> int:
        """The number of new shards, of all parts."""
        return sum(part.shards for part in self.parts)

    def part_of(self, shard: int) -> int:
        """Return the part of a new shard, by its number over all parts."""
        return bisect_right([*itertools.accumulate(part.shards for part in self.parts)], shard)

    def numbers(self, part: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the number, over all parts, of the new shard that has each position."""
        before = sum(each.shards for each in self.parts[:part])
        return before + self.parts[part].shard_of(positions)

    @property
    def blocks(self) -> int:
        """The number of blocks in the file of each shard of documents."""
        return self.new_shards if self.groups is None else self.groups.count

    def block_of(self, part: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the block of such a file that has each position of a part."""
        numbers = self.numbers(part, positions)
        if self.groups is None:
            return numbers
        return np.searchsorted(np.array(self.groups.starts), numbers, side="right") - 1

    @property
    def blocks_made_of(self) -> str:
        """The SHA-256 of what decides the block files: also the groups of new shards."""
        return sha256(f"{self.made_of} {self.groups}".encode()).hexdigest()

    @property
    def counts_overlap(self) -> bool:
        """True if texts of both parts are compared; a division by texts leaves none in both."""
        arrangement = self.arrangement
        return arrangement.validation_share is not None and arrangement.validation_by == "id"

    @property
    def with_labels(self) -> bool:
        """True if the ids and sources of documents go into the new shards."""
        return shard_format(self.shard_format).labelled and not self.arrangement.sequence_length

    @property
    def id_type(self) -> np.dtype[Any]:
        """The type of ids in block files."""
        return np.dtype(np.uint16 if self.vocab_size <= 1 << 16 else np.uint32)

    @property
    def slices_schema(self) -> pa.Schema:
        """The columns of block files."""
        columns = [
            ("position", pa.int64()),
            ("offset", pa.int64()),
            ("ids", pa.large_binary()),  # bytes are moved faster than lists
        ]
        return pa.schema([*columns, *(LABELS if self.with_labels else ())])


class DocumentsShard(Struct, frozen=True):
    """A task: a shard of documents.

    `before` has the sums of each part over the earlier shards; it is empty until all are measured.
    """

    index: int
    name: str
    before: tuple[PartSums, ...] = ()


class NewShard(Struct, frozen=True):
    """A task: a new shard, by its part and its number there."""

    part: int
    shard: int
