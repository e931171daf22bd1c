"""`ReadDocuments`: files in, Arrow batches of documents out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import apache_beam as beam
import pyarrow as pa

from bpe_beam.corpus import ReadSettings, Reject, RejectWriter, make_plan, read_split
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.transforms import counters
from bpe_beam.transforms.split_work import SplitWork, SpreadWorks, piece_name, text_bytes, works_of


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadDocuments(beam.PTransform):
    """Reads documents from files, cut into splits so that a large file feeds many workers.

    The output is Arrow batches of a few MB with the columns `id`, `source`, `place` and `text`.
    A split is read by one worker, a batch at a time.

    Args:
        inputs: Paths, URLs, globs or `@file` lists.
        settings: How files become documents.
        rejects: Folder for the records that cannot be used, a JSONL file a split. Without one such
            a record fails the run, named by its file and place.
        range_bytes: How finely files are cut; by default as the command line does.
        storage: How storage is reached.

    Raises:
        UsageError: No such files.
    """

    def __init__(
        self,
        inputs: Iterable[str],
        settings: ReadSettings | None = None,
        *,
        rejects: str | None = None,
        range_bytes: int | None = None,
        storage: Storage | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings or ReadSettings()
        self.rejects = rejects
        self.storage = storage or Storage()
        if rejects is not None:
            self.storage.make_folder(rejects)
        self.plan = make_plan(
            self.storage,
            list(inputs),
            input_format=self.settings.input_format,
            document_separator=self.settings.document_separator,
            range_bytes=range_bytes,
        )

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        return (
            begin
            | "Splits" >> SpreadWorks(works_of(self.plan))
            | "ReadSplit" >> beam.ParDo(_ReadSplit(self.storage, self.settings, self.rejects))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(pa.RecordBatch)
class _ReadSplit(beam.DoFn):
    """A split to batches of documents."""

    def __init__(self, storage: Storage, settings: ReadSettings, rejects: str | None) -> None:
        self.storage = storage
        self.settings = settings
        self.rejects = rejects

    def process(self, element: str) -> Iterator[pa.RecordBatch]:
        """Reads one split."""
        work = SplitWork.from_json(element)
        with ExitStack() as stack:
            on_reject = _fail
            if self.rejects is not None:
                name = f"{piece_name('rejects', work.split.index, work.splits)}.jsonl"
                url = self.storage.join(self.rejects, name)
                on_reject = stack.enter_context(RejectWriter(self.storage, url)).add
            for batch in read_split(
                self.storage, work.plan, work.split, self.settings, _counting(on_reject)
            ):
                counters.counter(counters.TEXT_BYTES_READ).inc(text_bytes(batch))
                yield batch


def _fail(reject: Reject) -> None:
    raise DataError(
        f"{reject.file}, byte {reject.offset}: {reject.reason} {reject.detail}: mend it, or give "
        "ReadDocuments a folder for rejects"
    )


def _counting(on_reject: Callable[[Reject], None]) -> Callable[[Reject], None]:
    """`on_reject`, each call counted."""

    def count(reject: Reject) -> None:
        counters.counter(counters.RECORDS_REJECTED).inc()
        on_reject(reject)

    return count
