"""Names in a job folder's record, packed into runs."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.errors import DataError
from bpe_beam.folders.compact_names import (
    MAX_NAMES,
    NumberedNames,
    PackedNames,
    pack_names,
    unpack_names,
)
from bpe_beam.storage.json_file import to_struct

pytestmark = pytest.mark.quick


def test_names_are_packed_exactly() -> None:
    packed = pack_names(
        [f"shard-{i:05}-of-00012.{kind}" for i in range(12) for kind in ("bin", "idx")]
    )
    assert packed.single == ()
    assert packed.numbered == tuple(
        NumberedNames("shard-", 5, f"-of-00012.{kind}", first=0, count=12)
        for kind in ("bin", "idx")
    )
    for names in (
        [],
        ["a"],
        ["a1"],
        ["a1", "a3"],
        ["a9", "a10", "a11"],
        ["a09", "a10", "a1", "a2"],
        ["work/1", "work/2", "rejects/1 of 2", "ü٣", "7"],
        [f"x{i:03}" for i in range(990, 1010)],
        ["123456789012345678901234567890"],
    ):
        assert unpack_names(pack_names(names)) == set(names)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "a/../b", "a//b", "./a", "a/"])
def test_names_outside_the_folder_are_refused(name: str) -> None:
    with pytest.raises(DataError):
        pack_names([name])
    with pytest.raises(DataError):
        unpack_names(PackedNames((), (name,)))


@pytest.mark.parametrize(
    "run",
    [
        {"count": 10**12},
        {"count": -1},
        {"digits": 0},
        {"digits": 10**9},
        {"first": -1},
        {"before": "../"},
        {"count": "many"},
    ],
)
def test_a_damaged_run_of_names_is_refused(run: dict[str, Any]) -> None:
    good = {"before": "a", "digits": 5, "after": "", "first": 0, "count": 2}

    def unpacked(run: dict[str, Any]) -> frozenset[str]:
        values = {"numbered": [run], "single": []}
        return unpack_names(to_struct(values, PackedNames, "__job"))

    assert unpacked(good) == {"a00000", "a00001"}
    with pytest.raises(DataError):
        unpacked({**good, **run})


def test_too_many_names_are_refused() -> None:
    run = NumberedNames("a", 9, "", first=0, count=MAX_NAMES)
    with pytest.raises(DataError, match="more than 8,388,608 names"):
        unpack_names(PackedNames((run,), ("b",)))
