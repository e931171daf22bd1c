"""A split of the plan to Arrow batches of documents, whatever the files' formats.

A record belongs to the slice in which it begins, so any slices of a file give the same documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.corpus.batches import MAX_BATCH_ROWS, join
from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import WHOLE_FILE, ReadSettings
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, Reject, RejectReason
from bpe_beam.corpus.slices import Boundaries, SliceRequest
from bpe_beam.corpus.streams.stored import ChangedFileError, ignore
from bpe_beam.errors import NotFoundError
from bpe_beam.storage import Storage

BATCH_BYTES = 1 << 20
"""Approximate bytes of text of a batch."""

_MAX_PENDING = 256
"""Maximum number of batches that wait to be joined: one of a small file takes some 5 kB."""

_FIELD_FLAWS = (RejectReason.FIELD_MISSING.value, RejectReason.FIELD_NOT_A_STRING.value)


def read_split(
    storage: Storage,
    plan: Plan,
    split: Split,
    settings: ReadSettings,
    on_reject: Callable[[Reject], None],
    on_boundaries: Callable[[Boundaries], None] = ignore,
    *,
    batch_bytes: int = BATCH_BYTES,
    only_text: bool = False,
    on_read: Callable[[int], None] = ignore,
    lose_changed: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the documents that begin in a split, as batches of BATCH_SCHEMA.

    A batch has 1 to MAX_BATCH_ROWS documents, and about `batch_bytes` of text. With `only_text`,
    ids may be null, and so may sources that the settings do not name.

    `on_reject` gets each unusable record, in the order of the file, between the batches. A lost
    part of a damaged file is one reject with a `Loss`; with `lose_changed`, so is the rest of a
    file that has changed or no longer exists. `on_boundaries` is called at the end of each slice
    whose reader had to guess where its records begin; `boundaries.py` has the proof. `on_read`
    gets the stored bytes since its last call, which add up to the split's size; of a sample, it is
    called at the end of each slice that has documents.
    """

    def read(slice_: Slice) -> Iterator[pa.RecordBatch]:
        file = plan.files[slice_.file]
        # A row group may be larger than the slice in which it begins.
        by_rows = plan.sample_bytes is not None and input_format(file.format).columnar
        size = file.size if by_rows else slice_.end - slice_.start
        meter = _Meter(size, on_read if plan.sample_bytes is None else ignore)
        request = SliceRequest(
            storage=storage,
            url=plan.url(slice_.file),
            file=file,
            number=slice_.file,
            start=slice_.start,
            end=slice_.end,
            settings=settings.of_file(file.name),
            on_reject=on_reject,
            on_boundaries=on_boundaries,
            batch_bytes=batch_bytes,
            only_text=only_text,
            on_read=meter.add,
        )
        has_documents = False
        for batch in _read_slice(request, lose_changed):
            yield batch
            has_documents = True
            if plan.sample_bytes is not None and meter.read >= plan.sample_bytes:
                break
        else:
            if not by_rows:
                meter.add(size)
        if plan.sample_bytes is not None and has_documents:
            on_read(meter.read)

    return _joined((batch for slice_ in split.slices for batch in read(slice_)), batch_bytes)


def _read_slice(request: SliceRequest, lose_changed: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a slice; report a loss if rejects are all that it has."""
    rejects, explained, has_documents = 0, False, False

    def count(reject: Reject) -> None:
        nonlocal rejects, explained
        rejects += 1
        explained |= reject.lost_bytes is not None or reject.reason in _FIELD_FLAWS
        request.on_reject(reject)

    size = request.end - request.start
    format_ = input_format(request.file.format)
    try:
        for batch in format_.read(replace(request, on_reject=count)):
            has_documents = True
            yield batch
    except (ChangedFileError, NotFoundError) as error:
        if not lose_changed:
            raise
        request.reject(RejectReason.FILE_CHANGED, str(error), lost_bytes=size)
        return
    if has_documents or explained or not rejects or size <= MAX_REJECT_BYTES * rejects:
        return
    if not format_.separated or request.settings.document_separator != WHOLE_FILE:
        detail = f"none of {size} stored bytes could be used"
        request.reject(RejectReason.NOTHING_READ, detail, offset=request.start, lost_bytes=size)


def _joined(batches: Iterable[pa.RecordBatch], batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of about `batch_bytes`, with smaller ones joined."""
    pending: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        if pending and (size + batch.nbytes > batch_bytes or rows + len(batch) > MAX_BATCH_ROWS):
            yield join(pending)
            pending, size, rows = [], 0, 0
        if len(pending) == _MAX_PENDING:
            pending = [join(pending)]
        pending.append(batch)
        size, rows = size + batch.nbytes, rows + len(batch)
        if size >= batch_bytes // 2:
            yield join(pending)
            pending, size, rows = [], 0, 0
    if pending:
        yield join(pending)


class _Meter:
    """Reports the bytes of a slice that were read, at most `size`: readers look beyond it, too."""

    def __init__(self, size: int, report: Callable[[int], None]) -> None:
        self.read = 0
        self._size = size
        self._report = report

    def add(self, count: int) -> None:
        count = min(count, self._size - self.read)
        self.read += count
        if count:
            self._report(count)
