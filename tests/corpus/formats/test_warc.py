"""WARC and WET: texts out of web archives, divided anywhere, with any bytes between them."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard
from corpus_reading import Found, read_file
from guessed_cuts import plan_of, read_cut
from some_of import SomeOf

from bpe_beam.corpus.formats import warc

pytestmark = pytest.mark.quick


def record(block: bytes, kind: str = "conversion", end: bytes = b"\r\n\r\n", **more: Any) -> bytes:
    """One record; headers by keyword, with `_` for `-`; None leaves one out."""
    headers: dict[str, Any] = {
        "WARC-Type": kind,
        "Content-Length": len(block),
        "Content-Type": "text/plain",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join(["WARC/1.0", *lines, "", ""]).encode() + block + end


def named(text: str, number: int) -> bytes:
    name, site = f"<urn:uuid:{number}>", f"http://site{number % 3}/"
    return record(text.encode(), WARC_Record_ID=name, WARC_Target_URI=site)


TEXTS = ["one", "", "two\r\n\r\n", "três\n\nWARC/1.\n", "a\r\n\r\nb" * 5, "WARC/1.0", "last"]
INFO = record(b"Software-Info: x\r\n", "warcinfo", Content_Type="application/warc-fields")


def read(path: Path, **options: Any) -> Found:
    return read_cut(plan_of(path, "warc"), **options)[0]


def test_which_records_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    content = b"".join(
        [
            INFO,
            named("a", 1),
            record(b"HTTP/1.1 200 OK\r\n\r\nx", "response", Content_Type="application/http"),
            record(b"b", "resource", Content_Type="Text/Plain; charset=UTF-8"),
            record(b"c", Content_Type=None),
            record(b"\xff", Content_Type="image/png"),
            record(b"d", "Conversion", Content_Type="text/html"),
            record(b"e", "metadata", Content_Type=None),
        ]
    )
    path.write_bytes(content)
    for batch in (1, 1 << 20):
        found = read_file(path, batch=batch)
        assert found.texts == ["a", "b", "c", "d"]
        assert found.ids == ["<urn:uuid:1>", None, None, None]
        assert set(found.sources) == {"x.warc"}
        assert not found.rejects
        assert [place for place, _ in found.documents] == [
            content.index(at) for at in (named("a", 1), *(record(b"b")[:20],))
        ][:1] + [p for p, _ in found.documents][1:]
    found = read_file(path, source_field="warc-target-uri", id_field="Content-Length")
    assert (found.ids, found.sources) == (["1"] * 4, ["http://site1/", *["other"] * 3])
    found = read_file(path, text_field="WARC-Target-URI")
    assert found.texts == ["http://site1/"]
    assert [r.reason for r in found.rejects] == ["field missing"] * 3
    assert read_file(path, input_format="warc").texts == ["a", "b", "c", "d"]


def test_headers_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.wet"
    path.write_bytes(
        b"WARC/1.1\r\nwarc-type:CONVERSION\r\nCONTENT-LENGTH:\r\n 3\r\n"
        b"WARC-Record-ID: a\r\n\tb\r\n\r\none\r\n\r\n"
        b"WARC/1.0\nWARC-Type: conversion\nContent-Length: 3\n\ntwo\n\n"
        b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 0005\r\n\r\nthree\r\n\r\n\r\n\r\n\n"
        b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 4\r\n\r\nfour"
    )
    found = read(path)
    assert (found.texts, found.rejects) == (["one", "two", "three", "four"], [])
    assert found.ids == ["a b", None, None, None]
    path.write_bytes(b"")
    assert read(path).documents == []


BAD = [
    (record(b"x", Content_Length=None), "broken WARC header", "no Content-Length"),
    (record(b"x", Content_Length="-1"), "broken WARC header", "Content-Length is '-1'"),
    (record(b"x", Content_Length="1e3"), "broken WARC header", "Content-Length is '1e3'"),
    (record(b"x", Content_Length="9" * 30), "broken WARC header", "Content-Length is '999"),
    (record(b"x", Content_Length="9" * 15), "broken WARC header", "Content-Length is 999"),
    (record(b"x", Content_Length="9" * 10), "broken WARC header", "Content-Length is 999"),
    (record(b"x", Content_Length="99999"), "broken WARC header", "Content-Length is 99999"),
    (record(b"xyz", Content_Length="2"), "broken WARC header", "Content-Length is 2, and no line"),
    (
        record(b"x", "response", Content_Type="application/http", Content_Length="200"),
        "broken WARC header",
        "Content-Length is 200, and no line ends there",
    ),
    (record(b"x" * 90, content_length="90"), None, None),
    (record(b"x" * 90, content_length="9"), "broken WARC header", "two Content-Lengths"),
    (
        record(b"x", "response", Content_Length="7"),
        "broken WARC header",
        "Content-Length is 7, and",
    ),
    (record(b"x", no="\udcff".encode("utf-8", "replace").decode()), None, None),
    (
        b"WARC/1.0\r\nno colon\r\n\r\n",
        "broken WARC header",
        "a line without a colon: 'no colon'",
    ),
    (b"WARC/1.0\r\nx: \xff\r\n\r\n", "broken WARC header", "invalid UTF-8"),
    (b"WARC/1.0\r\n\r\n", "broken WARC header", "no Content-Length"),
    (record(b"\xc3"), "invalid UTF-8", "at byte"),
    (b"garbage\r\n\r\n", "no WARC record", "no WARC/1. at its start"),
    (b"\0" * 3000 + b"\n\n", "no WARC record", ""),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bad_records_between_good_ones(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "x.warc"
    for bad, reason, detail in BAD:
        path.write_bytes(pack(named("before", 1) + bad + named("a", 2) + named("b", 3)))
        for batch in (1, 1 << 20):
            found = read(path, batch=batch)
            texts = [text for text in found.texts if not text.startswith("x")]
            assert texts == ["before", "a", "b"]
            if reason is None:
                assert not found.rejects
                continue
            (reject,) = found.rejects
            whole = {"broken WARC header", "record too long"}
            assert reject.reason == reason or {reject.reason, reason} <= whole
            assert detail in reject.detail  # type: ignore[operator]
            assert reject.data.rstrip() == bad.rstrip()
            assert reject.offset == len(named("before", 1))


@pytest.mark.slow
def test_every_cut_of_a_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(INFO + b"".join(named(text, i) for i, text in enumerate(TEXTS)))
    plan = plan_of(path, "warc")
    whole, _ = read_cut(plan)
    assert whole.texts == TEXTS
    drawn = random.Random(3)
    met = 0
    places = [[at] for at in range(1, plan.size)]
    places += [sorted(drawn.sample(range(1, plan.size), 6)) for _ in range(100)]
    for cuts in places:
        found, meet = read_cut(plan, cuts, batch=drawn.choice([1, 1 << 20]))
        met += meet
        if meet:
            assert (found.documents, found.ids) == (whole.documents, whole.ids)
            assert not found.rejects
    # a cut within the text that looks like a record's beginning is found out
    assert len(places) // 2 < met < len(places)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_every_cut_of_a_compressed_file(tmp_path: Path, pack: Any, some_of: SomeOf) -> None:
    path = tmp_path / "x.warc.gz"
    drawn = random.Random(4)
    records = [INFO, *(named(text, i) for i, text in enumerate(TEXTS) if "WARC" not in text)]
    texts = [text for text in TEXTS if "WARC" not in text]
    content = b"".join(records)
    parts = [content[at : at + 50] for at in range(0, len(content), 50)]
    for members in (records, parts, [records[0], b"", *records[1:]]):
        path.write_bytes(b"".join(map(pack, members)))
        plan = plan_of(path, "warc")
        whole, _ = read_cut(plan)
        assert (whole.texts, whole.rejects) == (texts, [])
        places = [[at] for at in range(1, plan.size, 2)]
        places += [sorted(drawn.sample(range(1, plan.size), 6)) for _ in range(50)]
        for cuts in some_of(places):
            found, meet = read_cut(plan, cuts, batch=drawn.choice([1, 1 << 20]))
            assert meet
            assert (found.texts, found.ids, found.rejects) == (texts, whole.ids, [])
    placed = [place for place, _ in read_cut(plan, [plan.size // 2])[0].documents]
    assert placed[0] is not None
    assert placed[-1] is None


def test_truncation_anywhere(tmp_path: Path) -> None:
    records = [INFO, *(named(text, i) for i, text in enumerate(TEXTS[:3]))]
    content = b"".join(records)
    sound: set[int] = set()
    for number in range(len(records)):
        end = sum(map(len, records[: number + 1]))
        sound.update(range(end - 4, end + 1))
    path = tmp_path / "x.warc"
    for pack in (bytes, gzip.compress):
        packed = pack(content)
        for size in range(1 if pack is bytes else 20, len(packed)):
            path.write_bytes(packed[:size])
            found = read(path)
            assert found.texts == TEXTS[: len(found.texts)]
            if pack is bytes:
                assert len(found.rejects) == (size not in sound)
            else:
                assert [r.reason for r in found.rejects] == ["broken compressed stream"]


def test_garbage_anywhere_between_records(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    for seed in range(150):
        drawn = random.Random(seed)
        content, garbage = b"", []
        for number in range(8):
            content += named(f"text {number}\n", number)
            if drawn.random() < 0.5:
                alphabet = b"WARC/1.0\r\n:" if drawn.random() < 0.5 else bytes(range(256))
                junk = bytes(drawn.choices(alphabet, k=drawn.randrange(1, 60)))
                junk = b"x" + junk.replace(b"WARC/1.", b"") + b"x\r\n\r\n"
                content += junk
                garbage.append(junk)
        path.write_bytes(content)
        found = read(path, batch=drawn.choice([1, 100, 1 << 20]))
        assert found.texts == [f"text {number}\n" for number in range(8)]
        assert [r.data for r in found.rejects] == garbage
        assert all(content[r.offset :].startswith(r.data) for r in found.rejects)


def test_what_is_too_large_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(warc, "_KEPT_BYTES", 1000)
    monkeypatch.setattr(warc, "MAX_HEADER_BYTES", 3000)
    path = tmp_path / "x.warc"
    long = b"x" * 300_000
    passed = record(long, "response", Content_Type="application/http")
    path.write_bytes(
        b"".join(
            [
                *(named("a", 1), passed, named("b", 2), record(long), named("c", 3)),
                *(record(b"x", no="x" * 4000), named("d", 4)),
            ]
        )
    )
    for batch in (1, 1 << 20):
        found = read(path, batch=batch)
        assert found.texts == ["a", "b", "c", "d"]
        assert [r.reason for r in found.rejects] == ["record too long", "broken WARC header"]
        assert found.rejects[0].bytes_total == len(record(long))
        assert found.rejects[0].data == record(long)[: 64 << 10]
    path.write_bytes(gzip.compress(named("a", 1) + passed[:2000]))
    (reject,) = read(path).rejects
    assert "beyond the file's end" in reject.detail
