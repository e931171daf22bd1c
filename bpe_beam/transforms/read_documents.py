"""`ReadDocuments`: files in, Arrow batches of documents out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import apache_beam as beam
import msgspec
import pyarrow as pa

from bpe_beam.corpus.boundaries import files_with_gaps, speculative_part
from bpe_beam.corpus.limits import Limit
from bpe_beam.corpus.losses import FileLoss, add_losses
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.record_names import names_in
from bpe_beam.corpus.rejects import Reject, RejectWriter
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.spread_tasks import SpreadTasks
from bpe_beam.workers import metric_names
from bpe_beam.workers.split_task import SplitTask, split_tasks, task_name, text_bytes_of

_EDGES = "edges"
_LOSSES = "losses"


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadDocuments(beam.PTransform):
    """Reads documents from files, cut into splits so that a large file feeds many workers.

    The output is Arrow batches of a few MB with the columns `id`, `source`, `place` and `text`.
    One worker reads a split, one batch at a time.

    Args:
        inputs: Paths, URLs, globs or `@file` lists.
        settings: How files become documents.
        rejects: Folder for the records that cannot be used, one JSONL file a split. Without it such
            a record fails the run; the message names its file and position.
        max_lost: The most stored bytes that may be lost in damaged files: a number of bytes, or a
            share of all bytes such as "0.1%". With "0" the first loss fails the run.
        range_bytes: Size of a split in bytes, at least 1; by default that of the command line.
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
        inputs: Iterable[str],
        settings: ReadSettings | None = None,
        *,
        rejects: str | None = None,
        max_lost: str | int = "0",
        range_bytes: int | None = None,
        exclude: Iterable[str] = (),
        cut_compressed: bool = True,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("inputs", inputs), ("exclude", exclude)):
            if isinstance(value, str):
                raise UsageError(f"{name} must be a list, such as [{value!r}], got {value!r}")
        self.settings = settings or ReadSettings()
        self.rejects = None if rejects is None else absolute(rejects)
        self.max_lost = Limit.parse(max_lost, "max_lost")
        self.storage = storage or Storage()
        if self.rejects is not None:
            self.storage.make_folder(self.rejects)
        self.plan = make_plan(
            self.storage,
            list(inputs),
            input_format=self.settings.input_format,
            document_separator=self.settings.document_separator,
            range_bytes=range_bytes,
            exclude=list(exclude),
            cut_compressed=cut_compressed,
        )

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Return the documents."""
        read = (
            begin
            | "Splits" >> SpreadTasks(split_tasks(self.plan))
            | "ReadSplit"
            >> beam.ParDo(_ReadSplit(self.storage, self.settings, self.rejects, self.max_lost))
            .with_outputs(_EDGES, _LOSSES, main="documents")
            .with_output_types(pa.RecordBatch | str)
        )
        # A hint is of all outputs together: Beam's checks at run time know no other.
        read["documents"].element_type = pa.RecordBatch
        read[_EDGES].element_type = str
        read[_LOSSES].element_type = str
        guessed = speculative_part(self.plan)
        if guessed.splits:
            (
                read[_EDGES]
                | "KeyBoundaries" >> beam.Map(_under_one_key).with_output_types(tuple[int, str])
                | "GatherBoundaries" >> beam.GroupByKey()
                | "CheckBoundaries" >> beam.ParDo(_CheckBoundaries(guessed))
            )
        if self.max_lost.numerator:
            (
                read[_LOSSES]
                | "KeyLosses" >> beam.Map(_under_one_key).with_output_types(tuple[int, str])
                | "GatherLosses" >> beam.GroupByKey()
                | "LimitLosses" >> beam.ParDo(_LimitLosses(self.max_lost, self.plan.size))
            )
        return read["documents"]


def _under_one_key(edges: str) -> tuple[int, str]:
    return 0, edges


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _CheckBoundaries(beam.DoFn):
    """Fails unless the slices of every file with speculative boundaries are contiguous."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def process(self, element: tuple[int, Iterable[str]]) -> None:
        """Check the boundaries that all slices reported."""
        reported = [msgspec.json.decode(row, type=Boundaries) for row in element[1]]
        wrong = files_with_gaps(self.plan, reported)
        if wrong:
            names = [self.plan.files[number].name for number in sorted(wrong)]
            raise DataError(
                f"{list_few(names)}: cannot be read "
                "in slices (broken, or written so that boundaries cannot be found); set "
                "cut_compressed=False in ReadDocuments, or range_bytes to the file's size"
            )


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _LimitLosses(beam.DoFn):
    """Fails if more bytes are lost, over all splits, than the limit allows."""

    def __init__(self, limit: Limit, stored_bytes: int) -> None:
        self.limit = limit
        self.stored_bytes = stored_bytes

    def process(self, element: tuple[int, Iterable[str]]) -> None:
        """Add the losses that all splits reported."""
        losses = add_losses(msgspec.json.decode(row, type=FileLoss) for row in element[1])
        lost = sum(loss.bytes for loss in losses)
        if self.limit.exceeded(lost, self.stored_bytes):
            raise DataError(
                f"{lost:,} of {self.stored_bytes:,} stored bytes are lost in {len(losses):,} "
                f"damaged files ({list_few([loss.file for loss in losses])}), more than max_lost "
                "of ReadDocuments allows; get sound copies of these files, exclude them, or "
                "increase max_lost"
            )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(pa.RecordBatch | str)
