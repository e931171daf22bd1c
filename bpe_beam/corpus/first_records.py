"""A look at the first records of a corpus before all is read: whether any can be used.

A wrong field, format or encoding makes every record a reject. A job would then read all of its
corpus to find that out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_beam.corpus.formats import input_format
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.storage import Storage

TRIED_RECORDS = 2000
"""The least number of records that are representative of a corpus."""

_TRIED_SLICES = 16
_TRIED_BYTES = 8 << 20
_BATCH_BYTES = 64 << 10
_BOM_BYTES = 3


@dataclass
class Tried:
    """Records of which none could be used.

    Attributes:
        records: The number of records.
        files: The files that they are in.
        first: The first of them.
    """

    records: int = 0
    files: set[str] = field(default_factory=set)
    first: Reject | None = None

    def add(self, reject: Reject) -> None:
        """Add a reject."""
        self.records += 1
        self.files.add(reject.file)
        self.first = self.first or reject


class _Enough(Exception):
    """No more of a slice needs to be read."""


def tried_in_vain(storage: Storage, plan: Plan, settings: ReadSettings) -> Tried | None:
    """Try the first records of up to 16 slices, spread over the corpus, until one can be used.

    Args:
        storage: The storage client.
        plan: The plan.
        settings: How files become documents.

    Returns:
        The records, at least TRIED_RECORDS, if none could be used, all for one reason; else None.

    Raises:
        DataError: Storage fails, or a file cannot be read with these settings.

    Cost: the beginning of one slice where its first record can be used, else 8 MiB.
    """
    slices = _spread(plan)
    tried = Tried()
    for slice_ in slices:
        enough = tried.records + -(-TRIED_RECORDS // len(slices))
        trial = _Trial(plan, slice_, tried, enough)
        if not trial.fails(storage, settings, _TRIED_BYTES // len(slices)):
            return None
    return tried if tried.records >= TRIED_RECORDS else None


def _spread(plan: Plan) -> list[Slice]:
    """Return some slices whose first records can be found, spread over the corpus."""
    known = [
        slice_
        for split in plan.splits
        for slice_ in split.slices
        if slice_.end > slice_.start and _is_known(plan.files[slice_.file], slice_)
    ]
    count = min(len(known), _TRIED_SLICES)
    return [known[number * len(known) // count] for number in range(count)]


def _is_known(file: InputFile, slice_: Slice) -> bool:
    format_ = input_format(file.format)
    if _is_read_in_order(file):
        return slice_.start == 0 and format_.reject_gap is not None
    return format_.splittable


def _is_read_in_order(file: InputFile) -> bool:
    return input_format(file.format).columnar or file.compression != "none"


class _Trial:
    """A look at the first records of one slice.

    Args:
        plan: The plan.
        slice_: The slice.
        tried: Gets the rejects.
        enough: The number of rejects in `tried` after which the look ends.
    """

    def __init__(self, plan: Plan, slice_: Slice, tried: Tried, enough: int) -> None:
        file = plan.files[slice_.file]
        self._plan, self._slice, self._tried, self._enough = plan, slice_, tried, enough
        self._in_order = _is_read_in_order(file)
        self._gap = input_format(file.format).reject_gap or 0
        self._last: Reject | None = None
        self._failed = True

    def fails(self, storage: Storage, settings: ReadSettings, size: int) -> bool:
        """Return whether no record can be used, for the reason of those tried before."""
        file, start, end = self._slice
        if not self._in_order:  # a shorter slice has its own records, and no others
            end = min(end, start + size)
        split = Split(0, (Slice(file, start, end),))
        batches = read_split(
            storage, self._plan, split, settings, self._take, batch_bytes=_BATCH_BYTES
        )
        try:
            return next(batches, None) is None and self._failed
        except _Enough:
            return self._failed

    def _take(self, reject: Reject) -> None:
        tried = self._tried
        same = tried.first is None or reject.reason == tried.first.reason
        if reject.lost_bytes is not None or not same or not self._follows(reject):
            self._failed = False
            raise _Enough
        self._last = reject
        tried.add(reject)
        if self._in_order and tried.records >= self._enough:
            raise _Enough

    def _follows(self, reject: Reject) -> bool:
        """Return whether no usable record is between two rejects, or before the first."""
        last = self._last
        if not self._in_order:
            return True
        if reject.row is not None:
            return reject.row == (0 if last is None or last.row is None else last.row + 1)
        if reject.offset is None:
            return False
        if last is None or last.offset is None:
            return reject.offset <= _BOM_BYTES
        return reject.offset <= last.offset + last.bytes_total + self._gap
