"""The proof that the slices of a file are contiguous, where readers had to guess their starts.

Each such slice reports where its first record began and where the first record behind it begins
(`Boundaries`). If every slice begins where the one before it ended, and the first at the file's
start, then all records were read once, as by a reading from the file's start. Where that fails the
file is read again as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from bpe_beam.corpus.formats import input_format
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.slices import Boundaries, Position

_PROVEN = "proven before"


def is_speculative(file: InputFile) -> bool:
    """Return whether the reader of a slice of this file has to guess where records begin."""
    return file.compression != "none" or input_format(file.format).speculative


def speculative_part(plan: Plan) -> Plan:
    """Return the part of a plan that `files_with_gaps` is about, with the same numbers.

    It has the splits with slices of speculatively cut files; none if there are no such files.
    """
    splits = []
    for split in plan.splits:
        slices = tuple(slice_ for slice_ in split.slices if _is_speculative_slice(plan, slice_))
        if slices:
            splits.append(Split(split.index, slices))
    numbers = sorted({slice_.file for split in splits for slice_ in split.slices})
    files = {number: plan.files[number] for number in numbers}
    return Plan(plan.root, cast(Any, files), tuple(splits))


def _is_speculative_slice(plan: Plan, slice_: Slice) -> bool:
    file = plan.files[slice_.file]
    return is_speculative(file) and slice_.end - slice_.start < file.size


def files_with_gaps(
    plan: Plan, boundaries: Iterable[Boundaries], proven: Collection[int] = ()
) -> frozenset[int]:
    """Return the numbers of the files of a plan whose slices are not contiguous.

    Args:
        plan: The plan.
        boundaries: What the readers of its slices reported.
        proven: Splits whose slices an earlier job has proven to be contiguous with their
            neighbours, and of which no boundaries are known.

    Cost: time and memory by the number of slices of files that were cut so.
    """
    reported = {(each.file, each.start): each for each in boundaries}
    slices: dict[int, list[Boundaries | str | None]] = {}
    for split in plan.splits:
        for slice_ in split.slices:
            if _is_speculative_slice(plan, slice_):
                each = reported.get((slice_.file, slice_.start))
                found = _PROVEN if split.index in proven else each
                slices.setdefault(slice_.file, []).append(found)
    return frozenset(file for file, pieces in slices.items() if not _are_contiguous(pieces))


def _are_contiguous(pieces: list[Boundaries | str | None]) -> bool:
    """Return whether each slice of one file begins where the one before it ended."""
    expected: Position | str | None = _PROVEN  # the first begins at the file's start
    for slice_ in pieces:
        if isinstance(slice_, str):
            expected = _PROVEN
            continue
        if slice_ is None or slice_.broken:
            return False
        if slice_.begins is None:
            continue  # no unit begins in it, if the one before it ends at one behind it
        if expected not in (_PROVEN, slice_.begins):
            return False
        expected = slice_.ends
    return expected in (_PROVEN, None)


def without_units(
    plan: Plan, boundaries: Iterable[Boundaries], proven: Collection[int] = ()
) -> list[str]:
    """Return the names of files that were cut, but have all their records in the first slice.

    Files of splits of which no boundaries are known (`proven`) are not among them.

    Args:
        plan: The plan.
        boundaries: What the readers of its slices reported.
        proven: As in `files_with_gaps`.
    """
    later = {each.file for each in boundaries if each.start and each.begins is not None}
    cut = {
        slice_.file
        for split in plan.splits
        for slice_ in split.slices
        if slice_.start and is_speculative(plan.files[slice_.file])
    }
    later |= {p.file for index in proven for p in plan.splits[index].slices}
    return [plan.files[number].name for number in sorted(cut - later)]


def to_json(boundaries: Boundaries) -> list[Any]:
    """Return boundaries as JSON values, for a receipt."""
    return list(boundaries)


def from_json(row: list[Any]) -> Boundaries:
    """Read what `to_json` returned."""
    file, start, end, begins, ends, broken = row
    return Boundaries(
        file, start, end, begins and Position(*begins), ends and Position(*ends), broken
    )
