"""What a file is, by its first bytes: read, or refused with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import sqlite3
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest
import zstandard
from compressors import COMPRESSORS, LINES
from corpus_reading import read_file

from bpe_beam.corpus.file_types import (
    HEAD_BYTES,
    compression_of,
    first_bytes,
    format_of,
    is_binary,
    other_encoding,
)
from bpe_beam.errors import DataError, UsageError

pytestmark = pytest.mark.quick

TABLE = pa.table({"text": ["a", "b"]})


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_every_compression_is_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.jsonl.{ending}"
    data = COMPRESSORS[ending](LINES)
    path.write_bytes(data)
    assert len(read_file(path).documents) == 9000
    if ending != "lzma":  # which has no second stream
        path.write_bytes(data + data)
        assert len(read_file(path).documents) == 18000
    path.write_bytes(COMPRESSORS[ending](b""))
    found = read_file(path)
    assert (found.documents, found.rejects) == ([], [])


@pytest.mark.parametrize("log", [27, 28, 30, 31])
def test_zstd_with_a_large_window(tmp_path: Path, log: int) -> None:
    path = tmp_path / "a.jsonl.zst"
    options = zstandard.ZstdCompressionParameters(window_log=log, hash_log=12, chain_log=12)
    stream = zstandard.ZstdCompressor(compression_params=options).compressobj()
    path.write_bytes(stream.compress(LINES) + stream.flush())
    assert zstandard.get_frame_parameters(path.read_bytes()).window_size == 1 << log
    found = read_file(path)
    assert (len(found.documents), found.rejects) == (9000, [])


def test_zstd_with_a_dictionary_says_so(tmp_path: Path) -> None:
    trained = zstandard.train_dictionary(4096, [LINES[i : i + 500] for i in range(0, 200_000, 500)])
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor(dict_data=trained).compress(LINES))
    (reject,) = read_file(path).rejects
    assert f"was compressed with dictionary {trained.dict_id()}" in reject.detail
    assert reject.lost_bytes == path.stat().st_size


def test_lzma_is_told_from_text() -> None:
    for dictionary in (1 << 16, 1 << 23, 3 << 20):
        filters = [{"id": lzma.FILTER_LZMA1, "dict_size": dictionary}]
        data = lzma.compress(b"a" * 100, format=lzma.FORMAT_ALONE, filters=filters)
        assert compression_of(data[:16]) == "lzma"
    assert compression_of(b"]\n[1, 2, 3]\n[4, 5]") == "none"
    assert compression_of(b"]") == "none"


def other_files() -> dict[str, bytes]:
    """Files of kinds that are not read, as others write them."""
    orc, array = io.BytesIO(), io.BytesIO()
    pyarrow.orc.write_table(TABLE, orc)
    np.save(array, np.arange(3))
    database = sqlite3.connect(":memory:")
    database.execute("create table texts (text)")
    return {
        "Feather version 1": b"FEA1\x00\x00",
        "ORC": orc.getvalue(),
        "NumPy": array.getvalue(),
        "SQLite": database.serialize() if hasattr(database, "serialize") else b"SQLite format 3\0",
        "pickle": pickle.dumps(["a text"], protocol=4),
        "Avro": b"Obj\x01\x04\x14avro.codec",
        "7z": b"7z\xbc\xaf\x27\x1c\x00\x04",
        "RAR": b"Rar!\x1a\x07\x01\x00",
        "ZIP": b"PK\x03\x04\x14\x00",
        r"compress \(.Z\)": b"\x1f\x9d\x90abc",
        "lzip": b"LZIP\x01\x0c",
        "lzop": b"\x89LZO\x00\r\n\x1a\n\x10\x30",
        "Snappy": b"\xff\x06\x00\x00sNaPpY",
        "legacy": b"\x02\x21\x4c\x18abcd",
        "encrypted Parquet": b"PARE\x15\x00",
        "HDF5": b"\x89HDF\r\n\x1a\n",
        "PDF": b"%PDF-1.7\n",
        "PNG": b"\x89PNG\r\n\x1a\n",
        "JPEG": b"\xff\xd8\xff\xe0",
    }


@pytest.mark.parametrize("kind", other_files())
def test_other_files_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(other_files()[kind])
    with pytest.raises(UsageError, match=rf"a\.jsonl' is .*{kind}"):
        read_file(path)


@pytest.mark.parametrize("ending", ["br", "snappy", "lzo", "lzo_deflate"])
def test_compressions_without_magic_are_refused_by_the_ending(ending: str) -> None:
    with pytest.raises(UsageError, match="is not read; compress it by gzip or zstd instead"):
        format_of(f"a.jsonl.{ending}", b"\x8b\x03\x80abc", "none", "auto")
    assert format_of(f"a.{ending}", b"abc", "none", "text") == "text"


def test_texts_that_begin_alike_are_text() -> None:
    for head in (
        b"ORCHARDS AND MORE",
        b"PARENTS AND CHIL",
        b"FEA1 is a name\nof",
        b"7z is an archive",
        b"Object 1 is red.",
    ):
        assert format_of("a.txt", head, compression_of(head), "auto") == "text"


def test_a_column_that_is_encrypted_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    keys: dict[str, bytes] = {}

    class Keys(encryption.KmsClient):
        def wrap_key(self, key: bytes, name: str) -> str:
            keys[name] = key
            return name

        def unwrap_key(self, wrapped: str, name: str) -> bytes:
            return keys[name]

    factory = encryption.CryptoFactory(lambda config: Keys())
    chosen = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["text"]}, plaintext_footer=True
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), chosen)
    with pq.ParquetWriter(path, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)
    with pytest.raises(DataError, match=r"a\.parquet is encrypted Parquet"):
        read_file(path)


def tar_of(texts: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return stream.getvalue()


def arrow_stream() -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return stream.getvalue()


def warc_of(texts: list[bytes]) -> bytes:
    head = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: %d\r\n\r\n"
    return b"".join(head % len(text) + text + b"\r\n\r\n" for text in texts)


TEXTS = ["one", "two {}", '{"three"', "four"]
CONTENTS = {
    "jsonl": b"".join(
        json.dumps({"id": i, "text": t}).encode() + b"\n" for i, t in enumerate(TEXTS)
    ),
    "tar": tar_of({f"{i}/a": t.encode() for i, t in enumerate(TEXTS)}),
    "warc": warc_of([t.encode() for t in TEXTS]),
}
CODECS = {"": lambda data: data, **COMPRESSORS}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", CONTENTS)
def test_the_content_decides_whatever_the_name_is(tmp_path: Path, kind: str, codec: str) -> None:
    data = CODECS[codec](CONTENTS[kind])
    names = ["part-00000", "x.jsonlines", "x.txt", "x.txt.gz", "x.tbz2", "x.txz", "x.tzst"]
    names += ["x.tar.1", "x.tar.gz.part1", "x.csv", "x.jsonl.zst", "x.warc.gz", "x.log"]
    for name in names:
        (tmp_path / name).write_bytes(data)
        found = read_file(tmp_path / name)
        assert (found.texts, found.rejects) == (TEXTS, []), name


def test_archives_of_all_forms_are_recognised(tmp_path: Path) -> None:
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        (tmp_path / "x").write_bytes(tar_of({"n" * 99 + "/" + "é" * 9: b"a"}, form))
        assert read_file(tmp_path / "x").texts == ["a"]


def test_the_settings_win_over_the_content(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(CONTENTS["jsonl"])
    texts = read_file(tmp_path / "x.jsonl", input_format="text").texts
    assert texts == CONTENTS["jsonl"].decode().splitlines()


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (b'{"text": "a"}', "jsonl"),
        (b'\xef\xbb\xbf\n  {"text": "a"}\r\n', "jsonl"),
        (b'{"text": "a", "b": NaN}\n{"text": "b"\n{"text": "c"}\n', "jsonl"),
        (b'{"text": "' + b"a" * 5000, "jsonl"),
        (b'{"text": a}\n', "text"),
        (b'{"text": "a"} is an object\n', "text"),
        (b'{"text": "a"}\na line\nanother\n', "text"),
        (b"{\n}\n", "text"),
        (b"{}\n{}\n", "text"),
        (b"[1, 2]\n[3]\n", "text"),
        (b'{"text": "a"}{"text": "b"}\n', "jsonl"),
        (b'{"text": "a"},\n{"text": "b"},\n', "jsonl"),
        (b'{"text":\n"a"}\n', "jsonl"),
        (b"[Music]\na\n", "text"),
        (b"a NUL \0 in a text\n", "text"),
        (b"a\0b\n", "text"),
        (b"WARC/2 is a name", "text"),
        (b"a" * 600, "text"),
        (b"", "text"),
    ],
)
def test_lines_of_objects_are_json_lines(first: bytes, kind: str) -> None:
    assert format_of("part-00000", first[:HEAD_BYTES], "none", "auto") == kind


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (
            "a.jsonl.gz",
            gzip.compress(gzip.compress(LINES, mtime=0), mtime=0),
            "within gzip is gzip again",
        ),
        ("a.gz", gzip.compress(zstandard.compress(LINES), mtime=0), "within gzip is zstd again"),
        ("a.gz", gzip.compress(b"PK\x03\x04\x14\0", mtime=0), "within gzip is a ZIP archive"),
        ("a.gz", gzip.compress(b'[{"text": "a"}]', mtime=0), "is an array"),
        ("a", b'[\n {"text": "a"},\n {"text": "b"}\n]', "is an array"),
        ("a.jsonl", "é".encode("utf-16"), "begins with the byte order mark of UTF-16"),
        ("a.jsonl", '{"text": "a"}'.encode("utf-16-le"), "seems to be UTF-16"),
        ("a.csv", "id,text\n".encode("utf-16-be"), "seems to be UTF-16"),
        ("a", b"WARC/0.18\nWARC-Type: response\n", r"is WARC/0\.18, which is not read"),
        ("a.gz", gzip.compress(b"WARC/0.9\r\n", mtime=0), r"is WARC/0\.9, which is not read"),
        ("a", bytes(10240), "begins with zeros, as an empty tar archive"),
        ("a", bytes(3), "begins with zeros"),
        ("a", "Привет мир\n".encode("utf-16-le"), "seems to be UTF-16LE: .* -f utf-16le "),
        ("a.csv", "文本,编号\n一,二\n".encode("utf-16-be"), "seems to be UTF-16BE"),
        ("a.txt", b"ab\n".decode().encode("utf-32-le"), "seems to be UTF-32LE"),
        ("a.jsonl", '{"text": 1}'.encode("utf-32-be"), "seems to be UTF-32BE"),
        ("a", "é".encode("utf-32"), "begins with the byte order mark of UTF-32"),
        ("a.txt", b"GIF89a\x10\0\x10\0\xf0\0\0", "seems to be binary"),
        ("a", b"GGUF\3\0\0\0\x91\0\0\0", "seems to be binary"),
        ("a.parquet", gzip.compress(b"text", mtime=0), "is gzip, not parquet"),
        ("a.arrow", zstandard.compress(arrow_stream()), "is arrow within zstd"),
        ("a", b'{\n "text": "a"\n}\n', "is an array, or an object over several lines"),
        ("a", b'{\n "text": "a' + b"a" * 5000, "is an array, or an object over several lines"),
        ("a", b'["a", "b"]\n', "is an array"),
        ("a", b'[\n  "a' + b"a" * 5000, "is an array"),
        ("a.tar.gz.part2", b"\x8b\x03\x80abc", "seems to be a part of a file"),
        ("a.tar.2", b"ab\0\0\0\0", "seems to be a part of a file"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
    ],
)
def test_causes_are_named(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=rf"/{name}' {why}"):
        read_file(tmp_path / name)


def test_a_part_of_a_table_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "x.csv.1").write_bytes(b"id,text\n1,one\n")
    assert read_file(tmp_path / "x.csv.1").texts == ["one"]


@pytest.mark.parametrize("name", ["part-00000", "x.txt", "x.parquet", "x.jsonl"])
def test_a_stream_of_arrow_is_recognised(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(arrow_stream())
    assert read_file(tmp_path / name).texts == ["a", "b"]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.tar"])
def test_a_file_without_bytes_is_called_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (reject,) = read_file(tmp_path / name).rejects
    assert (reject.detail, reject.lost_bytes) == ("the file is empty", 1)


def test_an_empty_archive_has_no_documents(tmp_path: Path) -> None:
    for name, data in (("a.tar", tar_of({})), ("a.tbz2", bz2.compress(tar_of({})))):
        (tmp_path / name).write_bytes(data)
        found = read_file(tmp_path / name)
        assert (found.documents, found.rejects) == ([], [])


def skippable(data: bytes) -> bytes:
    return b"\x50\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data


@pytest.mark.parametrize("codec", ["lz4", "zst"])
def test_frames_to_be_skipped(tmp_path: Path, codec: str) -> None:
    frames = skippable(b"abc") + skippable(b"") + skippable(bytes(5000))
    data = COMPRESSORS[codec](CONTENTS["jsonl"])
    for content, count in ((frames + data, 1), (data + frames + data, 2)):
        (tmp_path / "x").write_bytes(content)
        found = read_file(tmp_path / "x")
        assert (found.texts, found.rejects) == (TEXTS * count, [])


@pytest.mark.parametrize("codec", ["bz2", "lz4", "zst", "xz", "lzma", "gz"])
def test_blocks_that_are_longer_than_the_first_bytes(codec: str) -> None:
    size = 3 << (16 if codec in ("xz", "lzma") else 19)  # these two are slow, and have no blocks
    texts = random.Random(1).randbytes(size).hex(",", 1000).split(",")
    data = CONTENTS["jsonl"] + b"".join(b'{"text": "%s"}\n' % text.encode() for text in texts)
    stored = COMPRESSORS[codec](data)
    reads: list[int] = []

    def read_head(count: int) -> bytes:
        reads.append(count)
        return stored[:count]

    compression, head = first_bytes(read_head, "part-0", len(stored))
    assert format_of("part-0", head, compression, "auto") == "jsonl"
    assert reads[-1] < len(stored) or codec == "lz4"


LANGUAGES = {
    "ru": "Привет мир\nдлинный мир\n",
    "el": "Καλημέρα κόσμε\n",
    "hi": "नमस्ते दुनिया\nदूसरी पंक्ति\n",
    "he": "שלום עולם\n",
    "th": "สวัสดี ชาวโลก\n",
    "ja": "これは日本語です。\n二行目。\n",
    "zh": "文本,编号\n一,二\n",
    "emoji": "Hi 😀 there\n😀\n",
    "en": "ab\n",
}


@pytest.mark.parametrize("name", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("times", [1, 1000])
def test_encodings_without_a_mark_are_named(name: str, language: str, times: int) -> None:
    data = (LANGUAGES[language] * times).encode(name)
    assert other_encoding(data[:HEAD_BYTES]) == f"seems to be {name}"
    assert other_encoding((LANGUAGES[language] * times).encode()[:HEAD_BYTES]) is None


@pytest.mark.parametrize("name", ["UTF-16", "UTF-32"])
def test_marks(name: str) -> None:
    for order in ("le", "be"):
        data = "\ufeffa".encode(f"{name}-{order}")
        assert other_encoding(data) == f"begins with the byte order mark of {name}"


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (("é" * 5000).encode()[: HEAD_BYTES - 1], False),
        (b"a NUL \0 in a text\n", False),
        (b"latin \xe9 and a NUL \0 " + b"a" * 100, False),
        (bytes(range(256)), True),
        (bytes(3), True),
        (b"\x1b[1mcolour\x1b[0m\b" * 9, False),
    ],
    ids=range(7),
)
def test_binary(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary
    assert other_encoding(data) is None
