"""The third step, if there are groups of new shards: from blocks for groups to blocks for shards.

If each new shard were read from the file of each shard of documents, a large corpus would be read
in billions of tiny blocks. With groups of about as many new shards as there are groups, each block
is read twice, but a new shard no longer has a block in the file of each shard of documents.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

from bpe_beam import progress
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.workers.arrange.block_files import (
    BlockFileWriter,
    blocks_of,
    one_of_each,
    token_count,
)
from bpe_beam.workers.arrange.scatter import MAX_UNUSED_BYTES
from bpe_beam.workers.arrange.task import STAGE, ArrangeTask
from bpe_beam.workers.split_task import require_visible
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.unused_memory import release_unused_memory


def regroup_blocks(
    task: ArrangeTask, known: Sequence[str], scattered: Sequence[str], element: str
) -> TaskResult:
    """Write the slices of a group of new shards that a set of block files has, in a block for each
    new shard, and the receipt; the output is the file's URL. The element is the task's number.
    """
    release_unused_memory(MAX_UNUSED_BYTES)
    folder, groups = task.folder, task.groups
    assert groups is not None
    require_visible(folder.storage, folder.url)
    number = int(element)
    (name,) = groups.tasks(number, number + 1)
    group, set_ = divmod(number, groups.sets)
    first, stop = groups.starts[group : group + 2]
    part = task.part_of(first)
    # Every n-th file: those that follow each other have documents of the same new shards, if
    # documents are in their order.
    urls = one_of_each([*known, *scattered], task.shards)[set_ :: groups.sets]
    file_name = f"{WORK}/{name}.bin"
    schema = task.slices_schema
    with (
        contextlib.closing(blocks_of(folder.storage, urls, schema, group, groups.count)) as found,
        folder.storage.create(folder.path(file_name)) as stored,
        BlockFileWriter(stored, schema, stop - first) as file,
    ):
        for slices in itertools.chain.from_iterable(found):
            positions = slices.column("position").to_numpy()
            file.add(slices, task.numbers(part, positions) - first)
            progress.report(STAGE, done=token_count(slices.column("ids"), task.id_type))
        file.finish()
    info = FileInfo.written(file_name, file.file)
    folder.write_receipt(name, [info], {"made_of": task.blocks_made_of})
    return TaskResult([folder.path(file_name)])
