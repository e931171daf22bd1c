"""The reader of a split that counting and tokenizing share, and what receipts keep of the split."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict

from bpe_beam import progress
from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import BATCH_BYTES, read_split
from bpe_beam.corpus.rejects import FileLoss, RejectWriter, add_losses
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.split_task import SplitTask, rejects_name, require_visible, text_bytes_of
from bpe_beam.workers.task_results import Metric, TaskResult


class SplitReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bytes and the versions of the files that a split was read from."""

    # (file's number, start, end) of each slice, in bytes.
    slices: tuple[tuple[Count, Count, Count], ...] = ()
    # The tag of each slice's file; None if the split was restored from a manifest.
    tags: tuple[str, ...] | None = None
    # The begins and ends of the records of slices with speculative boundaries; None if the
    # split was restored: a finished job has proven its slices contiguous.
    boundaries: tuple[Boundaries, ...] | None

    @staticmethod
    def of(plan: Plan, split: Split, boundaries: Iterable[Boundaries]) -> SplitReading:
        tags = tuple(plan.files[slice_.file].tag for slice_ in split.slices)
        return SplitReading(slices=split.slices, tags=tags, boundaries=tuple(boundaries))

    @staticmethod
    def restored(split: Split) -> SplitReading:
        """Return the reading of a split of a finished job."""
        return SplitReading(slices=split.slices, boundaries=None)

    def is_of(self, plan: Plan, split: Split) -> bool:
        """Return whether the split has these slices of these versions of files."""
        now = SplitReading.of(plan, split, ())
        return self.slices == now.slices and self.tags in (None, now.tags)


class SplitStats(SplitReading, frozen=True, kw_only=True):
    """The facts about a split that was read, with its rejects by reason, sorted."""

    documents: Count
    text_bytes: Count
    rejects: dict[str, Count]
    lost: tuple[FileLoss, ...] = ()


def reject_reasons(splits: Iterable[SplitStats]) -> dict[str, int]:
    """Return the number of rejects of all splits by reason, sorted by reason."""
    reasons: Counter[str] = Counter()
    for stats in splits:
        reasons.update(stats.rejects)
    return dict(sorted(reasons.items()))


def lost_files(splits: Iterable[SplitStats]) -> tuple[FileLoss, ...]:
    """Return the loss of each file over all splits, sorted by file."""
    return add_losses(loss for stats in splits for loss in stats.lost)


class CorpusTask(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a job over a corpus for its workers; plain and picklable."""

    folder: TaskFolder
    reading: ReadSettings
    stage: str  # the progress stage that gets reports
    lose_changed: bool = False  # see `read_split`

    @property
    def by_source(self) -> bool:
        return self.reading.names_sources


class SplitReader:
    """Reads the texts of a split; `rejects` is to be entered while batches are read."""

    def __init__(self, corpus: CorpusTask, element: str) -> None:
        self._started = time.monotonic()
        self.task = SplitTask.from_json(element)
        self._corpus = corpus
        folder = corpus.folder
        require_visible(folder.storage, folder.url, self.task.plan.root)
        self._rejects_name = rejects_name(self.task.split.index, self.task.splits)
        self.rejects = RejectWriter(folder.storage, folder.path(self._rejects_name))
        self._boundaries: list[Boundaries] = []
        self.documents = 0
        self.text_bytes = 0

    def batches(
        self, *, labelled: bool = False, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch]:
        corpus = self._corpus
        return read_split(
            corpus.folder.storage,
            self.task.plan,
            self.task.split,
            corpus.reading,
            self.rejects.add,
            self._boundaries.append,
            batch_bytes=batch_bytes,
            only_text=not labelled,
            on_read=lambda count: progress.report(corpus.stage, done=count),
            lose_changed=corpus.lose_changed,
        )

    def add(self, batch: pa.RecordBatch, **amounts: int) -> None:
        """Add a batch of processed documents, and report it with other amounts."""
        size = text_bytes_of(batch)
        self.documents += batch.num_rows
        self.text_bytes += size
        progress.report(self._corpus.stage, documents=batch.num_rows, bytes=size, **amounts)

    def reject_files(self) -> list[FileInfo]:
        """Return the file of the rejects, if any, after the `with` block of `rejects`."""
        return [self._corpus.folder.describe(self._rejects_name)] if self.rejects.total else []

    def stats(self) -> Mapping[str, Any]:
        """Return the fields of `SplitStats` by name."""
        return {
            "documents": self.documents,
            "text_bytes": self.text_bytes,
            "rejects": dict(sorted(self.rejects.counts.items())),
            "lost": self.rejects.losses,
            **asdict(SplitReading.of(self.task.plan, self.task.split, self._boundaries)),
        }

    def result(self, outputs: list[Any], counts: Mapping[Metric, int]) -> TaskResult:
        """Return the result of the split's task, with these and all other metrics."""
        lost = sum(loss.bytes for loss in self.rejects.losses)
        values = {
            "split_documents": self.documents,
            "split_text_bytes": self.text_bytes,
            "split_milliseconds": round(1000 * (time.monotonic() - self._started)),
        }
        rejected: dict[Metric, int] = {
            "records_rejected": self.rejects.total,
            "stored_bytes_lost": lost,
        }
        return TaskResult(outputs, {**counts, **rejected}, values)
