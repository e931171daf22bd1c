"""The plan as data: what it depends on, written and read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from planned_corpora import corpus

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


STORAGE = Storage()


def test_a_plan_is_the_same_for_any_order_and_place(tmp_path: Path) -> None:
    paths = corpus(tmp_path / "here")
    plan = make_plan(STORAGE, paths, range_bytes=300)
    assert plan.root == str(tmp_path / "here")
    assert [(f.name, f.format, f.compression) for f in plan.files] == [
        ("Z.TXT", "text", "none"),
        ("a/1.jsonl", "jsonl", "none"),
        ("a/2.jsonl.gz", "jsonl", "gzip"),
        ("a/empty.txt", "text", "none"),
        ("a/é.ndjson.zst", "jsonl", "zstd"),
        ("b.txt", "text", "none"),
        ("z.json", "jsonl", "none"),
    ]
    assert [plan.url(i) for i in range(7)] == [f"{tmp_path}/here/{f.name}" for f in plan.files]
    for seed in range(5):
        shuffled = random.Random(seed).sample(paths, len(paths))
        again = make_plan(STORAGE, shuffled, range_bytes=300)
        assert again == plan
        assert again.fingerprint() == plan.fingerprint()
    corpus(tmp_path / "elsewhere" / "deeper")
    moved = make_plan(STORAGE, [f"{tmp_path}/elsewhere/**"], range_bytes=300)
    assert moved.fingerprint() == plan.fingerprint()
    assert moved.root != plan.root
    assert str(tmp_path) not in json.dumps(moved.to_json())


def test_what_a_plan_depends_on(tmp_path: Path) -> None:
    def fingerprint(**options: Any) -> str:
        return make_plan(STORAGE, [f"{tmp_path}/**"], **options).fingerprint()

    corpus(tmp_path)
    first = fingerprint(range_bytes=300)
    assert fingerprint(range_bytes=200) != first
    assert fingerprint(range_bytes=300, input_format="text") != first
    assert fingerprint(range_bytes=300, document_separator="file") != first
    assert fingerprint(range_bytes=300, document_separator="\n\n") == first
    (tmp_path / "b.txt").write_bytes(b"x" * 800)  # other bytes of the same size
    assert fingerprint(range_bytes=300) == first
    (tmp_path / "b.txt").write_bytes(b"x" * 801)
    assert fingerprint(range_bytes=300) != first


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    corpus(tmp_path)
    plan = make_plan(STORAGE, [f"{tmp_path}/**"], range_bytes=300)
    data = json.loads(json.dumps(plan.to_json()))
    again = Plan.from_json(data, plan.root)
    assert (again.splits, again.fingerprint()) == (plan.splits, plan.fingerprint())
    assert json.loads(json.dumps(again.to_json())) == data
    assert Plan.from_json(data, "/elsewhere").url(0) == "/elsewhere/Z.TXT"
    for broken in (
        {},
        {**data, "version": 2},
        {**data, "files": [{"name": "x"}]},
        {**data, "files": [{**data["files"][0], "more": 1}]},
        {**data, "splits": [[[99, 0, 1]]]},
        {**data, "splits": [[[-1, 0, 0]]]},
        {**data, "splits": [[[0, 5, 2]]]},
        {**data, "splits": [[[0, 0, 10**9]]]},
        {**data, "splits": [[[0, 0]]]},
        {**data, "splits": [[[0, "0", 1]]]},
        {**data, "splits": 3},
        {**data, "files": [{**data["files"][0], "tag": "x"}, *data["files"][1:]]},
    ):
        with pytest.raises(DataError, match=r"plan"):
            Plan.from_json(broken, "")
