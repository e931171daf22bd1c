"""What a file is, by its first bytes: read, or refused with what to do."""

from __future__ import annotations

import io
import lzma
import pickle
import sqlite3
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

from bpe_beam.corpus.file_types import compression_of, format_of
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
