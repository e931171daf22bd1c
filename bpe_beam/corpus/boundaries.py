"""The proof that the slices of a file meet, where workers had to guess at their beginnings.

Each such slice reports where its first record began and where the first record behind it begins
(`Edges`). If every slice begins where the one before it ended, and the first at the file's start,
then all records were read once, as a reading from the start would have met them. Where that fails
the file is read again as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from bpe_beam.corpus.formats import input_format
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.slices import Edges, Position

_PROVEN = "proven before"


def is_guessed(file: InputFile) -> bool:
    """Whether slices of such a file cannot know where records begin in it."""
    return file.compression != "none" or input_format(file.format).speculative


def parts_of_guessed_files(plan: Plan) -> Plan:
    """The part of a plan that `apart` is about: slices of files that were cut by guess, under the
    same numbers. Without splits if there are none."""
    splits = []
    for split in plan.splits:
        slices = tuple(piece for piece in split.slices if _is_guessed_slice(plan, piece))
        if slices:
            splits.append(Split(split.index, slices))
    numbers = sorted({piece.file for split in splits for piece in split.slices})
    files = {number: plan.files[number] for number in numbers}
    return Plan(plan.root, cast(Any, files), tuple(splits))


def _is_guessed_slice(plan: Plan, piece: Slice) -> bool:
    file = plan.files[piece.file]
    return is_guessed(file) and piece.end - piece.start < file.size


def apart(plan: Plan, edges: Iterable[Edges], proven: Collection[int] = ()) -> frozenset[int]:
    """The files of a plan whose slices do not meet, by number.

    Args:
        plan: The plan.
        edges: What the readers of its slices reported.
        proven: Splits whose slices an earlier job has proven to meet their neighbours, and of which
            no edges are known.

    Cost: time and memory by the number of slices of files that were cut so.
    """
    reported = {(edge.file, edge.start): edge for edge in edges}
    slices: dict[int, list[Edges | str | None]] = {}
    for split in plan.splits:
        for piece in split.slices:
            if _is_guessed_slice(plan, piece):
                edge = reported.get((piece.file, piece.start))
                found = _PROVEN if split.index in proven else edge
                slices.setdefault(piece.file, []).append(found)
    return frozenset(file for file, pieces in slices.items() if not _meet(pieces))


def _meet(pieces: list[Edges | str | None]) -> bool:
    """Whether the slices of one file, in order, begin where the one before ended."""
    expected: Position | str | None = _PROVEN  # the first begins at the file's start
    for piece in pieces:
        if isinstance(piece, str):
            expected = _PROVEN
            continue
        if piece is None or piece.broken:
            return False
        if piece.begins is None:
            continue  # no unit begins in it, if the one before it ends at one behind it
        if expected not in (_PROVEN, piece.begins):
            return False
        expected = piece.ends
    return expected in (_PROVEN, None)


def without_units(plan: Plan, edges: Iterable[Edges], proven: Collection[int] = ()) -> list[str]:
    """Names of files that were cut, but have all their records in the first slice: they could only
    be read as one. Files of splits of which no edges are known (`proven`, see `apart`) are not
    among them."""
    later = {edge.file for edge in edges if edge.start and edge.begins is not None}
    cut = {
        piece.file
        for split in plan.splits
        for piece in split.slices
        if piece.start and is_guessed(plan.files[piece.file])
    }
    later |= {p.file for index in proven for p in plan.splits[index].slices}
    return [plan.files[number].name for number in sorted(cut - later)]


def to_json(edges: Edges) -> list[Any]:
    """Plain data for a receipt."""
    return list(edges)


def from_json(row: list[Any]) -> Edges:
    """What `to_json` made."""
    file, start, end, begins, ends, broken = row
    return Edges(file, start, end, begins and Position(*begins), ends and Position(*ends), broken)
