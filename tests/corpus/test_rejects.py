"""Rejects: the file of a split, and the limit that a run may not pass."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from bpe_beam import _native
from bpe_beam.corpus.rejects import Limit, Reject, RejectReason, RejectWriter, names_in
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


def test_rows(tmp_path: Path) -> None:
    url = str(tmp_path / "rejects.jsonl")
    data = bytes(range(256))
    with RejectWriter(Storage(), url) as writer:
        writer.add(
            Reject.of(
                "a/é.txt",
                RejectReason.INVALID_UTF8,
                "at byte 128 of the record",
                data,
                offset=7,
                line=3,
            )
        )
        writer.add(Reject.of("b", RejectReason.TOO_LONG, "", b"x" * 70_000, 10**10, offset=0))
        writer.add(
            Reject.of("b", RejectReason.INVALID_UTF8, "", memoryview(b"y" * 70_000), offset=9)
        )
        assert not (tmp_path / "rejects.jsonl").exists()
    assert writer.total == 3
    assert writer.counts == {"invalid UTF-8": 2, "record too long": 1}
    lines = (tmp_path / "rejects.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert '"a/é.txt"' in lines[0]
    assert rows[0] == {
        "file": "a/é.txt",
        "offset": 7,
        "line": 3,
        "reason": "invalid UTF-8",
        "detail": "at byte 128 of the record",
        "bytes": base64.b64encode(data).decode(),
        "bytes_total": 256,
    }
    assert base64.b64decode(rows[1]["bytes"]) == b"x" * 65_536
    assert [row["bytes_total"] for row in rows] == [256, 10**10, 70_000]
    assert base64.b64decode(rows[2]["bytes"]) == b"y" * 65_536


def test_no_rejects_no_file(tmp_path: Path) -> None:
    with RejectWriter(Storage(), str(tmp_path / "no" / "folder" / "x")) as writer:
        pass
    assert writer.total == 0
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_failed_split(tmp_path: Path) -> None:
    with pytest.raises(KeyError), RejectWriter(Storage(), str(tmp_path / "x")) as writer:
        writer.add(Reject.of("a", RejectReason.BROKEN_JSON, "", offset=0))
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError), RejectWriter(Storage(), str(tmp_path / "no" / "x")) as writer:
        writer.add(Reject.of("a", RejectReason.BROKEN_JSON, "", offset=0))


def test_native_code_has_the_same_words() -> None:
    assert {reason.value for reason in RejectReason} > set(_native.RECORD_FLAWS[1:])


SOUGHT = ": text_field 'meta.body' names no field"


def named(record: Any, field: str = "meta.body") -> str:
    data = json.dumps(record).encode()
    return names_in(Reject.of("a", RejectReason.FIELD_MISSING, "", data, offset=0).to_json(), field)


def test_the_names_there_are() -> None:
    assert named({"id": 1, "content": "a"}) == f"{SOUGHT}; it has 'id', 'content'"
    assert named({}) == f"{SOUGHT}; it has no field at all"
    many = {f"f{i}": i for i in range(1025)}
    assert named(many).endswith("'f18', 'f19' and 1,005 more")
    assert named({"a.b": 1}, r"a\.c") == r": text_field 'a\\.c' names no field; it has 'a.b'"


def test_a_path_is_followed_as_far_as_it_leads() -> None:
    assert named({"meta": {"text": "a"}}) == f"{SOUGHT}; its 'meta' has 'text'"
    assert named({"meta": "a"}) == f"{SOUGHT}; its 'meta' is no object"


def test_a_record_that_is_not_kept_whole_has_no_names() -> None:
    assert named({"content": "x" * 100_000}) == SOUGHT


def test_other_reasons_name_nothing() -> None:
    assert not names_in(
        Reject.of("a", RejectReason.BROKEN_JSON, "", b"{", offset=0).to_json(), "text"
    )
    assert not names_in(Reject.of("a", RejectReason.FIELD_MISSING, "", row=3).to_json(), "a")


@pytest.mark.parametrize(
    ("limit", "rejects", "records", "exceeded"),
    [
        ("10", 10, 10, False),
        ("10", 11, 10**9, True),
        ("0", 0, 0, False),
        ("0", 1, 10**9, True),
        (10, 11, 11, True),
        ("0.1%", 0, 0, False),
        ("0.1%", 1, 999, True),
        ("0.1%", 1, 1000, False),
        ("0.1%", 2, 1999, True),
        ("0%", 1, 10**12, True),
        ("100%", 5, 5, False),
        (" 5 % ", 5, 100, False),
        (" 5 % ", 6, 100, True),
        # 3 in 10^18 and 10^19: no float tells these apart
        ("0.0000000000000003%", 3, 10**18, False),
        ("0.0000000000000003%", 4, 10**18, True),
        ("33.333333333333333333%", 333333333333333333, 10**18, False),
        ("33.333333333333333333%", 333333333333333334, 10**18, True),
    ],
)
def test_limits(limit: str | int, rejects: int, records: int, exceeded: bool) -> None:
    assert Limit.parse(limit).exceeded(rejects, records) is exceeded


@pytest.mark.parametrize(
    "limit", ["", "%", "-1", "1.5", "0.1", "1e3", "101%", "100.1%", "5%%", "٣"]
)
def test_what_is_no_limit(limit: str) -> None:
    with pytest.raises(UsageError, match="max_rejects must be"):
        Limit.parse(limit)


def test_messages_show_no_sound_number() -> None:
    with pytest.raises(UsageError, match=r"such as 0.1%, and at least 0, got '-5%'"):
        Limit.parse("-5%")
    with pytest.raises(UsageError, match=r"must be at most 100%, got 9+%"):
        Limit.parse("9" * 20 + "%")
    assert not Limit.parse("0." + "0" * 30 + "1%").exceeded(0, 1)


def test_other_types_are_no_limit() -> None:
    for limit in (True, 0.1, None):
        with pytest.raises(UsageError, match="max_rejects must be"):
            Limit.parse(limit)
