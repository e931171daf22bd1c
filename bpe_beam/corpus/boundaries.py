"""The proof that the slices of a file are contiguous, where readers had to guess their starts.

If every slice begins where the one before it ended, and the first at the file's start, then all
records were read once, as if the file was read from its start. If not, the file is read again as
one slice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.slices import Boundaries, Position

_ANYWHERE = "anywhere"


def is_speculative(file: InputFile) -> bool:
    """Return whether the reader of a slice of this file has to guess where records begin."""
    return file.compression != "none" or input_format(file.format).speculative


def speculative_part(plan: Plan) -> Plan:
    """Return the splits, slices and files that `files_with_gaps` checks, with their numbers."""
    slices_of = ((each.index, tuple(_speculative_slices(plan, each))) for each in plan.splits)
    splits = tuple(Split(index, slices) for index, slices in slices_of if slices)
    numbers = {slice_.file for split in splits for slice_ in split.slices}
    files = {number: plan.files[number] for number in sorted(numbers)}
    return Plan(plan.root, cast(Any, files), splits)


def _speculative_slices(plan: Plan, split: Split) -> Iterator[Slice]:
    for slice_ in split.slices:
        file = plan.files[slice_.file]
        if is_speculative(file) and slice_.end - slice_.start < file.size:
            yield slice_


def files_with_gaps(
    plan: Plan, boundaries: Iterable[Boundaries], proven: Collection[int] = ()
) -> frozenset[int]:
    """Return the numbers of the files whose slices are not contiguous."""
    reported = {(each.file, each.start): each for each in boundaries}
    ends: dict[int, Position | str | None] = {}  # where the next slice of each file must begin
    gaps: set[int] = set()
    for split in plan.splits:
        for slice_ in _speculative_slices(plan, split):
            report = reported.get((slice_.file, slice_.start))
            if split.index in proven:
                ends[slice_.file] = _ANYWHERE
            elif report is None or report.broken:
                gaps.add(slice_.file)
            elif report.begins is not None:  # else no unit begins in this slice
                if ends.get(slice_.file, _ANYWHERE) not in (_ANYWHERE, report.begins):
                    gaps.add(slice_.file)
                ends[slice_.file] = report.ends
    gaps.update(file for file, end in ends.items() if end not in (_ANYWHERE, None))
    return frozenset(gaps)


def without_units(
    plan: Plan, boundaries: Iterable[Boundaries], proven: Collection[int] = ()
) -> list[str]:
    """Return the names of files that were split, but have all their records in the first slice."""
    later = {each.file for each in boundaries if each.start and each.begins is not None}
    later |= {slice_.file for index in proven for slice_ in plan.splits[index].slices}
    split_files = {
        slice_.file
        for split in plan.splits
        for slice_ in split.slices
        if slice_.start and is_speculative(plan.files[slice_.file])
    }
    return [plan.files[number].name for number in sorted(split_files - later)]
