"""`ReadDocuments`: files in, Arrow batches of documents out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.corpus.boundaries import files_with_gaps, speculative_part
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import FileLoss, Limit, Reject, RejectWriter, add_losses, names_in
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, require
from bpe_beam.messages import list_few
from bpe_beam.storage import PathName, Storage, path_name
from bpe_beam.storage.names import absolute
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.claimed_folder import take_folder
from bpe_beam.transforms.document_order import first_of_split, with_order
from bpe_beam.transforms.shuffles import SpreadTasks, outputs_of
from bpe_beam.workers.split_task import SplitTask, split_tasks, task_name, text_bytes_of

_REPORTS = "reports"

_UNSPLITTABLE = (
    "if a large file that is compressed, CSV or WARC is sound, it cannot be split: set range_bytes "
    "to its size"
)


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadDocuments(beam.PTransform):
    """Reads documents from files, in splits, so that a large file feeds many workers.

    The output is Arrow batches of a few MB with the columns `id`, `source`, `place` and `text`.
    Each carries its place in the corpus in its schema's metadata, for `WriteTokens`. One
    worker reads a split, one batch at a time.

    Counters: `text_bytes_read`, `records_rejected`, `stored_bytes_lost`.

    Args:
        inputs: Paths, URLs, globs or `@file` lists.
        settings: The settings by which files become documents.
        rejects: Folder for unusable records, one JSONL file a split. Without it such a record fails
            the run; the message names its file and position.
        max_lost: Maximum stored bytes that may be lost in damaged files: a number of bytes, or a
            share of all bytes such as "0.1%". With "0" the first loss fails the run.
        range_bytes: Size of a split in bytes, at least 1; the default is the same as in the command
            line.
        exclude: Files to exclude, named like the inputs.
        cut_compressed: Whether gzip and zstd files are split at their members and frames too.
            Documents after the first boundary then have no place. If a file turns out to have
            other boundaries, the run fails at its end with a message.
        storage: The storage client.

    Raises:
        UsageError: There are no such files, or `inputs` or `exclude` is not a list.
    """

    def __init__(
        self,
        inputs: Iterable[PathName],
        settings: ReadSettings | None = None,
        *,
        rejects: PathName | None = None,
        max_lost: str | int = "0",
        range_bytes: int | None = None,
        exclude: Iterable[PathName] = (),
        cut_compressed: bool = True,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("inputs", inputs), ("exclude", exclude)):
            is_list = not isinstance(value, (str, os.PathLike))
            require(is_list, f"must be a list, such as [{value!r}], got {value!r}", name)
        self.settings = settings or ReadSettings()
        self.rejects = None if rejects is None else absolute(path_name(rejects, "rejects"))
        self.max_lost = Limit.parse(max_lost, "max_lost")
        self.storage = storage or Storage()
        if self.rejects is not None:
            self.storage.make_folder(self.rejects)
        self.plan = make_plan(
            self.storage,
            [path_name(each, "inputs") for each in inputs],
            input_format=self.settings.input_format,
            document_separator=self.settings.document_separator,
            range_bytes=range_bytes,
            exclude=[path_name(each, "exclude") for each in exclude],
            cut_compressed=cut_compressed,
        )
        self.settings.check_names([file.name for file in self.plan.files])

    def display_data(self) -> dict[str, Any]:
        return {
            "files": len(self.plan.files),
            "stored_bytes": self.plan.size,
            "splits": len(self.plan.splits),
            "input_format": self.settings.input_format,
        }

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the documents."""
        if self.rejects is not None:
            take_folder(begin.pipeline, self.rejects, "rejects")
        fingerprint = self.plan.fingerprint()
        reader = _SplitReader(self.storage, self.settings, self.rejects, self.max_lost, fingerprint)
        tasks = begin | "Splits" >> SpreadTasks(split_tasks(self.plan))
        types = {"documents": pa.RecordBatch, _REPORTS: beam.typehints.Tuple[int, str]}
        read = outputs_of(tasks, "ReadSplit", beam.FlatMap(reader.read), types)
        boundaries = speculative_part(self.plan)
        if boundaries.splits or self.max_lost.numerator:
            check = beam.FlatMap(_check_reports, boundaries, self.max_lost, self.plan.size)
            (
                read[_REPORTS]
                | "GatherReports" >> beam.GroupByKey()
                | "CheckReports" >> check.with_output_types(str)
            )
        return read["documents"]


