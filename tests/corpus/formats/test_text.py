"""Text files: lines, other separators, whole files as documents."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from corpus_reading import BOM, read_file

from bpe_beam import _native
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick


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
@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.txt.gz", "x.csv", "x.tsv", "x.warc", "x"])
def test_another_encoding_is_named(tmp_path: Path, code: str, name: str) -> None:
    data = "".join(f"line {i}\n" for i in range(2000)).encode(code)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(
        UsageError, match=rf"{name}' begins with the byte order mark of {code.upper()}"
    ):
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


@pytest.mark.parametrize(
    ("separator", "expected"),
    [
        ("\n\n", ["one\r\ntwo", "three", "\r\nfour"]),
        ("\r\n\r\n", ["one\r\ntwo", "three", "\r\nfour"]),
        ("\ntwo\n", ["one", "\r\nthree\r\n\r\n\r\nfour"]),
    ],
)
def test_paragraphs_of_lines_that_end_with_crlf(
    tmp_path: Path, separator: str, expected: list[str]
) -> None:
    data = b"one\r\ntwo\r\n\r\nthree\r\n\r\n\r\nfour"
    (tmp_path / "x").write_bytes(data)
    (tmp_path / "x.gz").write_bytes(gzip.compress(data))
    assert read_file(tmp_path / "x.gz", document_separator=separator).texts == expected
    for cuts in ([], *([cut] for cut in range(1, len(data))), range(1, len(data))):
        assert read_file(tmp_path / "x", cuts=cuts, document_separator=separator).texts == expected
    long = b"a" * 200_000  # longer than what is read at once
    (tmp_path / "x").write_bytes(long + b"\r\n\r\nb")
    assert read_file(tmp_path / "x", document_separator="\n\n").texts == [long.decode(), "b"]
    (tmp_path / "x").write_bytes(b"a\nb\r\n\r\nc\n\nd")
    assert read_file(tmp_path / "x", document_separator="\n\n").texts == ["a\nb\r\n\r\nc", "d"]
