"""The files of a corpus, and their division into splits, the tasks of a job.

A plan is plain data: a function of the files' names (relative to their common folder), sizes,
formats and compressions, and of `range_bytes` alone. Equal plans give equal shards, so a plan can
be made again rather than stored.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import Count, JsonObject, to_struct

MAX_FILES = 1 << 20
MAX_FILE_BYTES = 1 << 44
"""With MAX_FILES: the number of a file and an offset in it fit in 64 bits."""


class InputFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of the corpus; `name` is its path below the plan's root, with `/`.

    `tag` is the store's tag of its content, which shows a change; it is neither written nor hashed.
    """

    name: str
    size: Count
    format: str
    compression: str
    tag: str = ""


class Slice(NamedTuple):
    """Stored bytes [start, end) of file number `file` of the plan.

    It has the records that begin in it; in a compressed file, the records of the units that do.
    """

    file: int
    start: int
    end: int


class Split(Struct, frozen=True):
    """The slices of one task, in the order of the corpus. `index` is its number in the plan."""

    index: int
    slices: tuple[Slice, ...]

    @property
    def size(self) -> int:
        """Stored bytes of all slices."""
        return sum(slice_.end - slice_.start for slice_ in self.slices)


class Plan(Struct, frozen=True):
    """The files of a corpus in order, and the splits that cover them in the same order.

    Only `files` and `splits` are compared, written and hashed. All lists are sorted.

    Attributes:
        root: The folder (path or URL) at which the names start.
        duplicates: Names of files that the inputs named more than once, by themselves or by links.
        excluded: The number of files that `exclude` leaves out.
        range_bytes: Maximum stored bytes of a split, if its files can be split.
        links: The links that were not followed, each with the reason.
        passed_over: The files of folders that were left out by their names.
        sample_bytes: Approximate stored bytes that are read of each slice: the plan is a sample,
            whose slices need not be contiguous. None: all are read.
    """

    root: str
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    duplicates: tuple[str, ...] = ()
    excluded: int = 0
    range_bytes: int = 0
    links: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    sample_bytes: int | None = None

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same files and splits."""
        if not isinstance(other, Plan):
            return NotImplemented
        return (self.files, self.splits) == (other.files, other.splits)

    @property
    def size(self) -> int:
        """Stored bytes of all files."""
        return sum(file.size for file in self.files)

    def reading_as_one(self, files: Collection[int]) -> Plan:
        """Return the same plan, but with some files, by their numbers, in one slice each.

        The split that has the first slice of such a file gets all of it, other splits nothing.
        """

        def slices(split: Split) -> Iterator[Slice]:
            for slice_ in split.slices:
                if slice_.file not in files:
                    yield slice_
                elif slice_.start == 0:
                    yield Slice(slice_.file, 0, self.files[slice_.file].size)

        splits = tuple(Split(split.index, tuple(slices(split))) for split in self.splits)
        return replace(self, splits=splits)

    def check_cover(self) -> None:
        """Check that the splits have each byte of each file once, in the order of the corpus."""
        reached: dict[int, int] = {}
        for file, start, end in itertools.chain(*(split.slices for split in self.splits)):
            if start != reached.get(file, 0):
                raise self._not_covered(file, min(start, reached.get(file, 0)))
            reached[file] = end
        for number, each in enumerate(self.files):
            if reached.get(number) != each.size:
                raise self._not_covered(number, reached.get(number, 0))

    def _not_covered(self, file: int, byte: int) -> DataError:
        return DataError(
            f"not a whole plan: byte {byte:,} of {self.files[file].name} is in no split, or in two"
        )

    def url(self, file: int) -> str:
        return Storage().join(self.root, self.files[file].name)

    def to_json(self) -> JsonObject:
        """Return the plan as JSON values: the files, and the slices of each split as lists."""
        files = tuple(replace(file, tag="") for file in self.files)
        splits = tuple(split.slices for split in self.splits)
        plan: JsonObject = msgspec.to_builtins(_PlanRow(1, files, splits))
        return plan

    def fingerprint(self) -> str:
        """Return the SHA-256 of the plan, in hex: equal for equal plans of a moved corpus."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def from_json(data: Mapping[str, Any], root: str) -> Plan:
        """Return the plan of JSON values that `to_json` returned."""
        row = to_struct(data, _PlanRow, "not a plan")
        if any(file.tag for file in row.files):
            raise DataError("not a plan: a file has a tag")
        for slice_ in itertools.chain(*row.splits):
            file, start, end = slice_
            if not (0 <= file < len(row.files) and 0 <= start <= end <= row.files[file].size):
                raise DataError(f"not a plan: the slice {list(slice_)} is not within its file")
        splits = tuple(Split(index, slices) for index, slices in enumerate(row.splits))
        return Plan(root, row.files, splits)


class _PlanRow(Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    files: tuple[InputFile, ...]
    splits: tuple[tuple[Slice, ...], ...]
