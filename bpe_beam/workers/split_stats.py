"""What workers record of the splits that they read, as it is in receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from bpe_beam.corpus.losses import FileLoss, add_losses, read_losses
from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.rejects import RejectWriter
from bpe_beam.corpus.slices import Boundaries


@dataclass(frozen=True)
class SplitReading:
    """Which bytes of which versions of files a split was read from.

    Attributes:
        slices: (file's number, start, end) of each slice, in bytes.
        tags: The tag of each slice's file; None if the split was restored from a manifest, which
            has no tags.
        boundaries: Where the records of slices with speculative boundaries began and ended; None if
            the split was restored: a finished job has proven its slices contiguous.
    """

    slices: tuple[tuple[int, int, int], ...]
    tags: tuple[str, ...] | None
    boundaries: tuple[Boundaries, ...] | None

    @staticmethod
    def of(plan: Plan, split: Split, found: Iterable[Boundaries]) -> SplitReading:
        """Return the reading of a split.

        Args:
            plan: The plan that the split is of.
            split: The split.
            found: What the readers of its slices reported.
        """
        tags = tuple(plan.files[part.file].tag for part in split.slices)
        return SplitReading(_slices_of(split), tags, tuple(found))

    @staticmethod
    def restored(split: Split) -> SplitReading:
        """Return the reading of a split of a finished job."""
        return SplitReading(_slices_of(split), None, None)

    def is_of(self, plan: Plan, split: Split) -> bool:
        """Whether the split has these slices of these versions of files.

        Args:
            plan: The plan that the split is of.
            split: The split.
        """
        now = SplitReading.of(plan, split, ())
        return self.slices == now.slices and self.tags in (None, now.tags)

    def to_json(self) -> dict[str, object]:
        """Return the reading as JSON values."""
        known = self.boundaries
        return {
            "slices": [list(part) for part in self.slices],
            "tags": None if self.tags is None else list(self.tags),
            "edges": None if known is None else [list(row) for row in known],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> SplitReading:
        """Read what `to_json` returned; other keys are ignored."""
        tags, rows = value.get("tags"), value["edges"]
        return SplitReading(
            tuple((file, start, end) for file, start, end in value.get("slices", ())),
            None if tags is None else tuple(tags),
            None if rows is None else msgspec.convert(rows, tuple[Boundaries, ...]),
        )


@dataclass(frozen=True)
class SplitStats:
    """What is known of a split that was read.

    Attributes:
        documents: The number of its documents.
        text_bytes: Their text in bytes of UTF-8.
        rejects: The number of rejected records by reason, sorted by reason.
        lost: What is lost of each damaged file, sorted by file.
        reading: What was read.
    """

    documents: int
    text_bytes: int
    rejects: Mapping[str, int]
    lost: tuple[FileLoss, ...]
    reading: SplitReading


def rejects_json(rejects: Mapping[str, int], lost: Iterable[FileLoss]) -> dict[str, object]:
    """Return rejects and losses as the JSON values of a receipt; losses only if there are any."""
    rows = msgspec.to_builtins(list(lost))
    return {"rejects": dict(rejects), **({"lost": rows} if rows else {})}


def base_stats(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `SplitStats` by name, read from the stats of a receipt."""
    return {
        "documents": value["documents"],
        "text_bytes": value["text_bytes"],
        "rejects": value["rejects"],
        "lost": read_losses(value.get("lost", ())),
        "reading": SplitReading.from_json(value),
    }


def rejects_by_reason(writer: RejectWriter) -> dict[str, int]:
    """Return the number of rejects that were written by reason, sorted by reason."""
    return dict(sorted(writer.counts.items()))


def reject_reasons(splits: Iterable[SplitStats]) -> dict[str, int]:
    """Return the number of rejects of all splits by reason, sorted by reason."""
    reasons: Counter[str] = Counter()
    for stats in splits:
        reasons.update(stats.rejects)
    return dict(sorted(reasons.items()))


def lost_rows(splits: Iterable[SplitStats]) -> tuple[dict[str, Any], ...]:
    """Return what is lost of each file over all splits, as rows of a manifest."""
    losses = add_losses(row for s in splits for row in s.lost)
    return tuple(map(msgspec.to_builtins, losses))


def _slices_of(split: Split) -> tuple[tuple[int, int, int], ...]:
    return tuple((part.file, part.start, part.end) for part in split.slices)
