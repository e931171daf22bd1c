"""What workers record of the splits that they read, as it is in receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.rejects import FileLoss, add_losses
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.storage.json_file import Count


class SplitReading(
    Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"boundaries": "edges"}
):
    """Which bytes of which versions of files a split was read from.

    Attributes:
        slices: (file's number, start, end) of each slice, in bytes.
        tags: The tag of each slice's file; None if the split was restored from a manifest, which
            has no tags.
        boundaries: Where the records of slices with speculative boundaries began and ended; None if
            the split was restored: a finished job has proven its slices contiguous.
    """

    slices: tuple[tuple[Count, Count, Count], ...] = ()
    tags: tuple[str, ...] | None = None
    boundaries: tuple[Boundaries, ...] | None

    @staticmethod
    def of(plan: Plan, split: Split, found: Iterable[Boundaries]) -> SplitReading:
        """Return the reading of a split."""
        tags = tuple(plan.files[part.file].tag for part in split.slices)
        return SplitReading(slices=_slices_of(split), tags=tags, boundaries=tuple(found))

    @staticmethod
    def restored(split: Split) -> SplitReading:
        """Return the reading of a split of a finished job."""
        return SplitReading(slices=_slices_of(split), boundaries=None)

    def is_of(self, plan: Plan, split: Split) -> bool:
        """Return whether the split has these slices of these versions of files."""
        now = SplitReading.of(plan, split, ())
        return self.slices == now.slices and self.tags in (None, now.tags)


class SplitStats(SplitReading, frozen=True, kw_only=True):
    """What is known of a split that was read.

    Attributes:
        documents: The number of its documents.
        text_bytes: Their text in bytes of UTF-8.
        rejects: The number of rejected records by reason, sorted by reason.
        lost: What is lost of each damaged file, sorted by file.
    """

    documents: Count
    text_bytes: Count
    rejects: dict[str, Count]
    lost: tuple[FileLoss, ...] = ()


def reject_reasons(splits: Iterable[SplitStats]) -> dict[str, int]:
    """Return the number of rejects of all splits by reason, sorted by reason."""
    reasons: Counter[str] = Counter()
    for stats in splits:
        reasons.update(stats.rejects)
    return dict(sorted(reasons.items()))


def lost_files(splits: Iterable[SplitStats]) -> tuple[FileLoss, ...]:
    """Return what is lost of each file over all splits, sorted by file."""
    return add_losses(loss for stats in splits for loss in stats.lost)


def _slices_of(split: Split) -> tuple[tuple[int, int, int], ...]:
    return tuple((part.file, part.start, part.end) for part in split.slices)
