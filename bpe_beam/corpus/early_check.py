"""A look at the first records of a corpus before all is read.

A wrong field, format or encoding makes every record a reject. Without this look, a job would read
all of its corpus before it fails.
"""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.storage import Storage

TRIED_RECORDS = 2000
"""Minimum number of records that are representative of a corpus."""

_TRIED_SLICES = 16
_FEW_SLICES = 4
_TRIED_BYTES = 8 << 20


class _EnoughError(Exception):
    """No more of a slice needs to be read."""


def unusable_records(storage: Storage, plan: Plan, settings: ReadSettings) -> list[Reject] | None:
    """Return the rejects of the first records, if all are rejected for one reason; else None.

    Records of up to 16 slices are tried, spread over the corpus, until one can be used. There are
    at least TRIED_RECORDS rejects, and only the first has its bytes.

    Cost: the beginning of one slice where its first record can be used, else 8 MiB, or up to 500
    records (2,000 in total, if the slices are few) of each file that is read in order.
    """
    slices = _spread(plan)
    rejects: list[Reject] = []
    for slice_ in slices:
        # More than the share of a slice, as some files have few records.
        enough = len(rejects) + -(-TRIED_RECORDS // min(len(slices), _FEW_SLICES))

        def add(reject: Reject, enough: int = enough) -> None:
            rejects.append(replace(reject, data=b"") if rejects else reject)
            if len(rejects) >= enough or not _are_alike(rejects):
                raise _EnoughError

        if _is_splittable(plan, slice_):  # a shorter slice has its own records, and no others
            end = min(slice_.end, slice_.start + _TRIED_BYTES // len(slices))
            slice_ = slice_._replace(end=end)
        # Batches of one record: the first usable one is yielded before the next is read.
        batches = read_split(storage, plan, Split(0, (slice_,)), settings, add, batch_bytes=1)
        with contextlib.suppress(_EnoughError):
            if next(batches, None) is not None:
                return None
        if rejects and not _are_alike(rejects):
            return None
    return rejects if len(rejects) >= TRIED_RECORDS else None


def documents_without_id(
    storage: Storage, plan: Plan, settings: ReadSettings
) -> dict[str, tuple[int, str]]:
    """Return the fields of ids that the first documents of up to 16 slices lack.

    The values are the number of these documents and the first file. Text files and archives have
    no fields, so they are passed over.

    Cost: some 64 kB of text at the beginning of each slice.
    """
    missing: dict[str, tuple[int, str]] = {}
    present: set[str] = set()
    for slice_ in _spread(plan):
        file = plan.files[slice_.file]
        field = str(settings.of_file(file.name).id_field)
        format_ = input_format(file.format)
        if format_.separated or format_.archive or field in present:
            continue
        batches = read_split(
            storage, plan, Split(0, (slice_,)), settings, lambda _: None, batch_bytes=1 << 16
        )
        batch = next(batches, None)
        if batch is not None and batch.column("id").null_count < batch.num_rows:
            present.add(field)
        elif batch is not None:
            count, first = missing.get(field, (0, file.name))
            missing[field] = count + batch.num_rows, first
    return {field: files for field, files in missing.items() if field not in present}


def _are_alike(rejects: list[Reject]) -> bool:
    """Return whether the last reject is a record with the same reason as the first."""
    return rejects[-1].lost_bytes is None and rejects[-1].reason == rejects[0].reason


def _spread(plan: Plan) -> list[Slice]:
    """Return some slices whose first records are known, spread over the corpus."""
    known = [
        slice_
        for split in plan.splits
        for slice_ in split.slices
        if slice_.end > slice_.start and (slice_.start == 0 or _is_splittable(plan, slice_))
    ]
    count = min(len(known), _TRIED_SLICES)
    return [known[number * len(known) // count] for number in range(count)]


def _is_splittable(plan: Plan, slice_: Slice) -> bool:
    file = plan.files[slice_.file]
    format_ = input_format(file.format)
    return file.compression == "none" and format_.splittable and not format_.columnar