class _ReadSplit(beam.DoFn):
    """Splits to batches of documents."""

    def __init__(
        self,
        storage: Storage,
        settings: ReadSettings,
        rejects: str | None,
        max_lost: Limit,
    ) -> None:
        self.storage = storage
        self.settings = settings
        self.rejects = rejects
        self.max_lost = max_lost

    def process(self, element: str) -> Iterator[Any]:
        """Read one split."""
        work = SplitTask.from_json(element)
        losses: tuple[FileLoss, ...] = ()
        with ExitStack() as stack:
            on_reject: Callable[[Reject], None] = partial(_fail, self.settings.text_field)
            if self.rejects is not None:
                name = f"{task_name('rejects', work.split.index, work.splits)}.jsonl"
                writer = RejectWriter(self.storage, self.storage.join(self.rejects, name))
                on_reject = stack.enter_context(writer).add
                if not self.max_lost.numerator:
                    on_reject = _unless_lost(on_reject)
            seen: list[Boundaries] = []
            for batch in read_split(
                self.storage,
                work.plan,
                work.split,
                self.settings,
                _counting(on_reject),
                seen.append,
            ):
                counters.counter(metric_names.TEXT_BYTES_READ).inc(text_bytes_of(batch))
                yield batch
            if self.rejects is not None:
                losses = writer.losses
        for loss in losses:
            counters.counter(metric_names.STORED_BYTES_LOST).inc(loss.bytes)
            yield beam.pvalue.TaggedOutput(_LOSSES, msgspec.json.encode(loss).decode())
        for edges in seen:
            yield beam.pvalue.TaggedOutput(_EDGES, msgspec.json.encode(edges).decode())


def _fail(text_field: str, reject: Reject) -> None:
    names = names_in(reject.to_json(), text_field, "text_field")
    raise DataError(
        f"{reject.file}, {reject.position}: {reject.reason} {reject.detail}{names}: correct it, or "
        "set rejects in ReadDocuments to a folder; if a large file that is compressed, CSV or "
        "WARC is sound, it cannot be split: set range_bytes to its size"
    )


def _unless_lost(on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """Return `on_reject` with a check: a loss fails the run."""

    def take(reject: Reject) -> None:
        if reject.lost_bytes is not None:
            raise DataError(
                f"{reject.file}, {reject.position}: {reject.reason}: {reject.detail}; "
                f"{reject.lost_bytes:,} stored bytes are lost; get a sound copy of the file, "
                "exclude it, or set max_lost in ReadDocuments; if a large file that is compressed, "
                "CSV or WARC is sound, it cannot be split: set range_bytes to its size"
            )
        on_reject(reject)

    return take


def _counting(on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """Return `on_reject` with a counter of its calls."""

    def count(reject: Reject) -> None:
        counters.counter(metric_names.RECORDS_REJECTED).inc()
        on_reject(reject)

    return count
