"""__job: whose folder it is; another, damaged or foreign record is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from output_folders import claim

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.job_json import (
    MAX_NAMES,
    JobRecord,
    NumberedNames,
    PackedNames,
    pack_names,
    unpack_names,
)
from bpe_beam.storage.json_file import to_struct

pytestmark = pytest.mark.quick


def test_a_record_cannot_name_files_outside_the_folder(tmp_path: Path) -> None:
    url = tmp_path / "out"
    claim(url)
    (tmp_path / "precious").write_text("x")
    job = json.loads((url / "__job").read_bytes())
    job["files"]["single"].append("../precious")
    (url / "__job").write_text(json.dumps(job))
    with pytest.raises(UsageError, match="has no readable __job"):
        claim(url)
    claim(url, overwrite=True)
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"job": 1, "version": 1}',
        "[" * 100_000,
        "\xff\xfe",
        '{"\\ud800": 1}',
        '{"job": "count", "fingerprint": "", "settings": {"a": 1e999}, "final": "f", "files": {}}',
    ],
)
def test_a_job_file_of_others_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "__job").write_bytes(text.encode("latin-1"))
    for overwrite in (False, True):
        with pytest.raises(UsageError, match=r"__job"):
            claim(tmp_path, overwrite=overwrite)
    assert (tmp_path / "__job").read_bytes() == text.encode("latin-1")


def test_a_job_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    claim(tmp_path)
    path = tmp_path / "__job"
    path.write_text(path.read_text().replace('"text"', '"body"'))
    with pytest.raises(UsageError, match="so the job that wrote the folder is unknown"):
        claim(tmp_path)


def test_a_folder_of_another_version_is_refused_even_to_overwrite(tmp_path: Path) -> None:
    claim(tmp_path)
    path = tmp_path / "__job"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="version must be 1 for this bpe-beam, got 2"):
            claim(tmp_path, overwrite=overwrite)


def test_a_record_reads_back(tmp_path: Path) -> None:
    record = JobRecord("count", {"a": 1}, "__manifest", frozenset(["b"]))
    assert JobRecord.from_bytes(record.to_bytes()) == record
    # Another fingerprint would keep begun folders from being resumed.
    assert record.fingerprint == (
        "fdab175bd47ffab6d27bf9425d8ddf3c1a696b73ebfe446c055cfc385ad2ec84"
    )


@pytest.mark.parametrize("version", [True, 0, "2", None, 2.0])
def test_a_job_file_of_a_strange_version_is_refused(tmp_path: Path, version: object) -> None:
    claim(tmp_path)
    path = tmp_path / "__job"
    value = json.loads(path.read_bytes())
    path.write_text(json.dumps({**value, "version": version}))
    with pytest.raises(UsageError, match="version must be 1 for this bpe-beam, got "):
        claim(tmp_path)


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
