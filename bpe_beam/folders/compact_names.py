"""Thousands of numbered file names in a few lines of JSON, exactly.

A job records every name that it writes, so that overwriting removes those and nothing else. A
pattern would be shorter and would match other people's files; a run of numbers matches only itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from typing import Annotated

from msgspec import Meta, Struct

from bpe_beam.errors import DataError
from bpe_beam.storage.json_file import Count

MAX_NAMES = 1 << 23
"""Up to eight files of each of a million splits; a record with more names is damaged."""

_NUMBERED = re.compile(r"([^0-9]*)([0-9]{1,15})(.*)", re.DOTALL)


class NumberedNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Names that differ by a number alone, padded with zeros to `digits`, which rises by one."""

    before: str
    digits: Annotated[int, Meta(ge=1, le=15)]
    after: str
    first: Count
    count: Annotated[int, Meta(ge=0, le=MAX_NAMES)]

    def names(self) -> list[str]:
        """Return the names."""
        numbers = range(self.first, self.first + self.count)
        return [f"{self.before}{number:0{self.digits}d}{self.after}" for number in numbers]


class PackedNames(Struct, frozen=True, forbid_unknown_fields=True):
    """A set of names, relative to a folder and with `/` between their parts."""

    numbered: tuple[NumberedNames, ...]
    single: tuple[str, ...]


def _check_name(name: str) -> None:
    """Refuse a name that could be outside the folder that it is relative to."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise DataError(f"{name!r} is not the name of a file in an output folder")


def pack_names(names: Collection[str]) -> PackedNames:
    """Return names as runs and single names: a function of the set of names alone."""
    groups: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    single = []
    for name in set(names):
        _check_name(name)
        match = _NUMBERED.fullmatch(name)
        if match is None:
            single.append(name)
        else:
            groups[match[1], len(match[2]), match[3]].append(int(match[2]))
    numbered = []
    for (before, digits, after), numbers in sorted(groups.items()):
        numbers.sort()
        if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            numbered.append(NumberedNames(before, digits, after, numbers[0], len(numbers)))
        else:
            single += [f"{before}{number:0{digits}d}{after}" for number in numbers]
    return PackedNames(tuple(numbered), tuple(sorted(single)))


def unpack_names(packed: PackedNames) -> frozenset[str]:
    """Return the names that `pack_names` packed; anyone may have written them."""
    if len(packed.single) + sum(run.count for run in packed.numbered) > MAX_NAMES:
        raise DataError(f"the record of a job's files has more than {MAX_NAMES:,} names")
    names = frozenset(packed.single).union(*(run.names() for run in packed.numbered))
    for name in names:
        _check_name(name)
    return names
