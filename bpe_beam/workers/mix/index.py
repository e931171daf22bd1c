"""The first steps: tables of the documents of each shard, and equal documents told apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bpe_beam import json_structs, progress
from bpe_beam.folders.receipts import require_files
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.mixture_documents import IndexedDocuments, indexed_documents
from bpe_beam.shards.shard_rows import Arrangement
from bpe_beam.workers.arrange.block_files import one_of_each
from bpe_beam.workers.document_hashes import for_validation, mixed_hashes
from bpe_beam.workers.mix.task import (
    Group,
    GroupStats,
    IndexStats,
    InputShard,
    MixTask,
    RecordBlocks,
    read_blocks,
    write_table,
)
from bpe_beam.workers.split_task import require_visible, task_name
from bpe_beam.workers.task_results import TaskResult

STAGE = "index"  # the progress stage, in tokens, that gets reports


def index_shard(task: MixTask, element: str) -> TaskResult:
    """Write the table of a shard's documents, and the receipt; the output is the table's URL."""
    shard = json_structs.decode(element, InputShard)
    source, folder, arrangement = task.folders[shard.folder], task.folder, task.arrange.arrangement
    require_visible(folder.storage, folder.url, source.url)
    require_files(folder.storage, source.url, shard.files)
    name = task_name(f"index-{task.identities}", shard.index, task.arrange.shards)
    without_id: set[int] = set()
    documents = indexed_documents(
        folder.storage,
        source,
        (shard.index, shard.name),
        task.names,
        task.by_id,
        task.arrange.vocab_size,
        with_tokens=arrangement.validation_by == "tokens",
    )
    with RecordBlocks(folder, name, tables.DOCUMENT, task.groups) as file:
        for each in documents:
            if arrangement.validation_share is not None:
                each.table["part"] = _for_validation(arrangement, each)
            without_id |= {*np.unique(each.table["source"][each.unusable]).tolist()}
            file.add_table(each.table, tables.partitions_of(each.table, task.groups))
            progress.report(STAGE, done=int(each.table["length"].sum()))
        file.finish()
    stats = IndexStats(task.arrange.made_of, tuple(sorted(without_id)))
    folder.write_receipt(name, [file.info()], stats)
    return TaskResult([folder.path(file.info().name)])


def _for_validation(arrangement: Arrangement, documents: IndexedDocuments) -> NDArray[np.bool_]:
    """Return bool[n]: which documents are for validation, by their ids or their tokens."""
    assert arrangement.validation_share is not None
    by_tokens = documents.by_tokens
    if by_tokens is None:  # all documents have ids
        by_tokens = np.zeros((len(documents.table), 2), np.uint64)
    ids = documents.ids if arrangement.validation_by == "id" else None
    return for_validation(mixed_hashes(by_tokens, ids), arrangement.validation_share)


def number_group(task: MixTask, known: list[str], indexed: list[str], element: str) -> TaskResult:
    """Write the numbered documents of a group, and the receipt; the output is the task's name."""
    group = json_structs.decode(element, Group)
    folder = task.folder
    name = task_name(f"numbered-{task.identities}", group.index, task.groups)
    files = one_of_each([*known, *indexed], task.arrange.shards)
    table = read_blocks(folder.storage, files, tables.DOCUMENT, group.index, task.groups)
    numbered = tables.numbered(table, task.duplicates, task.names, task.seed)
    repeated = np.unique(numbered["source"][numbered["counter"] > 0]).tolist()
    dropped = [np.bincount(each["source"], minlength=len(task.names)) for each in (table, numbered)]
    stats = GroupStats(
        task.arrange.made_of,
        tables.sums_by_source(numbered, len(task.names)).tolist(),
        tuple((dropped[0] - dropped[1]).tolist()),
        tuple(repeated),
    )
    folder.write_receipt(name, [write_table(folder, name, numbered)], stats)
    return TaskResult([name])
