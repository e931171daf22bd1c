"""Thousands of numbered file names in a few lines of JSON, exactly.

A job records every name that it writes, so that overwriting removes those and nothing else. A
pattern would be shorter and would match other people's files; a run of numbers matches only itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from bpe_beam.errors import DataError

MAX_NAMES = 1 << 23
"""Up to eight files of each of a million splits; a record that claims more is damaged."""

_NUMBERED = re.compile(r"([^0-9]*)([0-9]{1,15})(.*)", re.DOTALL)


def check_name(name: str) -> None:
    """Refuse a name that could lie outside the folder it is relative to.

    Raises:
        DataError: If `name` is empty, absolute, or holds `.`, `..` or an empty part.
    """
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise DataError(f"{name!r} is not the name of a file in an output folder")


def pack_names(names: Collection[str]) -> dict[str, Any]:
    """Write names as runs and single names.

    Args:
        names: Names relative to a folder, `/` between parts. Repeated ones count once.

    Returns:
        `{"numbered": [{"before", "digits", "after", "first", "count"}], "single": [...]}`, a
        function of the set of names alone.

    Raises:
        DataError: If a name is not one of a file in the folder.
    """
    groups: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    single = []
    for name in set(names):
        check_name(name)
        match = _NUMBERED.fullmatch(name)
        if match is None:
            single.append(name)
        else:
            groups[match[1], len(match[2]), match[3]].append(int(match[2]))
    numbered = []
    for (before, digits, after), numbers in sorted(groups.items()):
        numbers.sort()
        if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            run = {"before": before, "digits": digits, "after": after}
            numbered.append({**run, "first": numbers[0], "count": len(numbers)})
        else:
            single += [f"{before}{number:0{digits}d}{after}" for number in numbers]
    return {"numbered": numbered, "single": sorted(single)}


def unpack_names(packed: object) -> frozenset[str]:
    """Read what `pack_names` wrote.

    Args:
        packed: The value, read from a file that may be damaged or written by anyone.

    Returns:
        The names.

    Raises:
        DataError: If it is not such a value, or a name would lie outside the folder.
    """
    try:
        assert isinstance(packed, dict)
        names = [str(name) for name in packed["single"]]
        for run in packed["numbered"]:
            first, count, digits = int(run["first"]), int(run["count"]), int(run["digits"])
            if not (0 <= count <= MAX_NAMES - len(names) and 1 <= digits <= 15 and first >= 0):
                raise ValueError("a run of names out of all measure")
            before, after = str(run["before"]), str(run["after"])
            names += [f"{before}{first + i:0{digits}d}{after}" for i in range(count)]
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"the record of a job's files cannot be read: {error!r}") from error
    for name in names:
        check_name(name)
    return frozenset(names)
