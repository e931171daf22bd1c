"""Write the documents of shards as a shard of another format, without tokenizing again.

A worker reads the documents of one new shard a batch at a time and writes them, in one task. Before
that, other tasks compare the files that are read with their hashes, so that no damage gets a new
hash. As in `tokenize_split.py`, the shard becomes visible in `work/` as a whole and then gets its
receipt, and final names follow from all receipts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import json_structs, progress
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder, require_files
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardOrigin, ShardWriter
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.split_task import require_visible
from bpe_beam.workers.task_results import TaskResult

STAGE = "convert"  # the progress stage, in tokens, that gets reports


class ConvertStats(Struct, frozen=True, forbid_unknown_fields=True):
    """The stats in the receipt of a new shard: its documents and tokens."""

    documents: Count
    tokens: Count


class OldFiles(Struct, frozen=True):
    """Files of one of the folders that are read."""

    folder: int
    files: tuple[FileInfo, ...]


class ShardSlice(Struct, frozen=True):
    """Documents of a shard that is read: from a position to another, or to the end of the shard.

    `folder` is the number of the shard's folder; for positions see `document_batches`.
    """

    folder: int
    name: str
    start: Count = 0
    stop: Count | None = None


class NewShard(Struct, frozen=True):
    """A shard to be written: number `index` of `count`, with about `tokens` tokens."""

    index: int
    count: int
    tokens: int
    slices: tuple[ShardSlice, ...]

    @property
    def name(self) -> str:
        """Its name in `work/`, and the name of its task."""
        return shard_name(self.index, self.count)


@dataclass(frozen=True)
class ConvertTask:
    """The facts that the tasks of all new shards share; plain and picklable.

    `urls` are the folders that are read, `formats` the format of each; `shard_format` is the new
    one.
    """

    folder: TaskFolder
    urls: tuple[str, ...]
    formats: tuple[str, ...]
    shard_format: str
    vocab_size: int
    origin: ShardOrigin


def same_shards(manifests: Sequence[Manifest]) -> list[NewShard]:
    """Return a new shard for each shard, and each split without tokens, of all folders."""
    rows = [(folder, row) for folder, manifest in enumerate(manifests) for row in manifest.rows]
    return [
        NewShard(index, len(rows), row.tokens, (ShardSlice(folder, row.name),) if row.files else ())
        for index, (folder, row) in enumerate(rows)
    ]


def even_shards(manifests: Sequence[Manifest], count: int) -> list[NewShard]:
    """Return new shards of about as many tokens each: a document is where its first token is."""
    count = max(1, min(count, sum(manifest.totals.documents for manifest in manifests)))
    total = sum(manifest.totals.tokens for manifest in manifests)
    bounds = [total * index // count for index in range(count + 1)]

    def shard_at(position: int) -> int:
        """Return the last shard that begins at a position of all tokens, or before it."""
        return min(count - 1, (count * (position + 1) - 1) // max(total, 1))

    slices: list[list[ShardSlice]] = [[] for _ in range(count)]
    begin = 0
    shards = [(n, shard) for n, manifest in enumerate(manifests) for shard in manifest.shards]
    for folder, shard in shards:
        end = begin + shard.tokens
        # Documents without tokens at the end of a shard are at the position of the next token.
        for index in range(shard_at(begin), shard_at(end) + 1):
            start = max(0, bounds[index] - begin)
            stop = (
                None if index == count - 1 or bounds[index + 1] > end else bounds[index + 1] - begin
            )
            if stop is None or start < stop:
                slices[index].append(ShardSlice(folder, shard.name, start, stop))
        begin = end
    sizes = (stop - start for start, stop in itertools.pairwise(bounds))
    return [
        NewShard(index, count, size, tuple(each))
        for index, (size, each) in enumerate(zip(sizes, slices, strict=True))
    ]


def check_files(task: ConvertTask, element: str) -> TaskResult:
    """Compare the files of a shard with their hashes; the output is the first file's name."""
    old = json_structs.decode(element, OldFiles)
    storage, url = task.folder.storage, task.urls[old.folder]
    require_visible(storage, url)
    require_files(storage, url, old.files)
    return TaskResult([old.files[0].name])


def convert_shard(task: ConvertTask, checked: list[str], element: str) -> TaskResult:
    """Write a new shard, and its receipt; the output is the shard's name."""
    new = json_structs.decode(element, NewShard)
    folder = task.folder
    require_visible(folder.storage, folder.url)
    format_ = shard_format(task.shard_format)
    target = folder.storage, folder.path(WORK), new.name, task.vocab_size
    with format_.writer(*target, task.origin) as writer:
        for shard_slice in new.slices:
            _write_slice(task, writer, shard_slice)
    shard = writer.result()
    files = [replace(file, name=f"{WORK}/{file.name}") for file in shard.files]
    folder.write_receipt(new.name, files, ConvertStats(shard.documents, shard.tokens))
    return TaskResult(
        [new.name], {"documents_written": shard.documents, "tokens_written": shard.tokens}
    )


def _write_slice(task: ConvertTask, writer: ShardWriter, documents: ShardSlice) -> None:
    source = shard_format(task.formats[documents.folder])
    with source.reader(task.folder.storage, task.urls[documents.folder], documents.name) as reader:
        labelled = source.labelled and shard_format(task.shard_format).labelled
        for batch in document_batches(reader, documents.start, documents.stop, labelled=labelled):
            writer.write_documents(*batch)
            rows = {task.origin.unit: batch.offsets.size - 1}
            progress.report(STAGE, done=batch.ids.size, **rows)
