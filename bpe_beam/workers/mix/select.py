"""The next steps: keys of documents, and those that are taken, measured in the order of keys."""

from __future__ import annotations

import numpy as np

from bpe_beam import json_structs
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.packing import slices_of
from bpe_beam.workers.arrange.task import MeasureStats, PartSums
from bpe_beam.workers.mix.task import (
    Group,
    KeyRange,
    MixTask,
    RecordBlocks,
    read_blocks,
    read_table,
    write_table,
)
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult


def key_group(task: MixTask, element: str) -> TaskResult:
    """Write the keys of a group, the tokens by slot and range, and the receipt.

    The output is the task's name.
    """
    group = json_structs.decode(element, Group)
    folder = task.folder
    require_visible(folder.storage, folder.url)
    name = task_name("keyed", group.index, task.groups)
    numbered = read_table(folder.storage, group.numbered, tables.NUMBERED)
    sums = np.zeros((len(tables.slots(task.ranges)), task.partitions), np.int64)
    validation = task.arrange.arrangement.validation_share is not None
    with RecordBlocks(folder, name, tables.KEYED, task.partitions) as file:
        for source, each in enumerate(task.ranges):
            epochs = [] if each is None else [(tables.TRAIN, epoch) for epoch in each.epochs]
            if validation:
                epochs.append((tables.VALIDATION, 0))
            for part, epoch in epochs:
                keyed = tables.keyed(numbered, source, part, epoch, task.names[source], task.seed)
                sums += tables.tokens_by_slot(keyed, task.ranges, task.partitions)
                file.add_table(keyed, tables.partitions_of(keyed, task.partitions))
        file.finish()
    files = [file.info(), write_table(folder, f"{name}-sums", sums)]
    folder.write_receipt(name, files, {"made_of": task.arrange.made_of})
    return TaskResult([name])


def select_range(task: MixTask, keyed: list[str], element: str) -> TaskResult:
    """Write the documents that are taken of a range of keys, in order, and the receipt.

    The receipt has the stats of a measured shard. The output is the task's name.
    """
    key_range = json_structs.decode(element, KeyRange)
    folder, arrangement = task.folder, task.arrange.arrangement
    require_visible(folder.storage, folder.url)
    name = task_name("selected", key_range.index, task.partitions)
    table = read_blocks(folder.storage, keyed, tables.KEYED, key_range.index, task.partitions)
    selected = tables.taken(table, task.ranges, np.array(key_range.before, np.int64))
    lengths = [
        selected["length"][selected["part"] == part].astype(np.int64)
        for part in range(len(arrangement.parts))
    ]
    files = []
    length = arrangement.sequence_length
    if arrangement.is_best_fit and length is not None:
        histogram = [
            np.bincount(slices_of(each, length)[1], minlength=length + 1) for each in lengths
        ]
        files.append(write_table(folder, f"{name}-lengths", np.array(histogram, "<i8")))
    files.append(write_table(folder, name, selected))
    sums = tuple(PartSums(each.size, int(each.sum())) for each in lengths)
    folder.write_receipt(name, files, MeasureStats(task.arrange.made_of, sums, ()))
    return TaskResult([name])
