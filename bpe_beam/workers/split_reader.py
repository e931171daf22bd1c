"""The reader of a split that counting and tokenizing share: its texts, rejects and statistics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from msgspec.structs import asdict

from bpe_beam import progress
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import BATCH_BYTES, read_split
from bpe_beam.corpus.rejects import RejectWriter
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.workers.split_stats import SplitReading
from bpe_beam.workers.split_task import SplitTask, rejects_name, require_visible, text_bytes_of
from bpe_beam.workers.task_results import Metric


class SplitReader:
    """Reads the texts of a split.

    Attributes:
        rejects: The writer of its rejects, to be entered while batches are read.
        text_bytes: The size of the added texts in bytes of UTF-8.
    """

    def __init__(
        self,
        folder: TaskFolder,
        element: str,
        settings: ReadSettings,
        stage: str,
        *,
        lose_changed: bool = False,
    ) -> None:
        self._started = time.monotonic()
        self.task = SplitTask.from_json(element)
        require_visible(folder.storage, folder.url, self.task.plan.root)
        self._folder = folder
        self._rejects_name = rejects_name(self.task.split.index, self.task.splits)
        self.rejects = RejectWriter(folder.storage, folder.path(self._rejects_name))
        self._settings = settings
        self._stage = stage
        self._lose_changed = lose_changed
        self._boundaries: list[Boundaries] = []
        self.documents = 0
        self.text_bytes = 0

    def batches(
        self, *, labelled: bool = False, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[pa.RecordBatch]:
        """Yield the documents in batches."""
        return read_split(
            self._folder.storage,
            self.task.plan,
            self.task.split,
            self._settings,
            self.rejects.add,
            self._boundaries.append,
            batch_bytes=batch_bytes,
            only_text=not labelled,
            on_read=lambda count: progress.report(self._stage, done=count),
            lose_changed=self._lose_changed,
        )

    def add(self, batch: pa.RecordBatch, **amounts: int) -> None:
        """Add a batch of processed documents, and report it with other amounts."""
        size = text_bytes_of(batch)
        self.documents += batch.num_rows
        self.text_bytes += size
        progress.report(self._stage, documents=batch.num_rows, bytes=size, **amounts)

    def reject_files(self) -> list[FileInfo]:
        """Return the file of the rejects, if any, after the `with` block of `rejects`."""
        return [self._folder.describe(self._rejects_name)] if self.rejects.total else []

    def stats(self) -> Mapping[str, Any]:
        """Return the fields of `SplitStats` by name."""
        return {
            "documents": self.documents,
            "text_bytes": self.text_bytes,
            "rejects": dict(sorted(self.rejects.counts.items())),
            "lost": self.rejects.losses,
            **asdict(SplitReading.of(self.task.plan, self.task.split, self._boundaries)),
        }

    def reject_counts(self) -> dict[Metric, int]:
        """Return the split's sums of rejects and losses by metric name."""
        return {
            "records_rejected": self.rejects.total,
            "stored_bytes_lost": sum(loss.bytes for loss in self.rejects.losses),
        }

    def values(self) -> dict[str, int]:
        """Return the values that the split adds to distributions, by metric name."""
        milliseconds = round(1000 * (time.monotonic() - self._started))
        return {
            "split_documents": self.documents,
            "split_text_bytes": self.text_bytes,
            "split_milliseconds": milliseconds,
        }
