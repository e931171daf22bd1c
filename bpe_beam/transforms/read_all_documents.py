"""`ReadAllDocuments`: files of a collection in, Arrow batches of documents out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe_beam.corpus.listing import described, root_and_names
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject, names_in
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.document_fn import DEAD, MAIN, DeadLetterTransform
from bpe_beam.transforms.document_order import PLACE
from bpe_beam.transforms.elements import ANY
from bpe_beam.transforms.shuffles import outputs_of
from bpe_beam.workers.split_task import SplitTask, split_tasks, text_bytes_of


@beam.typehints.with_input_types(ANY)
class ReadAllDocuments(DeadLetterTransform):
    """Reads documents from the files of a collection, bounded or unbounded.

    An element is a path or URL, or what `fileio.MatchFiles`, `MatchContinuously` and `ReadMatches`
    return; a file, not a glob. The output is Arrow batches as `ReadDocuments` returns them, with
    the timestamp and window of the file. `place` is null: files of a collection have no order.
    A large file is divided into splits, one worker reads a split, one batch at a time.

    A file that cannot be read, and an unusable record, fail the pipeline. `with_dead_letters` and
    `with_exception_handling` return them as text, with their reasons: the URL of a file, or the
    JSON of a record with its `file`, position and `bytes`, as a line of `__rejects` has it. Other
    documents of such a file may be in the output. A large file is returned once for each split that
    cannot be read; the reason names the stored bytes of the split.

    Counters: `text_bytes_read`, `records_rejected`, `stored_bytes_lost`, `dead_letters`.

    Args:
        settings: The settings by which files become documents.
        range_bytes: Size of a split in bytes, at least 1; the default is the same as in the command
            line.
        storage: The storage client.

    Raises:
        UsageError: An argument of a wrong kind.
    """

    def __init__(
        self,
        settings: ReadSettings | None = None,
        *,
        range_bytes: int | None = None,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        is_settings = settings is None or isinstance(settings, ReadSettings)
        require(is_settings, f"must be ReadSettings, got {settings!r}", "settings")
        is_size = range_bytes is None or (type(range_bytes) is int and range_bytes >= 1)
        require(is_size, f"must be at least 1, got {range_bytes!r}", "range_bytes")
        self.settings = settings or ReadSettings()
        self.range_bytes = range_bytes
        self.storage = storage or Storage()

    def display_data(self) -> dict[str, Any]:
        return {"input_format": self.settings.input_format, "dead_letters": self.dead_letters}

    def expand(self, files: beam.pvalue.PCollection) -> Any:
        """Return the documents, and the dead letters if they have an output."""
        letter = beam.typehints.Tuple[str, str]
        plans = outputs_of(
            files, "PlanFile", beam.ParDo(_PlanFile(self)), {MAIN: str, DEAD: letter}
        )
        documents = outputs_of(
            plans[MAIN] | "Spread" >> beam.Reshuffle(),
            "ReadSplit",
            beam.ParDo(_ReadSplit(self)),
            {MAIN: pa.RecordBatch, DEAD: letter},
        )
        if not self.dead_letters:
            return documents[MAIN]
        dead = (plans[DEAD], documents[DEAD]) | "DeadLetters" >> beam.Flatten().with_output_types(
            letter
        )
        return self._named(documents[MAIN], dead)


class _Reading(beam.DoFn):
    def __init__(self, read: ReadAllDocuments) -> None:
        self.settings = read.settings
        self.range_bytes = read.range_bytes
        self.storage = read.storage
        self.dead_letters = read.dead_letters

    def unusable(self, element: str, error: DataError | UsageError) -> beam.pvalue.TaggedOutput:
        """Return and count an element for the second output; without one, raise the error."""
        if not self.dead_letters:
            raise error
        counters.counter("dead_letters").inc()
        return beam.pvalue.TaggedOutput(DEAD, (element, str(error)))


class _PlanFile(_Reading):
    """Files to the tasks of their splits. One file's task is small: it names one file."""

    def process(self, element: Any) -> Iterator[Any]:
        try:
            yield from self._tasks(_url_of(element))
        except (DataError, UsageError) as error:
            yield self.unusable(_name_of(element), error)

    def _tasks(self, url: str) -> list[str]:
        url = absolute(url)
        file = self.storage.stat(url)
        root, names = root_and_names([url])
        files = described(self.storage, [(names[url], file)], self.settings.input_format)
        plan = plan_of_files(
            root,
            files,
            document_separator=self.settings.document_separator,
            range_bytes=self.range_bytes,
            cut_compressed=False,
            speculative=False,
        )
        return split_tasks(plan)


class _ReadSplit(_Reading):
    """Tasks of splits to batches of documents."""

    def process(self, element: str) -> Iterator[Any]:
        task = SplitTask.from_json(element)
        rejects: list[Reject] = []
        try:
            for batch in read_split(
                self.storage, task.plan, task.split, self.settings, rejects.append
            ):
                yield from self._rejected(rejects)
                counters.counter("text_bytes_read").inc(text_bytes_of(batch))
                at = batch.schema.get_field_index(PLACE)
                yield batch.set_column(
                    at, batch.schema.field(at), pa.nulls(len(batch), pa.uint64())
                )
        except (DataError, UsageError) as error:
            yield self.unusable(task.plan.url(task.split.slices[0].file), _of_split(error, task))
        yield from self._rejected(rejects)

    def _rejected(self, rejects: list[Reject]) -> Iterator[Any]:
        for reject in rejects:
            counters.counter("records_rejected").inc()
            counters.counter("stored_bytes_lost").inc(reject.lost_bytes or 0)
            record = reject.to_json()
            names = names_in(record, self.settings.text_field_of(reject.file))
            why = f"{reject.reason}: {reject.detail}{names}"
            text = json.dumps(record, ensure_ascii=False)
            yield self.unusable(text, DataError(f"{reject.file}, {reject.position}: {why}"))
        rejects.clear()


def _of_split(error: DataError | UsageError, task: SplitTask) -> DataError | UsageError:
    """Return an error with the stored bytes of the split, if this is not the whole file."""
    slices = task.split.slices
    start, end = slices[0].start, slices[-1].end
    if end - start == task.plan.files[slices[0].file].size:
        return error
    return type(error)(f"stored bytes {start:,} to {end:,}: {error}")


def _url_of(element: Any) -> str:
    """Return the path or URL of a file: of itself, of its metadata, or of a `ReadableFile`."""
    name = _path_of(element)
    if not isinstance(name, str):
        raise DataError(
            "ReadAllDocuments: an element must be a path, a URL, or what MatchFiles or ReadMatches "
            f"returns, got {type(element).__name__}"
        )
    return name


def _name_of(element: Any) -> str:
    return str(_path_of(element))


def _path_of(element: Any) -> Any:
    metadata = getattr(element, "metadata", element)
    path = getattr(metadata, "path", metadata)
    return os.fspath(path) if isinstance(path, os.PathLike) else path
