"""Losses: damaged parts of files, whose number of records nobody knows.

A loss is the rest of a broken compressed stream, a row group, a record batch, the rest of an
archive, or a file of which nothing can be read. It is counted in stored bytes and files, not in
records, and has a limit of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bpe_beam.storage.json_file import Count


class FileLoss(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The loss of one file; also the row of a receipt and of a manifest.

    Attributes:
        file: Its name in the plan.
        bytes: Stored bytes that are lost.
        positions: The number of positions at which they are; each is one line of `rejects/`.
        records: Records that are lost, if the format shows it; None otherwise.
    """

    file: str
    bytes: Count
    positions: Count
    records: Count | None = None


def add_losses(losses: Iterable[FileLoss]) -> tuple[FileLoss, ...]:
    """Return the losses with one entry a file, sorted by the files' names."""
    files: dict[str, list[FileLoss]] = {}
    for loss in losses:
        files.setdefault(loss.file, []).append(loss)
    return tuple(
        FileLoss(
            name,
            sum(loss.bytes for loss in files[name]),
            sum(loss.positions for loss in files[name]),
            lost_records(files[name]),
        )
        for name in sorted(files)
    )


def lost_records(losses: Iterable[FileLoss]) -> int | None:
    """Return how many records are lost; None if that is not known of every file."""
    found = [loss.records for loss in losses]
    return sum(filter(None, found)) if None not in found else None