def _check_reports(
    element: tuple[int, Iterable[str]], boundaries: Plan, max_lost: Limit, stored_bytes: int
) -> Iterable[str]:
    """Fail unless the slices of each file are contiguous, and few enough bytes are lost."""
    rows = [json.loads(row) for row in element[1]]
    reported = [Boundaries(*row) for row in rows if isinstance(row, list)]
    losses = add_losses(FileLoss(**row) for row in rows if isinstance(row, dict))
    wrong = files_with_gaps(boundaries, reported) if boundaries.splits else ()
    if wrong:
        names = [boundaries.files[number].name for number in sorted(wrong)]
        raise DataError(
            f"{list_few(names)}: cannot be read in slices (broken, or written so that "
            "boundaries are unclear); set cut_compressed=False in ReadDocuments, or "
            "range_bytes to the file's size"
        )
    lost = sum(loss.bytes for loss in losses)
    if lost and max_lost.exceeded(lost, stored_bytes):
        raise DataError(
            f"{lost:,} of {stored_bytes:,} stored bytes are lost in {len(losses):,} "
            f"damaged files ({list_few([loss.file for loss in losses])}), more than max_lost "
            "of ReadDocuments allows; get sound copies of these files, exclude them, or "
            "increase max_lost"
        )
    return ()


class _SplitReader(NamedTuple):
    """Reads splits: batches of documents, and reports of boundaries and losses under one key."""

    storage: Storage
    settings: ReadSettings
    rejects: str | None
    max_lost: Limit
    plan_fingerprint: str

    def read(self, element: str) -> Iterator[Any]:
        task = SplitTask.from_json(element)
        boundaries: list[Boundaries] = []
        text_files = tuple(task.text_files())
        order = first_of_split(task.split.index, self.plan_fingerprint, text_files)
        writer = None
        with ExitStack() as stack:
            if self.rejects is not None:
                name = f"{task_name('rejects', task.split.index, task.splits)}.jsonl"
                url = self.storage.join(self.rejects, name)
                writer = stack.enter_context(RejectWriter(self.storage, url))
            for batch in read_split(
                self.storage,
                task.plan,
                task.split,
                self.settings,
                partial(self._reject, writer),
                boundaries.append,
            ):
                counters.counter("text_bytes_read").inc(text_bytes_of(batch))
                yield with_order(batch, order)
                order = replace(order, first=order.first + len(batch))
        losses = () if writer is None else writer.losses
        counters.counter("stored_bytes_lost").inc(sum(loss.bytes for loss in losses))
        for report in (*boundaries, *losses):
            row = msgspec.json.encode(report).decode()
            yield beam.pvalue.TaggedOutput(_REPORTS, (0, row))

    def _reject(self, writer: RejectWriter | None, reject: Reject) -> None:
        """Write and count an unusable record; without a writer, or a limit, fail."""
        counters.counter("records_rejected").inc()
        if writer is None:
            field = self.settings.text_field_of(reject.file)
            names = names_in(reject.to_json(), field)
            raise DataError(
                f"{reject.file}, {reject.position}: {reject.reason} {reject.detail}{names}: "
                f"correct it, or set rejects in ReadDocuments to a folder; {_UNSPLITTABLE}"
            )
        if reject.lost_bytes is not None and not self.max_lost.numerator:
            raise DataError(
                f"{reject.file}, {reject.position}: {reject.reason}: {reject.detail}; "
                f"{reject.lost_bytes:,} stored bytes are lost; get a sound copy of the file, "
                f"exclude it, or set max_lost in ReadDocuments; {_UNSPLITTABLE}"
            )
        writer.add(reject)
