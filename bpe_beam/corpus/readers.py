"""A split of the plan to Arrow batches of documents, whatever the files' formats.

A record belongs to the slice in which it begins, so any slices of a file give the same documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from bpe_beam.corpus.batches import MAX_BATCH_ROWS, join
from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.read_settings import WHOLE_FILE, ReadSettings
from bpe_beam.corpus.rejects import MAX_REJECT_BYTES, Reject, RejectReason
from bpe_beam.corpus.slices import Boundaries, SliceRequest
from bpe_beam.corpus.streams.stored import ChangedFileError, ignore
from bpe_beam.errors import NotFoundError
from bpe_beam.storage import Storage

BATCH_BYTES = 1 << 20
"""The approximate bytes of text of a batch."""

_MAX_PENDING = 256
"""The most batches that wait to be joined: one of a small file takes some 5 kB."""

_FIELD_FLAWS = (RejectReason.FIELD_MISSING.value, RejectReason.FIELD_NOT_A_STRING.value)


def _read_slice(request: SliceRequest, lose_changed: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a slice; report a loss where rejects are all that it has."""
    rejects, explained, found = 0, False, False

    def count(reject: Reject) -> None:
        nonlocal rejects, explained
        rejects += 1
        explained |= reject.lost_bytes is not None or reject.reason in _FIELD_FLAWS
        request.on_reject(reject)

    size = request.end - request.start
    format_ = input_format(request.file.format)
    try:
        for batch in format_.read(replace(request, on_reject=count)):
            found = True
            yield batch
    except (ChangedFileError, NotFoundError) as error:
        if not lose_changed:
            raise
        request.reject(RejectReason.FILE_CHANGED, str(error), lost_bytes=size)
        return
    if found or explained or not rejects or size <= MAX_REJECT_BYTES * rejects:
        return
    if not format_.separated or request.settings.document_separator != WHOLE_FILE:
        detail = f"none of {size} stored bytes could be used"
        request.reject(RejectReason.NOTHING_READ, detail, offset=request.start, lost_bytes=size)


class _Meter:
    """Reports the bytes of a slice that were read, never more than `size` in total.

    Readers look beyond a slice, read footers, or skip columns.
    """

    def __init__(self, size: int, report: Callable[[int], None]) -> None:
        self.read = 0
        self._size = size
        self._report = report

    def add(self, count: int) -> None:
        count = min(count, self._size - self.read)
        self.read += count
        if count:
            self._report(count)


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
    r"""Yield the documents that begin in a split.

    Text: a record ends at the separator or at the file's end; the last separator opens no empty
    record behind it, all other empty records are documents. Separators are found from left to
    right from the file's start, also where they could overlap (`\n\n` in `\n\n\n`). The id is
    `<file's name>:<offset>`.
    JSON Lines: the last of equal keys counts; a number as id is its JSON text; blank lines are no
    records. In both, a UTF-8 byte order mark at a file's start is no part of a record.

    Args:
        storage: The storage client.
        plan: The plan.
        split: One of its splits.
        settings: How files become documents; the formats are the plan's.
        on_reject: Called for each record that cannot be used, in the order of the file between
            the batches: invalid UTF-8, broken or unfit JSON, half a surrogate pair, a record that
            is too long. A lost part of a damaged file is one reject with a `Loss`: the rest of a
            compressed stream or an archive, a row group, a record batch, a slice of over
            MAX_REJECT_BYTES a reject of which nothing can be used.
        on_boundaries: Called at the end of each slice whose reader had to guess where its records
            begin; see `boundaries.py` for the proof.
        batch_bytes: The approximate bytes of text of a batch; smaller files are joined.
        only_text: Whether ids may be null, and sources that the settings do not name.
        on_read: Called while files are read with the number of stored bytes since the last call;
            at the split's end these add up to the split's size. Of a sample, at the end of each
            slice that has documents.
        lose_changed: Whether the rest of a file that has changed or no longer exists is a loss.

    Yields:
        Batches of BATCH_SCHEMA, of 1 to MAX_BATCH_ROWS documents.

    Raises:
        DataError: Storage fails, or a file is not as long as it was planned.
    """
    pending: list[pa.RecordBatch] = []
    size = rows = 0
    for slice_ in split.slices:
        file = plan.files[slice_.file]
        # A row group may be larger than the slice in which it begins.
        by_rows = plan.most_read is not None and input_format(file.format).columnar
        size_read = file.size if by_rows else slice_.end - slice_.start
        meter = _Meter(size_read, on_read if plan.most_read is None else ignore)
        found = False
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
        for batch in _read_slice(request, lose_changed):
            if pending and (
                size + batch.nbytes > batch_bytes or rows + len(batch) > MAX_BATCH_ROWS
            ):
                yield join(pending)
                pending, size, rows = [], 0, 0
            if len(pending) == _MAX_PENDING:
                pending = [join(pending)]
            pending.append(batch)
            size, rows = size + batch.nbytes, rows + len(batch)
            if size >= batch_bytes // 2:
                yield join(pending)
                pending, size, rows = [], 0, 0
            found = True
            if plan.most_read is not None and meter.read >= plan.most_read:
                break
        else:
            if not by_rows:
                meter.add(size_read)
        if plan.most_read is not None and found:
            on_read(meter.read)
    if pending:
        yield join(pending)
