"""Groups of new shards: when there are any, and that the number of blocks stays small."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.task import ArrangeTask, PartPlan, ShardGroups

STORE, LOCAL = "s3://bucket/out", "/out"


@pytest.mark.parametrize("shards", [8, 50, 1000])
@pytest.mark.parametrize("new", [(9000,), (8190, 3), (4100, 4099, 1)])
def test_groups_have_all_new_shards_once(shards: int, new: tuple[int, ...]) -> None:
    groups = planning.groups_of(STORE, shards, new, 10**6)
    assert groups is not None
    assert groups.starts[0] == 0
    assert groups.starts[-1] == sum(new)
    assert all(start < stop for start, stop in pairwise(groups.starts))
    first = 0
    for count in new:  # no group has shards of two parts
        assert first in groups.starts
        first += count
    for shard in range(sum(new)):
        group = groups.group_of(shard)
        assert groups.starts[group] <= shard < groups.starts[group + 1]
    names = groups.tasks()
    assert len({*names}) == len(names) == groups.count * groups.sets
    assert groups.tasks(3, 5) == names[3:5]


def test_large_blocks_and_few_blocks_need_no_groups() -> None:
    for folder, each in ((STORE, planning.MIN_BLOCK_BYTES), (LOCAL, 16 << 10)):
        assert planning.groups_of(folder, 64, [64], each * 4096 - 1) is not None
        assert planning.groups_of(folder, 64, [60, 4], each * 4096) is None
        assert planning.groups_of(folder, 64, [63], 1) is None
        assert planning.groups_of(folder, 1, [1], 1) is None


@pytest.mark.parametrize("shards", [1, 2, 4000])
def test_groups_that_save_less_than_half_of_the_blocks_are_not_made(shards: int) -> None:
    for new in ([4096], [1] * 4096, [2, 4094]):
        groups = planning.groups_of(STORE, shards, new, 10**6)
        made = None if groups is None else shards * groups.count + 4096 * groups.sets
        assert made is None or made <= shards * 4096 // 2
        assert (made is None) == (shards < 3 or len(new) == 4096)


def test_blocks_of_15_terabytes() -> None:
    splits, new, tokens = 15_000, 97_000, 3_255_000_000_000
    groups = planning.groups_of(STORE, splits, [new], 2 * tokens)
    assert groups is not None
    blocks = splits * groups.count + new * groups.sets
    assert blocks < 10_000_000 < splits * new // 100
    assert groups.count * groups.sets < 1.1 * splits  # a task has about as much as a split


def test_positions_have_the_block_of_their_group() -> None:
    parts = (PartPlan.even("train", 40, 7), PartPlan.even("validation", 10, 3))
    task = object.__new__(ArrangeTask)
    for name, value in {"parts": parts, "groups": ShardGroups((0, 2, 4, 6, 7, 9, 10), 2)}.items():
        object.__setattr__(task, name, value)
    for part, rows in ((0, 40), (1, 10)):
        positions = np.arange(rows)
        numbers = task.numbers(part, positions)
        assert {task.part_of(number) for number in numbers.tolist()} == {part}
        groups = [task.groups.group_of(number) for number in numbers.tolist()]
        assert task.block_of(part, positions).tolist() == groups
    assert task.blocks == 6


def test_tasks_are_known_by_contents_layout_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {planning.made_of(each) for each in ([b"a"], [b"b"], [b"a", b"b"], [b"ab"])}
    monkeypatch.setattr(planning, "LAYOUT", b"other")
    known.add(planning.made_of([b"a"]))
    assert len(known) == 5
    task = object.__new__(ArrangeTask)
    blocks = set()
    for groups in (None, ShardGroups((0, 2), 1), ShardGroups((0, 2), 2), ShardGroups((0, 1, 2), 1)):
        for name, value in {"made_of": "a", "groups": groups}.items():
            object.__setattr__(task, name, value)
        blocks.add(task.blocks_made_of)
    assert len(blocks) == 4
