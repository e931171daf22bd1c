"""A split of the plan as it travels to a worker, and the names of tasks and their files."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import astuple

from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import REJECTS
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local

if TYPE_CHECKING:
    import pyarrow as pa


class SplitTask(Struct, frozen=True):
    """One split, with only the files that it reads.

    A plan of a million files is too large for every worker; a task carries only its files.
    """

    plan: Plan  # the plan's root and, under their numbers, the files of this split
    split: Split
    splits: int  # the number of splits of the whole plan

    def to_json(self) -> str:
        """Return the task as the text that travels to a worker."""
        plan, split = self.plan, self.split
        files = {i: astuple(plan.files[i]) for i in sorted({each.file for each in split.slices})}
        row = plan.root, files, plan.sample_bytes, split.index, split.slices, self.splits
        return json.dumps(row, ensure_ascii=False)

    def text_files(self) -> list[str]:
        """Return the names of the text files of the split, sorted."""
        files = (self.plan.files[slice_.file] for slice_ in self.split.slices)
        return sorted({file.name for file in files if file.format == "text"})

    @staticmethod
    def from_json(text: str) -> SplitTask:
        """Read the text that `to_json` returned."""
        root, files, sample_bytes, index, slices, splits = json.loads(text)
        # By number as in the whole plan: positions in the corpus contain the files' numbers.
        by_number: Any = {int(number): InputFile(*values) for number, values in files.items()}
        split = Split(index, tuple(Slice(*values) for values in slices))
        return SplitTask(Plan(root, by_number, (split,), sample_bytes=sample_bytes), split, splits)


def split_tasks(plan: Plan, done: Collection[int] = ()) -> list[str]:
    """Return the tasks of a plan's splits as the texts that travel to workers."""
    splits = len(plan.splits)
    remaining = [split for split in plan.splits if split.index not in done]
    remaining.sort(key=lambda split: (-split.size, split.index))
    return [SplitTask(plan, split, splits).to_json() for split in remaining]


def require_visible(storage: Storage, *folders: str) -> None:
    """Refuse folders that this worker does not see; the process that launched it does."""
    for folder in filter(is_local, folders):
        if not storage.is_folder(folder):
            raise DataError(
                f"the worker on {socket.gethostname()} does not see the folder {folder}: workers "
                "read and write files themselves, so give a folder that is mounted under this name "
                "on every machine, or the URL of a store"
            )


def task_name(kind: str, number: int, count: int) -> str:
    """Return the name of a task, and of its receipt: `counts-00003-of-00012`."""
    return f"{kind}-{number:05}-of-{count:05}"


def rejects_name(split: int, splits: int) -> str:
    """Return the name of the file of a split's rejects in a job's folder."""
    return f"{REJECTS}/{task_name('rejects', split, splits)}.jsonl"


def text_bytes_of(batch: pa.RecordBatch) -> int:
    """Return the size of the texts of a batch of documents, in bytes of UTF-8."""
    text = batch.column("text")
    offsets = text.buffers()[1]
    if offsets is None or len(text) == 0:
        return 0
    bounds = memoryview(offsets).cast("q")
    return int(bounds[text.offset + len(text)] - bounds[text.offset])
