"""A sample of a corpus: a plan of slices from positions all over it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

from msgspec.structs import replace

from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.split_planning import can_be_cut
from bpe_beam.storage import Storage

POSITIONS = 128  # the positions of a sample, fewer where a file cannot be read from any byte on

_FEWEST = 8  # positions there

_BLOCK_BYTES = 1 << 20  # the approximate bytes that a reader reads at once


def sample_of(
    storage: Storage, plan: Plan, size: int, positions: int, separator: str, splits: int
) -> Plan:
    """Return a plan that reads about `size` bytes, from positions all over the corpus.

    A sample of fewer bytes, from as many positions, or half or a quarter of them, is within it.
    """
    slices = [each for split in plan.splits for each in split.slices]
    ends = [*accumulate(each.end - each.start for each in slices)]
    anywhere = {
        number
        for number, file in enumerate(plan.files)
        if file.compression == "none"
        and not input_format(file.format).columnar
        and can_be_cut(file, separator)
    }
    if len(anywhere) < len(plan.files):
        positions = min(positions, max(_FEWEST, size // _BLOCK_BYTES))
    bytes_each = -(-size // positions)

    def read_from(number: int) -> Iterator[Slice]:
        """Yield the slices, whole or in part, that are read from a position on."""
        position, remaining = number * plan.size // positions, bytes_each
        index = bisect_right(ends, position)
        while remaining > 0 and index < len(slices):
            file, start, end = slices[index]
            if file in anywhere:
                start = max(start, end - (ends[index] - position))
                last = min(end, start + remaining)
                remaining -= last - start
                start, end = (
                    _record_after(storage, plan, file, at, separator) for at in (start, last)
                )
            elif plan.files[file].compression != "none":
                start, end = 0, plan.files[file].size  # only there a reader need not search
                remaining = 0
            else:
                remaining -= end - start
            yield Slice(file, start, end)
            index, position = index + 1, ends[index]

    with ThreadPoolExecutor(POSITIONS) as pool:
        read = list(pool.map(lambda number: list(read_from(number)), range(positions)))
    chosen: set[Slice] = set()
    by_split: list[list[Slice]] = [[] for _ in range(splits)]
    for number, from_position in enumerate(read):
        by_split[number % splits] += [each for each in from_position if each not in chosen]
        chosen.update(from_position)
    sampled = tuple(
        Split(number, tuple(each)) for number, each in enumerate(filter(None, by_split))
    )
    return replace(plan, splits=sampled, sample_bytes=-(-size // len(chosen)))


def _record_after(storage: Storage, plan: Plan, file: int, position: int, separator: str) -> int:
    """Return where the next record begins, so that a slice has whole documents.

    If none begins soon after the position, return the position.
    """
    size = plan.files[file].size
    if not 0 < position < size:
        return position
    separated = input_format(plan.files[file].format).separated
    end = separator.encode() if separated else b"\n"
    with storage.open(plan.url(file)) as opened:
        opened.seek(position - 1)
        offset = opened.read(min(_BLOCK_BYTES, size - position + 1)).find(end)
    return position if offset < 0 else position - 1 + offset + len(end)
