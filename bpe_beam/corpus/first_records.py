"""A look at a corpus before it is read: whether the first records can be used at all.

A wrong field, format or encoding makes every record a reject. A job would then read all of its
corpus to find that out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_beam.corpus.formats import input_format
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.storage import Storage

TRIED_RECORDS = 2000
"""Fewer records say nothing of a corpus."""

_TRIED_SLICES = 16
_TRIED_BYTES = 8 << 20
_BATCH_BYTES = 64 << 10
_BOM_BYTES = 3


@dataclass
class Tried:
    """Records of which none could be used.

    Attributes:
        records: How many were tried.
        files: The files that they are in.
        first: The first of them.
    """

    records: int = 0
    files: set[str] = field(default_factory=set)
    first: Reject | None = None

    def add(self, reject: Reject) -> None:
        """Takes a reject."""
        self.records += 1
        self.files.add(reject.file)
        self.first = self.first or reject


class _Ended(Exception):
    """Enough is known of a slice: whether none of the records tried could be used."""


def tried_in_vain(storage: Storage, plan: Plan, settings: ReadSettings) -> Tried | None:
    """Try the first records of up to 16 slices, spread over the corpus, until one can be used.

    Args:
        storage: The storage client.
        plan: The plan.
        settings: How files become documents.

    Returns:
        What was tried, at least TRIED_RECORDS records, if none could be used, all for one reason;
        else None.

    Raises:
        DataError: Storage fails, or a file cannot be read with these settings.

    Cost: the beginning of one slice where its first record can be used, else 8 MiB.
    """
    slices = _spread(plan)
    tried = Tried()
    for slice_ in slices:
        enough = tried.records + -(-TRIED_RECORDS // len(slices))
        if not _fail(storage, plan, settings, slice_, _TRIED_BYTES // len(slices), tried, enough):
            return None
    return tried if tried.records >= TRIED_RECORDS else None


def _spread(plan: Plan) -> list[Slice]:
    """Some slices whose first records can be told, spread over the corpus."""
    known = [
        slice_
        for split in plan.splits
        for slice_ in split.slices
        if slice_.end > slice_.start and _is_known(plan, slice_)
    ]
    count = min(len(known), _TRIED_SLICES)
    return [known[number * len(known) // count] for number in range(count)]


def _is_known(plan: Plan, slice_: Slice) -> bool:
    file = plan.files[slice_.file]
    format_ = input_format(file.format)
    if format_.columnar or file.compression != "none":
        return slice_.start == 0 and format_.reject_gap is not None
    return format_.splittable


def _fail(
    storage: Storage,
    plan: Plan,
    settings: ReadSettings,
    slice_: Slice,
    size: int,
    tried: Tried,
    enough: int,
) -> bool:
    """Whether none of a slice's first records can be used, for the reason of those before."""
    file = plan.files[slice_.file]
    format_ = input_format(file.format)
    in_order = format_.columnar or file.compression != "none"
    if not in_order:  # a shorter slice holds its records, and no others
        slice_ = Slice(slice_.file, slice_.start, min(slice_.end, slice_.start + size))
    before: Reject | None = None
    failed = True

    def take(reject: Reject) -> None:
        nonlocal before, failed
        reason = reject.reason if tried.first is None else tried.first.reason
        if reject.lost is not None or reject.reason != reason:
            failed = False
        elif in_order and not _follows(reject, before, format_.reject_gap or 0):
            failed = False  # what can be used lies between
        if not failed:
            raise _Ended
        before = reject
        tried.add(reject)
        if in_order and tried.records >= enough:
            raise _Ended

    try:
        one = Split(0, (slice_,))
        for _ in read_split(storage, plan, one, settings, take, batch_bytes=_BATCH_BYTES):
            return False
    except _Ended:
        pass
    return failed


def _follows(reject: Reject, before: Reject | None, gap: int) -> bool:
    """Whether no record lies between two rejects, or before the first of a file."""
    if reject.row is not None:
        return reject.row == (0 if before is None or before.row is None else before.row + 1)
    if reject.offset is None:
        return False
    if before is None or before.offset is None:
        return reject.offset <= _BOM_BYTES
    return reject.offset <= before.offset + before.bytes_total + gap
