"""Parquet: every encoding, compression and page version that pyarrow writes, read back equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_reading import read_file

pytestmark = pytest.mark.quick

ENCODINGS = ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "dictionary")
COMPRESSIONS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
TYPES = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
)
ROWS = 500


def write(path: Path, encodings: dict[str, str], kind: pa.DataType, **options: Any) -> list[str]:
    """Writes rows with null texts among them; returns the texts that are not null."""
    texts = [None if i % 50 == 7 else f"text {i % 90} é" * (i % 5) for i in range(ROWS)]
    columns = {
        "id": pa.array([f"no {i}" for i in range(ROWS)]).cast(pa.string()),
        "text": pa.array(texts, pa.string()).cast(kind),
        "label": pa.array([f"label {i % 3}" for i in range(ROWS)]),
    }
    pq.write_table(
        pa.table(columns),
        path,
        row_group_size=ROWS // 2,
        data_page_size=600,
        write_batch_size=20,
        use_dictionary=[name for name, each in encodings.items() if each == "dictionary"],
        column_encoding={name: each for name, each in encodings.items() if each != "dictionary"},
        **options,
    )
    return [text for text in texts if text is not None]


def check(path: Path, texts: list[str]) -> None:
    """All documents are read, with their ids, and only rows without a text are rejected."""
    found = read_file(path, source_field="label")
    assert found.texts == texts
    nulls = list(range(7, ROWS, 50))
    assert found.ids == [f"no {row}" for row in range(ROWS) if row not in nulls]
    assert found.sources == [f"label {row % 3}" for row in range(ROWS) if row not in nulls]
    assert [(r.row, r.reason) for r in found.rejects] == [(row, "field missing") for row in nulls]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_compression_and_page_version(
    tmp_path: Path, encoding: str, compression: str, version: str
) -> None:
    path = tmp_path / "a.parquet"
    options = {"compression": compression, "data_page_version": version}
    check(path, write(path, {"id": encoding, "text": encoding}, pa.string(), **options))


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_type_of_texts_in_every_encoding(
    tmp_path: Path, encoding: str, kind: pa.DataType
) -> None:
    path = tmp_path / "a.parquet"
    check(path, write(path, {"id": "PLAIN", "text": encoding}, kind))


@pytest.mark.parametrize("name", ["id", "text", "label"])
@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_one_column_in_an_encoding_without_dictionaries(
    tmp_path: Path, encoding: str, name: str
) -> None:
    path = tmp_path / "a.parquet"
    encodings = dict.fromkeys(("id", "text", "label"), "dictionary") | {name: encoding}
    check(path, write(path, encodings, pa.string(), data_page_version="2.0"))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_texts_within_structs(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"text {i}" for i in range(50)]
    table = pa.table({"meta": [{"body": text, "number": 1} for text in texts]})
    by_dictionary = {"use_dictionary": ["meta.body"]}
    by_encoding = {"use_dictionary": False, "column_encoding": {"meta.body": encoding}}
    options: Any = by_dictionary if encoding == "dictionary" else by_encoding
    pq.write_table(table, path, **options)
    assert read_file(path, text_field="meta.body").texts == texts


def test_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.parquet", {}, pa.string())

    def starved(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 4194304 failed")

    monkeypatch.setattr("bpe_beam.corpus.formats.parquet.checked_rows", starved)
    with pytest.raises(MemoryError):
        read_file(tmp_path / "x.parquet")
