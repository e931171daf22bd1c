"""Losses: damaged parts of files, of which nobody can tell how many records they held.

The rest of a broken compressed stream, a row group, a record batch, the rest of an archive, or a
file of which nothing can be read. A loss is counted in stored bytes and files, not in records, and
has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Loss(NamedTuple):
    """What is lost at one position of a file.

    Attributes:
        bytes: Stored bytes, at least 1: what a file that ends too soon lacks is not known.
        records: Records, where the format tells; None if nobody knows.
    """

    bytes: int
    records: int | None = None

    @staticmethod
    def of(count: int, records: int | None = None) -> Loss:
        """A loss of so many stored bytes, but of one at least."""
        return Loss(max(1, count), records)


@dataclass(frozen=True)
class FileLoss:
    """What is lost of one file.

    Attributes:
        file: Its name in the plan.
        bytes: Stored bytes that are lost.
        positions: At how many positions; each is one line of `rejects/`.
        records: Records that are lost, where the format tells; None if nobody knows.
    """

    file: str
    bytes: int
    positions: int
    records: int | None

    def to_json(self) -> dict[str, Any]:
        """The row of a receipt and of a manifest."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> FileLoss:
        """Read what `to_json` made."""
        return FileLoss(**{"records": None, **row})


def add_losses(losses: Iterable[FileLoss]) -> tuple[FileLoss, ...]:
    """Return the losses with one entry a file, sorted by the files' names."""
    files: dict[str, FileLoss] = {}
    for loss in losses:
        known = files.get(loss.file)
        if known is not None:
            records = None
            if known.records is not None and loss.records is not None:
                records = known.records + loss.records
            positions = known.positions + loss.positions
            loss = FileLoss(loss.file, known.bytes + loss.bytes, positions, records)
        files[loss.file] = loss
    return tuple(files[name] for name in sorted(files))


def read_losses(rows: Iterable[Mapping[str, Any]]) -> tuple[FileLoss, ...]:
    """Read the rows of a manifest."""
    return tuple(FileLoss.from_json(row) for row in rows)


def lost_records(losses: Iterable[FileLoss]) -> int | None:
    """Return how many records are lost; None if that is not known of every file."""
    found = [loss.records for loss in losses]
    return sum(filter(None, found)) if None not in found else None
