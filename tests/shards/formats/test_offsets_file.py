"""MDS and litdata shards: their bytes, their index, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from token_folders import write_folder

from bpe_beam.errors import DataError
from bpe_beam.shards.formats import offsets_file, shard_format
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage

STORAGE = Storage()
NAME = "shard-00000-of-00001"
# Lengths on both sides of 2^8 and 2^16, and an id beyond 16 bits.
DOCUMENTS = [[5], [70_000] * 255, [1, 2] * 128, [3] * 65_535, [4] * 65_536, [2**31 - 1]]
FORMATS = ("mds", "litdata")

# Of DOCUMENTS: MDS as mosaicml-streaming 0.13.0 writes them.
GOLDEN = {
    "mds": "c301254908be22b6c66d06b0b0c8ee33bd42942ee2e66dbcaa9bf9229d812afe",
    "litdata": "9e2e9c4ff3017ee099d4ed8334625dd798aed502747f82d349573374445d1c1c",
}


def path_of(folder: Path, format_name: str) -> Path:
    return folder / f"{NAME}{shard_format(format_name).suffixes[0]}"


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_bytes_that_the_library_reads(format_name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, format_name, [DOCUMENTS], 2**31)
    data = path_of(tmp_path, format_name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == GOLDEN[format_name]
    count = len(DOCUMENTS)
    assert struct.unpack_from("<I", data)[0] == count
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    assert offsets[-1] == len(data)
    for document, start, stop in zip(DOCUMENTS, offsets, offsets[1:], strict=False):
        assert data[stop - 4 * len(document) : stop] == struct.pack(f"<{len(document)}i", *document)
        assert stop - start - 4 * len(document) <= 9
    with shard_format(format_name).reader(STORAGE, str(tmp_path), NAME) as reader:
        assert [reader.document(at).tolist() for at in range(count)] == DOCUMENTS
        middle = reader.tokens(100, 70_000)
        assert (
            middle.tolist() == [token for document in DOCUMENTS for token in document][100:70_000]
        )


@pytest.mark.parametrize("format_name", FORMATS)
def test_bytes_depend_on_the_documents_alone(
    format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on the vocabulary, by which the temporary file has two bytes an id, nor on blocks."""
    documents = [[7] * length for length in (1, 2, 300, 5, 1, 4)] + [[65_535, 0, 32_768]]
    found = set()
    for block in (1, 4, 1 << 18):
        monkeypatch.setattr(offsets_file, "BLOCK", block)
        for vocab_size in (65_536, 65_537):
            write_folder(tmp_path, format_name, [documents], vocab_size)
            found.add(path_of(tmp_path, format_name).read_bytes())
            with shard_format(format_name).reader(STORAGE, str(tmp_path), NAME) as reader:
                assert [reader.document(at).tolist() for at in range(7)] == documents
    assert len(found) == 1


def test_litdata_lists_the_chunks(tmp_path: Path) -> None:
    write_folder(tmp_path, "litdata", [[[1, 2], [3]], [[4]]])
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert index["config"]["data_format"] == ["no_header_numpy:2"]
    rows = [(each["filename"], each["chunk_size"], each["dim"]) for each in index["chunks"]]
    assert rows == [("shard-00000-of-00002.bin", 2, 3), ("shard-00001-of-00002.bin", 1, 1)]
    for each in index["chunks"]:
        assert each["chunk_bytes"] == (tmp_path / each["filename"]).stat().st_size


def test_mds_lists_the_files(tmp_path: Path) -> None:
    write_folder(tmp_path, "mds", [[[1, 2], [3]], [[4]]])
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert [row["samples"] for row in index["shards"]] == [2, 1]
    for row in index["shards"]:
        assert row["column_encodings"] == ["ndarray:int32"]
        path = tmp_path / row["raw_data"]["basename"]
        assert row["raw_data"]["bytes"] == path.stat().st_size


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_index_of_other_shards_is_named(format_name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, format_name, [DOCUMENTS[:3]], 2**31)
    assert verify(STORAGE, str(tmp_path)).ok
    index = tmp_path / "index.json"
    size = index.stat().st_size
    index.write_bytes(index.read_bytes() + b" ")
    (problem,) = verify(STORAGE, str(tmp_path)).problems
    assert problem == f"index.json: has {size + 1} bytes; expected {size}"
    index.unlink()
    (problem,) = verify(STORAGE, str(tmp_path)).problems
    assert "index.json" in problem


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_file_beyond_the_table_is_refused(
    format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets_file, "MAX_BYTES", 1_000)
    writer = shard_format(format_name).writer(STORAGE, str(tmp_path), NAME, 300)
    with (
        pytest.raises(DataError, match=r"more than 1000 bytes, .* make range_bytes smaller"),
        writer,
    ):
        for _ in range(9):
            writer.write_documents(np.zeros(50, np.uint32), np.array([0, 50]))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_is_damaged_is_named_by_its_byte(format_name: str, tmp_path: Path) -> None:
    write_folder(tmp_path, format_name, [[[1], [2, 3]]])
    path = path_of(tmp_path, format_name)
    data = path.read_bytes()
    for damaged, said in (
        (data[:3], "has 3 bytes; the table alone has 8 or more"),
        (b"\xff" + data[1:], "byte 0: a table of 255 documents has"),
        (data[:4] + b"\0" + data[5:], "byte 4: entry 0 of the table is 0; expected entries that"),
        (data + b"\0", "byte 12: entry 2 of the table is"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=said):
            shard_format(format_name).reader(STORAGE, str(tmp_path), NAME)
    path.write_bytes(data[:-1] + b"\x80")
    with (
        shard_format(format_name).reader(STORAGE, str(tmp_path), NAME) as reader,
        pytest.raises(DataError, match="damaged head, or an id below 0"),
    ):
        reader.document(1)


@pytest.mark.parametrize("document", range(len(DOCUMENTS)))
def test_a_damaged_head_is_refused_alone_and_among_others(document: int, tmp_path: Path) -> None:
    """Each byte in front of the ids of an MDS document, whose number has 1, 2 or 4 bytes."""
    write_folder(tmp_path, "mds", [DOCUMENTS], 2**31)
    path = path_of(tmp_path, "mds")
    data = path.read_bytes()
    start, stop = struct.unpack_from("<2I", data, 4 + 4 * document)
    ends = np.cumsum([0, *map(len, DOCUMENTS)]).tolist()
    for at in range(start, stop - 4 * len(DOCUMENTS[document])):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with shard_format("mds").reader(STORAGE, str(tmp_path), NAME) as reader:
            with pytest.raises(DataError, match="damaged head, or an id below 0"):
                reader.document(document)
            with pytest.raises(DataError, match="damaged head, or an id below 0"):
                reader.tokens(0, ends[-1])
