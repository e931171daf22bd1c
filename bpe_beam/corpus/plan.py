"""Which files a corpus has, and how they are cut into splits: the units of a job's work.

A plan is plain data. It is a function of the files' names (relative to their common folder),
sizes, formats and compressions, and of `range_bytes` alone: not of where the corpus lies, how it
was listed, or who works on it. Equal plans give equal shards, so a plan can be made again rather
than kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

MAX_FILES = 1 << 20
MAX_FILE_BYTES = 1 << 44
"""With MAX_FILES: a file's index and an offset in it fit one 64-bit place."""

_VERSION = 1


def stored_bytes(plan: Mapping[str, Any]) -> int:
    """The size of all files of a plan in JSON; 0 of one without files."""
    return sum(file["size"] for file in plan.get("files", ()))


@dataclass(frozen=True)
class InputFile:
    """A file of the corpus.

    Attributes:
        name: Its path below the plan's root, with `/`.
        size: Its size as stored, in bytes.
        format: One of INPUT_FORMATS.
        compression: One of COMPRESSIONS, by its first bytes.
        tag: What the store tells of its content, so that a change is noticed; "" if nothing. No
            part of what is compared, written or hashed.
    """

    name: str
    size: int
    format: str
    compression: str
    tag: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Slice:
    """Stored bytes [start, end) of file number `file` of the plan. The records that begin in there
    belong to the slice; in a compressed file, those of the units that begin there."""

    file: int
    start: int
    end: int


@dataclass(frozen=True)
class Split:
    """A unit of work: slices in corpus order. `index` is its place in the plan."""

    index: int
    slices: tuple[Slice, ...]

    @property
    def size(self) -> int:
        """Stored bytes of all slices."""
        return sum(slice_.end - slice_.start for slice_ in self.slices)


@dataclass(frozen=True)
class Plan:
    """The files of a corpus in order, and the splits that cover them in the same order.

    Attributes:
        root: The folder (path or URL) that the names start at. No part of what is compared,
            written or hashed.
        files: The files, sorted by name.
        splits: The units of work.
        duplicates: Names of files that the inputs named more than once, sorted; no part of the
            plan's identity, as what follows.
        excluded: How many files were left out by `exclude`.
        range_bytes: How finely files were cut.
    """

    root: str = field(repr=False, compare=False)
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    duplicates: tuple[str, ...] = field(default=(), compare=False)
    excluded: int = field(default=0, compare=False)
    range_bytes: int = field(default=0, compare=False)

    @property
    def size(self) -> int:
        """Stored bytes of all files."""
        return sum(file.size for file in self.files)

    def reading_as_one(self, files: Collection[int]) -> Plan:
        """The same plan, but for some files, each of which is all read by the split that has its
        first slice; the others have nothing of it then."""

        def slices(split: Split) -> tuple[Slice, ...]:
            return tuple(
                Slice(slice_.file, 0, self.files[slice_.file].size)
                if slice_.file in files
                else slice_
                for slice_ in split.slices
                if slice_.file not in files or slice_.start == 0
            )

        splits = tuple(Split(split.index, slices(split)) for split in self.splits)
        return replace(self, splits=splits)

    def check_cover(self) -> None:
        """Check that the splits have each byte of each file once, in the order of the corpus.

        Raises:
            DataError: Names the first file and byte where they do not.
        """
        reached = [0] * len(self.files)
        found = [False] * len(self.files)
        for split in self.splits:
            for slice_ in split.slices:
                if slice_.start != reached[slice_.file]:
                    raise self._not_covered(slice_.file, min(slice_.start, reached[slice_.file]))
                reached[slice_.file] = slice_.end
                found[slice_.file] = True
        for number, file in enumerate(self.files):
            if reached[number] != file.size or not found[number]:
                raise self._not_covered(number, reached[number])

    def _not_covered(self, file: int, byte: int) -> DataError:
        return DataError(
            f"not a whole plan: byte {byte:,} of {self.files[file].name} is in no split, or in two"
        )

    def url(self, file: int) -> str:
        """Where file number `file` is."""
        return Storage().join(self.root, self.files[file].name)

    def to_json(self) -> dict[str, Any]:
        """Plain data: the files, and the splits as lists of [file, start, end]."""
        return {
            "version": _VERSION,
            "files": [
                {
                    "name": file.name,
                    "size": file.size,
                    "format": file.format,
                    "compression": file.compression,
                }
                for file in self.files
            ],
            "splits": [
                [[slice_.file, slice_.start, slice_.end] for slice_ in split.slices]
                for split in self.splits
            ],
        }

    def fingerprint(self) -> str:
        """SHA-256 of the plan, in hex: equal for equal plans wherever the corpus lies."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def from_json(data: Mapping[str, Any], root: str) -> Plan:
        """Reads what `to_json` made.

        Raises:
            DataError: It is not a plan of this version, or its splits do not lie in its files.
        """
        try:
            if data["version"] != _VERSION:
                raise DataError(f"plan: version {data['version']!r} is not {_VERSION}")
            files = tuple(InputFile(**file) for file in data["files"])
            splits = tuple(
                Split(index, tuple(Slice(*slice_) for slice_ in pieces))
                for index, pieces in enumerate(data["splits"])
            )
            sound = all(
                0 <= slice_.start <= slice_.end <= files[slice_.file].size and slice_.file >= 0
                for split in splits
                for slice_ in split.slices
            ) and all(isinstance(file.name, str) for file in files)
        except (KeyError, TypeError, IndexError) as error:
            raise DataError(f"not a plan: {type(error).__name__}: {error}") from error
        if not sound:
            raise DataError("not a plan: a slice does not lie within its file")
        return Plan(root, files, splits)
