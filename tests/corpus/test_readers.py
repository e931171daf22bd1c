"""Reading: compression and bundling change nothing, and every bad record has a place."""

from __future__ import annotations

import gzip
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from corpus_reading import BOM, STORAGE, Found, expected_text, read, read_file

from bpe_beam import _native
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.reading import records as records_module
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, UsageError

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("separator", ["\n\n", "aa", "aabaa"])
def test_the_phase_of_a_long_run_is_found_far_back(tmp_path: Path, separator: str) -> None:
    raw = separator.encode()
    content = b"start" + raw[:1] + raw[:1] * 100_000 + raw * 20_001 + raw[:1] + b"end" + raw
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    good, _ = expected_text(content, raw)
    for cut in (1, 5, 6, 7, 8, 4096, 50_001, 50_002, 100_003, 100_004, len(content) - 3):
        assert read_file(path, cuts=[cut], document_separator=separator).documents == good


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\rc\r\n\r\n\r", ["a", "b\rc", "", "\r"]),
        (BOM, []),
        (BOM + b"\n", [""]),
        (BOM + b"a\n" + BOM + b"b", ["a", "\ufeffb"]),
        (b"\0\n" + "\u2028\x85".encode(), ["\0", "\u2028\x85"]),
    ],
)
def test_lines(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    (tmp_path / "x").write_bytes(content)
    assert read_file(tmp_path / "x").texts == expected


def test_a_file_as_a_document(tmp_path: Path) -> None:
    for content, expected in ((b"", [""]), (b"a\n\nb\r\n", ["a\n\nb\r\n"]), (BOM + b"x", ["x"])):
        for name, pack in (("x", bytes), ("x.gz", gzip.compress)):
            (tmp_path / name).write_bytes(pack(content))
            for batch in (1, 1 << 20):
                found = read_file(tmp_path / name, document_separator="file", batch=batch)
                assert found.texts == expected
                assert not found.rejects
    (tmp_path / "x").write_bytes(b"good\nbad \xff\ngood\n")
    (reject,) = read_file(tmp_path / "x", document_separator="file").rejects
    assert (reject.offset, reject.reason, reject.bytes_total) == (0, "invalid UTF-8", 16)


@pytest.mark.parametrize("code", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.txt.gz"])
def test_another_encoding_is_named(tmp_path: Path, code: str, name: str) -> None:
    data = "".join(f"line {i}\n" for i in range(2000)).encode(code)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(DataError, match=rf"{name} begins with the byte order mark of UTF-16"):
        read_file(tmp_path / name)


def test_rejects_of_text_have_places(tmp_path: Path) -> None:
    bad = [
        b"\xff",
        b"abc\x80",
        b"\xc0\x80",  # overlong
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xed\xa0\x80",  # surrogates
        b"\xed\xbf\xbf",
        b"\xf4\x90\x80\x80",  # above U+10FFFF
        b"\xf5\x80\x80\x80",
        b"\xe2\x82",  # cut
        b"\xf0\x9f\x98",
        b"x" * 70_000 + b"\xff",
    ]
    good = ["\x7f\x80", "\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff", "", "a"]
    content = b""
    expected = []
    for i, record in enumerate(bad):
        content += good[i % 4].encode() + b"\n"
        expected.append((len(content), 2 * i + 2, record))
        content += record + b"\r\n"
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    found = read_file(path, batch=100)
    assert found.texts == [good[i % 4] for i in range(len(bad))]
    assert [(r.offset, r.line, r.data) for r in found.rejects] == [
        (offset, line, record[: 64 << 10]) for offset, line, record in expected
    ]
    assert {r.reason for r in found.rejects} == {"invalid UTF-8"}
    assert found.rejects[1].detail == "at byte 3 of the record"
    assert found.rejects[-1].bytes_total == 70_001
    # lines have no numbers where those before were not counted
    assert [r.line for r in read_file(path, cuts=[4]).rejects][:3] == [None] * 3
    found = read_file(path, document_separator="\r\n")
    assert [r.line for r in found.rejects] == [None] * len(bad)


def test_all_of_utf8_is_checked_as_python_does() -> None:
    def accepted(data: bytes) -> bool:
        return len(_native.text_records(data, b"", 0, 0, 1, True, 1, 100, "", 0)[7]) == 1

    def is_utf8(data: bytes) -> bool:
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    edges = [0, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    for lead in range(256):
        for second in range(256):
            for rest in (b"", b"\x80", b"\x80\x80"):
                data = bytes([lead, second]) + rest
                assert accepted(data) == is_utf8(data), data
    for lead in range(0xC0, 0x100):
        for second in edges:
            for third in edges:
                for fourth in edges:
                    data = bytes([lead, second, third, fourth])
                    assert accepted(data) == is_utf8(data), data
    for before in range(40):  # wherever the words of the fast path begin
        for flaw in (b"\x80", b"\xe2\x82", b"\xf0\x9f\x98"):
            assert not accepted(b"x" * before + flaw + b"y" * (40 - before))
            assert accepted(b"x" * before + "€".encode() + b"y" * (40 - before))


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl"])
def test_compression_changes_nothing(tmp_path: Path, name: str) -> None:
    lines = [f'{{"id": {i}, "text": "doc {i} é"}}'.encode() for i in range(5000)]
    lines[1234] = b"\xff\xfe"
    lines[4000] = b""
    content = b"\n".join(lines)
    half = len(content) // 2 + 3
    frames = zstandard.ZstdCompressor(write_checksum=True)
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"
    packed = {
        "": content,
        ".gz": gzip.compress(content),
        ".members.gz": b"".join(
            gzip.compress(part) for part in (b"", content[:half], content[half:])
        ),
        ".padded.gz": gzip.compress(content) + bytes(1000),
        ".many.gz": b"".join(gzip.compress(line + b"\n") for line in lines[:-1])
        + gzip.compress(lines[-1]),
        ".zst": zstandard.compress(content),
        ".frames.zst": skippable
        + frames.compress(content[:half])
        + skippable
        + frames.compress(b"")
        + frames.compress(content[half:])
        + skippable,
        ".many.zst": b"".join(frames.compress(line + b"\n") for line in lines[:-1])
        + frames.compress(lines[-1]),
        ".unsized.zst": b"".join(
            (lambda c: (c.compress(content), c.flush()))(zstandard.ZstdCompressor().compressobj())
        ),
    }
    results = {}
    for ending, data in packed.items():
        path = tmp_path / (name + ending)
        path.write_bytes(data)
        for batch in (1000, 1 << 20):
            found = read_file(
                path, batch=batch, input_format=name.partition(".")[2].replace("txt", "text")
            )
            results[ending, batch] = (
                found.documents,
                [(r.offset, r.line, r.reason, r.data) for r in found.rejects],
            )
    assert len(results["", 1000][0]) in (4998, 4999)
    assert len(results["", 1000][1]) == 1
    for key, result in results.items():
        assert result == results["", 1000], key


def test_many_files_make_few_batches_with_sources_and_places(tmp_path: Path) -> None:
    for i in range(300):
        (tmp_path / f"{i:03}.txt").write_bytes(b"one\ntwo\n" if i % 2 else b"")
    plan = make_plan(STORAGE, [f"{tmp_path}/*"])
    found = read(plan, plan.splits, ReadSettings(), 1 << 20)
    (batch,) = found.batches
    assert batch.column("source").to_pylist() == [
        f"{i:03}.txt" for i in range(1, 300, 2) for _ in range(2)
    ]
    assert batch.column("place").to_pylist() == [
        i << 44 | offset for i in range(1, 300, 2) for offset in (0, 4)
    ]
    assert len(read(plan, plan.splits, ReadSettings(), 1000).batches) > 5


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\n" * 300_000)
    for batch_bytes in (1 << 20, 8 << 20):
        found = read_file(path, batch=batch_bytes)
        assert found.texts == [""] * 300_000
        assert max(len(batch) for batch in found.batches) <= 65_536
    path.write_bytes(b"some words in a line\n" * 100_000)
    assert max(batch.nbytes for batch in read_file(path, batch=100_000).batches) < 400_000


@pytest.mark.parametrize("separator", ["\n", "<|endoftext|>", "file"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_record_that_is_too_long(
    tmp_path: Path, separator: str, compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "MAX_RECORD_BYTES", 100_000)
    for length in (100_000, 100_001, 100_014, 500_000, 3_000_000):
        between = b"" if separator == "file" else separator.encode()
        records = [b"x" * length] if separator == "file" else [b"before", b"x" * length, b"after"]
        content = between.join(records)
        path = tmp_path / "x"
        path.write_bytes(gzip.compress(content) if compressed else content)
        for batch in (1000, 70_000, 1 << 20, 8 << 20):
            found = read_file(path, batch=batch, document_separator=separator)
            if length == 100_000:
                assert found.texts == [record.decode() for record in records]
                continue
            assert found.texts == [r.decode() for r in records if len(r) < 10]
            (reject,) = found.rejects
            assert reject.reason == "record too long"
            assert reject.offset == content.index(b"xx")
            assert reject.line == (2 if separator == "\n" else None)
            assert reject.bytes_total == length
            assert reject.data == b"x" * (64 << 10)


def test_a_file_that_changed_is_an_error(tmp_path: Path) -> None:
    for name, content in (
        ("x.txt", b"one\ntwo\nthree\n"),
        ("x.gz", gzip.compress(b"one\n")),
        ("x.zst", zstandard.compress(b"one\n")),
    ):
        path = tmp_path / name
        for changed, how in ((content[:-3], "reading ended at byte"), (content + b"x", "longer")):
            path.write_bytes(content)
            plan = make_plan(STORAGE, [str(path)])
            # as where a store tells no tag
            untold = replace(plan, files=tuple(replace(file, tag="") for file in plan.files))
            path.write_bytes(changed)
            said = rf"{name} had {len(content)} bytes .*"
            with pytest.raises(DataError, match=said + f"has {len(changed)} now"):
                read(plan, plan.splits, ReadSettings(), 1 << 20)
            with pytest.raises(DataError, match=said + how):
                read(untold, plan.splits, ReadSettings(), 1 << 20)
        path.unlink()
        with pytest.raises(DataError, match=rf"cannot read .*{name}: No such file"):
            read(plan, plan.splits, ReadSettings(), 1 << 20)


def test_files_on_another_file_system() -> None:
    STORAGE.write_bytes("memory://readers/a.txt", b"one\n\ntwo" * 1000)
    plan = make_plan(STORAGE, ["memory://readers/*"], range_bytes=500)
    assert len(plan.splits) > 10
    found = read(plan, plan.splits, ReadSettings(document_separator="\n\n"), 1 << 20)
    assert found.texts == ["one", *["twoone"] * 999, "two"]


def test_threads_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(b'{"text": "a %d"}\n{\n' % i for i in range(20_000)))
    plan = make_plan(STORAGE, [str(path)], range_bytes=50_000)
    alone = read(plan, plan.splits, ReadSettings(), 10_000)
    results: list[Found] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(read(plan, plan.splits, ReadSettings(), 10_000))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.documents for found in results] == [alone.documents] * 3
    assert [found.bad for found in results] == [alone.bad] * 3


def test_a_file_too_large_for_places_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "MAX_FILE_BYTES", 1000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a line\n" * 1000))
    with pytest.raises(DataError, match=r"x\.gz: it decompresses to over 1000 bytes"):
        read_file(tmp_path / "x.gz", batch=100)


def test_settings_are_checked() -> None:
    for options, message in (
        ({"input_format": "xml"}, "input-format is 'xml'"),
        ({"document_separator": ""}, "document-separator is ''"),
        ({"text_field": ""}, "text-field is ''"),
        ({"id_field": ""}, "id-field is ''"),
        ({"id_field": "\ud800"}, "not text"),
    ):
        with pytest.raises(UsageError, match=message):
            ReadSettings(**options)


def test_the_plan_knows_the_format_not_the_settings(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"text": "a"}\n')
    plan = Plan(
        str(tmp_path), (InputFile("x", 14, "jsonl", "none"),), (Split(0, (Slice(0, 0, 14),)),)
    )
    assert read(plan, plan.splits, ReadSettings(), 1000).texts == ["a"]
