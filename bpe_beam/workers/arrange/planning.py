"""Between the steps: the sums over measured shards, the plan of new shards, and the tasks.

A driver calls these functions, of a job or in a step of a pipeline. They read receipts only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import add
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import Publication, Receipt, TaskFolder
from bpe_beam.shards.numbering import number_shards, shard_files
from bpe_beam.shards.packing import plan_best_fit
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, shard_row
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.storage.names import is_local
from bpe_beam.workers.arrange.task import (
    ArrangeTask,
    DocumentsShard,
    MeasureStats,
    NewShard,
    NewShardStats,
    PartPlan,
    PartSums,
    ShardGroups,
)
from bpe_beam.workers.split_task import task_name

T = TypeVar("T", bound=Struct)

LAYOUT = b"2"  # of block files; tasks that have left files of another layout run again

MIN_BLOCKS, MIN_BLOCK_BYTES, MIN_LOCAL_BLOCK_BYTES = 4096, 256 << 10, 16 << 10
"""With fewer blocks, or larger ones on average, each new shard is read from the file of every shard
of documents. A block costs a store's client 6 ms, as much as a megabyte that is read, regrouped and
written once more; from a local disk it costs 0.1 ms."""


def shard_tasks(kind: str, shards: int) -> list[str]:
    """Return the names of the tasks of a step, one for each shard of documents."""
    return [task_name(kind, index, shards) for index in range(shards)]


def to_element(value: Struct) -> str:
    """Return a task as the text that travels to a worker."""
    return msgspec.json.encode(value).decode()


def made_of(contents: Iterable[bytes]) -> str:
    """Return the SHA-256 of what decides the files of tasks: their layout, manifests, and sizes."""
    return sha256(b"".join(sha256(each).digest() for each in (LAYOUT, *contents))).hexdigest()


class Measured:
    """The measures of all shards of documents, by their receipts in order.

    Attributes:
        stats: The measures of each shard.
        totals: The sums of each part.

    Raises:
        DataError: A part has no token.
    """

    def __init__(self, task: ArrangeTask, receipts: Sequence[Receipt]) -> None:
        self._task = task
        self.receipts = receipts
        self.stats = [receipt.read_stats(MeasureStats) for receipt in receipts]
        by_part = zip(*(each.parts for each in self.stats), strict=True)
        self.totals = [sum(part, PartSums(0, 0)) for part in by_part]
        arrangement = task.arrangement
        for name, total in zip(arrangement.parts, self.totals, strict=True):
            if not total.tokens:
                raise DataError(
                    f"no token of {sum(each.documents for each in self.totals):,} documents is "
                    f"for {name}, with a validation share of {arrangement.validation_share}",
                    remedy="give another {validation_share}",
                )

    def rows(self, folder: TaskFolder) -> list[int]:
        """Return the number of documents, or of sequences, of each part; write the file of ranks.

        `folder` has the files of the receipts.
        """
        arrangement, totals = self._task.arrangement, self.totals
        length = arrangement.sequence_length
        if length is None:
            return [total.documents for total in totals]
        if not arrangement.is_best_fit:
            more = 0 if self._task.whole_sequences else length - 1
            return [(total.tokens + more) // length for total in totals]
        # The numbers of slices of each length before each shard, and in total.
        ranks = np.zeros(len(totals) * (length + 1), np.int64)
        with folder.storage.create(self._task.ranks) as file:
            for receipt in self.receipts:
                file.write(ranks.astype("<i8").tobytes())
                histogram = receipt.files[0]
                data = read_hashed(folder.storage, folder.path(histogram.name), histogram.sha256)
                ranks += np.frombuffer(data, "<i8")
            file.write(ranks.astype("<i8").tobytes())
        limit = arrangement.max_documents_per_sequence
        return [plan_best_fit(each, limit).sequences for each in np.split(ranks, len(totals))]

    def plans(self, rows: Sequence[int]) -> tuple[PartPlan, ...]:
        """Return the plan of each part, whose new shards have about `shard_tokens` tokens each."""
        arrangement = self._task.arrangement
        in_order = arrangement.sequence_length is None and arrangement.shuffle_seed is None
        plans = []
        for number, (name, count) in enumerate(zip(arrangement.parts, rows, strict=True)):
            tokens = self.totals[number].tokens
            shards = max(1, min(count, -(-tokens // arrangement.shard_tokens)))
            if in_order:  # long documents may follow each other
                measured = [each.parts[number] for each in self.stats]
                plans.append(PartPlan.by_tokens(name, measured, shards))
            else:
                plans.append(PartPlan.even(name, count, shards))
        return tuple(plans)

    def shards(self, names: Iterable[str]) -> list[DocumentsShard]:
        """Return the shards of documents, each with the sums of the shards before it."""
        nothing = tuple(PartSums(0, 0) for _ in self.totals)
        before = itertools.accumulate(
            (each.parts for each in self.stats),
            lambda sums, more: tuple(map(add, sums, more)),
            initial=nothing,
        )
        return [
            DocumentsShard(index, name, sums)
            for index, (name, sums) in enumerate(zip(names, before, strict=False))
        ]


def new_shards(plans: Sequence[PartPlan]) -> list[tuple[str, NewShard]]:
    """Return the tasks of all new shards, with their names."""
    return [
        (plan.task(shard), NewShard(number, shard))
        for number, plan in enumerate(plans)
        for shard in range(plan.shards)
    ]


def groups_of(folder: str, shards: int, parts: Sequence[int], id_bytes: int) -> ShardGroups | None:
    """Return groups of new shards, if these would be read in too many small blocks; None if not.

    With about as many groups as shards in each, there are fewest blocks; None if these are more
    than half of the blocks without groups.

    Args:
        folder: The URL of the folder whose files have the blocks.
        shards: The number of shards of documents.
        parts: The number of new shards of each part.
        id_bytes: The bytes of all ids.
    """
    blocks = shards * sum(parts)
    large = MIN_LOCAL_BLOCK_BYTES if is_local(folder) else MIN_BLOCK_BYTES
    if blocks < MIN_BLOCKS or id_bytes >= large * blocks:
        return None
    starts: list[int] = []
    size, first = math.isqrt(sum(parts)), 0
    for count in parts:
        starts += range(first, first + count, size)
        first += count
    groups = ShardGroups((*starts, first), -(-shards // len(starts)))
    return groups if 2 * (shards * groups.count + sum(parts) * groups.sets) <= blocks else None


class NumberedShards(Struct, frozen=True):
    """The new shards of a part: their files with final names, their rows, and their padding."""

    publications: list[Publication]
    rows: list[Shard | TokenlessSplit]
    padding: int


def numbered_shards(receipts: Sequence[Receipt], total: PartSums) -> NumberedShards | int:
    """Return the new shards of a part; if they have other tokens than its documents, how many."""
    stats = [receipt.read_stats(NewShardStats) for receipt in receipts]
    padding = sum(each.padding for each in stats)
    tokens = sum(each.tokens for each in stats) - padding
    if tokens != total.tokens:
        return tokens
    numbered = number_shards(receipts, [each.tokens for each in stats])
    rows = [
        shard_row(shard_files(publication.receipt), each.tokens, index, documents=each.rows)
        for index, (publication, each) in enumerate(zip(numbered, stats, strict=True))
    ]
    return NumberedShards(numbered, rows, padding)


def other_tokens(folder: str, tokens: int, total: PartSums) -> DataError:
    """Return the error of new shards that have other tokens than the documents."""
    return DataError(
        f"{folder}: the new shards have {tokens:,} tokens of documents; expected "
        f"{total.tokens:,}: the runner lost a result, or a file of this run was changed; run this "
        "job again"
    )
