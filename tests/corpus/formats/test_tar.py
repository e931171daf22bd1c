"""tar: each file a document, whatever its name, and a broken archive told of."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
from pathlib import Path
from typing import Any

import corpus_reading
import pytest
from corpus_reading import BOM, Found, read_file
from guessed_cuts import plan_of, read_cut
from some_of import SomeOf

from bpe_beam.corpus.formats import tar as tar_members
from bpe_beam.corpus.read_settings import ReadSettings

pytestmark = pytest.mark.quick

FILES = [
    ("a/one.txt", b"one"),
    ("a/empty", b""),
    ("x" * 300, "é€\r\n\n".encode()),
    ("../../etc/passwd", b"up"),
    ("/absolute\n", BOM + b"marked"),
    ("é/" + "语" * 80, b"\0 nul \xc3\xa9" * 500),
    ("a/one.txt", b"twice"),
]


def made(files: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT, **more: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.pax_headers = more
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def read(path: Path, **options: Any) -> Found:
    return read_cut(plan_of(path, "tar"), **options)[0]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("name", ["x.tar", "x.tgz", "x.tar.gz"])
def test_files_are_documents(tmp_path: Path, form: int, name: str) -> None:
    path = tmp_path / name
    content = made(FILES, form)
    path.write_bytes(content if name == "x.tar" else gzip.compress(content))
    for batch in (1, 1 << 20):
        found = read_file(path, batch=batch)
        assert found.texts == [data.removeprefix(BOM).decode() for _, data in FILES]
        assert found.ids == [f"{name}:{member}" for member, _ in FILES]
        assert not found.rejects
    offsets = [place for place, _ in found.documents]
    assert offsets == sorted(set(offsets))
    assert all(offset % 512 == 0 for offset in offsets)
    assert set(found.sources) == {name}
    assert set(read_file(path, source_field="x").sources) == {"other"}


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (
            tarfile.DIRTYPE,
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.CHRTYPE,
            tarfile.FIFOTYPE,
            tarfile.REGTYPE,
        ):
            info = tarfile.TarInfo(f"{kind!r}")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    (tmp_path / "x.tar").write_bytes(out.getvalue())
    found = read_file(tmp_path / "x.tar")
    assert (found.ids, found.texts, found.rejects) == (["x.tar:b'0'"], [""], [])


def test_bad_files_alone_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_members, "MAX_RECORD_BYTES", 5000)
    files = [("a", b"a"), ("bad", b"x\xff"), ("long", b"y" * 5001), ("b", b"b")]
    content = made(files)
    (tmp_path / "x.tar").write_bytes(content)
    found = read_file(tmp_path / "x.tar")
    assert found.texts == ["a", "b"]
    assert [(r.offset, r.reason, r.detail, r.data, r.bytes_total) for r in found.rejects] == [
        (1024, "invalid UTF-8", "at byte 1 of bad", b"x\xff", 2),
        (2048, "record too long", "long", b"", 5001),
    ]


def test_what_stands_behind_the_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    first = made([("a", b"a")])
    for behind, found_texts in (
        (b"\0" * 30_000, 0),
        (made([("b", b"b")]), 1),
        (b"\0" * 99 + b"x", 1),
    ):
        path.write_bytes(first + behind)
        found = read(path)
        assert found.texts == ["a"]
        assert [r.reason for r in found.rejects] == ["broken archive"] * found_texts
    # an archive without its mark may have lost files
    path.write_bytes(first[:1024])
    found = read(path)
    assert found.texts == ["a"]
    assert [(r.reason, r.offset) for r in found.rejects] == [("broken archive", 1024)]


def test_only_the_slice_at_the_start_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(made(FILES))
    plan = plan_of(path, "tar")
    found = corpus_reading.read(
        plan, corpus_reading.cut(plan, [700, 5000]), ReadSettings(), 1 << 20
    )
    assert found.documents == read(path).documents


def test_truncation_and_damage(tmp_path: Path, some_of: SomeOf) -> None:
    path = tmp_path / "x.tar"
    content = made(FILES)
    texts = [data.removeprefix(BOM).decode() for _, data in FILES]
    end = len(content.rstrip(b"\0"))
    for pack in (bytes, gzip.compress):
        packed = pack(content)
        for size in some_of(range(0 if pack is bytes else 20, len(packed), 7)):
            path.write_bytes(packed[:size])
            found = read(path)
            assert found.texts == texts[: len(found.texts)]
            if pack is not bytes or size < end:
                assert len(found.rejects) == 1
    for seed in some_of(range(300)):
        drawn = random.Random(seed)
        damaged = bytearray(content)
        for _ in range(drawn.randrange(1, 4)):
            at = drawn.randrange(len(content))
            damaged[at : at + 8] = bytes(drawn.choices(b"0179\0\x80\xff", k=8))[: len(damaged) - at]
        path.write_bytes(damaged[: len(content)])
        found = read(path)
        assert len(found.texts) + len(found.rejects) <= len(FILES) + 2


def test_headers_that_lie(tmp_path: Path) -> None:
    """Sizes that are negative or absurd, for files and for what describes them."""
    path = tmp_path / "x.tar"
    for size in (-1, -(1 << 40), 1 << 40):
        for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            info = tarfile.TarInfo("x")
            info.type, info.size = kind, size
            header = info.tobuf(tarfile.GNU_FORMAT)
            path.write_bytes(made([("a", b"a")])[:1024] + header + b"y" * 5000)
            found = read(path)
            assert found.texts == ["a"]
            assert "broken archive" in {r.reason for r in found.rejects}
        path.write_bytes(made([("a", b"a"), ("b", b"b")], size=f"{size}"))
        found = read(path)
        assert len(found.texts) <= 2
        assert found.rejects


def test_files_that_are_passed_over_in_folders(tmp_path: Path) -> None:
    names = [
        "./a.txt",
        "../b",
        ".hidden",
        "x/.git/c",
        "__MACOSX/d",
        "x/._a.txt",
        "README.md",
        "e/LICENSE",
    ]
    path = tmp_path / "x.tar"
    path.write_bytes(made([(name, name.encode()) for name in names]))
    assert read_file(path).texts == ["./a.txt", "../b"]


@pytest.mark.parametrize(
    ("content", "reason", "detail"),
    [
        ("a".encode("utf-16"), "invalid UTF-8", "x begins with the byte order mark of UTF-16"),
        ("Привет мир".encode("utf-16-le"), "not text", "x seems to be UTF-16LE; unpack"),
        ("文\n".encode("utf-16-be"), "invalid UTF-8", "x seems to be UTF-16BE"),
        (bytes(600), "not text", "x is binary; unpack"),
        (b'{"text": "a"}\n{"text": "b"}\n', "not text", "x is JSON Lines; unpack"),
    ],
)
def test_files_that_are_not_text_are_rejected(
    tmp_path: Path, content: bytes, reason: str, detail: str
) -> None:
    texts = [("a", b'{"text": "one object"}\n'), ("b", b'{\n "text": "a"\n}\n'), ("c", b"a NUL \0")]
    (tmp_path / "x.tar").write_bytes(made([("x", content), *texts]))
    found = read_file(tmp_path / "x.tar")
    assert found.texts == [text.decode() for _, text in texts]
    (reject,) = found.rejects
    assert (reject.reason, reject.detail.startswith(detail)) == (reason, True)
