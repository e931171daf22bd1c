"""A corpus of which no record can be used is known by its first records."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe_beam.corpus.early_check import TRIED_RECORDS, documents_without_id, unusable_records
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.reading.slice_reader import FileBuffer
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

RECORDS = 3 * TRIED_RECORDS


def lines(field: str, count: int = RECORDS) -> bytes:
    return b"".join(
        json.dumps({"id": i, field: f"text {i}"}).encode() + b"\n" for i in range(count)
    )


def plan_of(folder: Path, **options: Any) -> Plan:
    return make_plan(Storage(), [f"{folder}/*"], **options)


def tried(plan: Plan, **settings: Any) -> list[Reject] | None:
    return unusable_records(Storage(), plan, ReadSettings(**settings))


def bad_and_good(bad: int) -> bytes:
    return lines("content", bad) + lines("text", RECORDS - bad)


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)])
def test_one_file(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(lines("content")))
    found = tried(plan_of(tmp_path))
    assert found is not None
    assert (found[0].reason, found[0].position) == ("field missing", "byte 0")
    assert TRIED_RECORDS <= len(found) <= RECORDS
    assert tried(plan_of(tmp_path), text_field="content") is None
    for mixed in (
        lines("text", 1) + lines("content"),
        (lines("content", 50) + lines("text", 1)) * 100,
        bad_and_good(TRIED_RECORDS - 1),
        lines("content", 500) + b"[1]\n" + lines("content"),
        lines("content", TRIED_RECORDS - 1),
    ):
        path.write_bytes(pack(mixed))
        assert tried(plan_of(tmp_path)) is None, mixed[:60]


def test_slices_are_spread_over_the_corpus(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.jsonl").write_bytes(lines("content", 200))
    found = tried(plan_of(tmp_path))
    assert found is not None
    assert len({reject.file for reject in found}) == 16
    (tmp_path / "00.jsonl").write_bytes(bad_and_good(1))
    assert tried(plan_of(tmp_path)) is None
    assert tried(plan_of(tmp_path, range_bytes=10_000)) is None


def test_a_large_file_is_tried_in_its_middle_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines("content") + lines("text"))
    assert tried(plan_of(tmp_path, range_bytes=50_000)) is None


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_other_formats(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for good in (RECORDS, 0, 1):
        texts = [None if i >= good else "a" for i in range(RECORDS)]
        if name.startswith("a.csv"):
            rows = [f"{i}\n" if text is None else f"{i},{text}\n" for i, text in enumerate(texts)]
            data = "".join(["id,text\n", *rows]).encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        else:
            pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path)
        found = tried(plan_of(tmp_path))
        assert (found is None) is (good > 0)


def test_empty_lines_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"\n" * 200_000 + lines("content")))
    plan = plan_of(tmp_path)
    calls = []
    advance = FileBuffer.advance

    def counted(buffer: FileBuffer, used: int) -> None:
        calls.append(used)
        advance(buffer, used)

    monkeypatch.setattr(FileBuffer, "advance", counted)
    assert tried(plan) is not None
    assert len(calls) < 10 * TRIED_RECORDS


def test_nothing_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert tried(plan_of(tmp_path)) is None


def test_documents_without_the_field_of_ids(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines("text", 3))
    (tmp_path / "a.txt").write_text("a line\n")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:  # its ids are of no field
        archive.add(tmp_path / "a.txt", "a.txt")
    plan = plan_of(tmp_path)
    found = documents_without_id(Storage(), plan, ReadSettings(id_field="none"))
    assert found == {"none": (3, "a.jsonl")}
    assert documents_without_id(Storage(), plan, ReadSettings()) == {}
