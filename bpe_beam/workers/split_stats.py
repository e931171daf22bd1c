"""The facts about the splits that workers have read, as receipts have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.rejects import FileLoss, add_losses
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.storage.json_file import Count


class SplitReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bytes and the versions of the files that a split was read from.

    Attributes:
        slices: (file's number, start, end) of each slice, in bytes.
        tags: The tag of each slice's file; None if the split was restored from a manifest, which
            has no tags.
        boundaries: The begins and ends of the records of slices with speculative boundaries; None
            if the split was restored: a finished job has proven its slices contiguous.
    """

    slices: tuple[tuple[Count, Count, Count], ...] = ()
    tags: tuple[str, ...] | None = None
    boundaries: tuple[Boundaries, ...] | None

    @staticmethod
    def of(plan: Plan, split: Split, boundaries: Iterable[Boundaries]) -> SplitReading:
        """Return the reading of a split."""
        tags = tuple(plan.files[slice_.file].tag for slice_ in split.slices)
        return SplitReading(slices=_slices_of(split), tags=tags, boundaries=tuple(boundaries))

    @staticmethod
    def restored(split: Split) -> SplitReading:
        """Return the reading of a split of a finished job."""
        return SplitReading(slices=_slices_of(split), boundaries=None)

    def is_of(self, plan: Plan, split: Split) -> bool:
        """Return whether the split has these slices of these versions of files."""
        now = SplitReading.of(plan, split, ())
        return self.slices == now.slices and self.tags in (None, now.tags)


class SplitStats(SplitReading, frozen=True, kw_only=True):
    """The facts about a split that was read.

    Attributes:
        text_bytes: Their text in bytes of UTF-8.
        rejects: The number of rejected records by reason, sorted by reason.
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
    """Return the loss of each file over all splits, sorted by file."""
    return add_losses(loss for stats in splits for loss in stats.lost)


def _slices_of(split: Split) -> tuple[tuple[int, int, int], ...]:
    return tuple((slice_.file, slice_.start, slice_.end) for slice_ in split.slices)
