"""llm.c shards: the header of each width, its limit, and what the reader refuses."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import llmc
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.shards.formats.llmc import FORMAT, LlmcStream, LlmcWriter

pytestmark = pytest.mark.quick

IDS, OFFSETS = f"{NAME}.bin", f"{NAME}.document_offsets.npy"
HEADERS = {"H": (20240520, 1), "I": (20240801, 7)}

write = partial(one_shard.write, LlmcWriter)
read = partial(one_shard.read, LlmcStream.open)


def data_file(letter: str, ids: Sequence[int]) -> bytes:
    """What llm.c's `write_datafile` writes, spelled out."""
    header = struct.pack("<256i", *HEADERS[letter], len(ids), *[0] * 253)
    return header + struct.pack(f"<{len(ids)}{letter}", *ids)


@pytest.mark.parametrize(("vocab_size", "letter"), [(300, "H"), (65_536, "H"), (65_537, "I")])
def test_every_byte_of_a_small_shard(tmp_path: Path, vocab_size: int, letter: str) -> None:
    end = vocab_size - 1
    documents = [[end, 2, 258], [end], [], [end, 7]]
    files = write(tmp_path, documents[:2], documents[2:], vocab_size=vocab_size)
    ids = data_file(letter, [end, 2, 258, end, end, 7])
    assert (tmp_path / IDS).read_bytes() == ids
    assert (tmp_path / OFFSETS).read_bytes()[128:] == struct.pack("<5q", 0, 3, 4, 4, 6)
    assert (files.documents, files.tokens) == (4, 6)
    assert files.files[0] == FileInfo.of(IDS, ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == [IDS, OFFSETS]
    assert read(tmp_path) == documents


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_more_tokens_than_are_held_in_memory(tmp_path: Path) -> None:
    ids = (np.arange(1_500_000) * 7 % 70_000).astype(np.uint32)
    with LlmcWriter(STORAGE, str(tmp_path), NAME, 70_000) as writer:
        for part in np.array_split(ids, 3):
            writer.write_documents(part, np.array([0, 5, part.size], np.int64))
    stored = np.fromfile(tmp_path / IDS, "<u4", offset=1024)
    assert np.array_equal(stored, ids)
    with LlmcStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert np.array_equal(reader.document(3), ids[500_005:1_000_000])
        assert np.array_equal(reader.tokens(0, ids.size), ids)


def test_a_file_that_its_header_cannot_count_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert llmc.MAX_FILE_TOKENS == 2**31 - 1
    monkeypatch.setattr(llmc, "MAX_FILE_TOKENS", 5)
    assert write(tmp_path, [[1, 2]], [[3, 4, 5]]).tokens == 5
    with (
        pytest.raises(DataError, match=rf"{NAME}: has more than 5 tokens, .* make range_bytes sma"),
        LlmcWriter(STORAGE, str(tmp_path / "more"), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1, 2, 3, 4, 5]]))
        writer.write_documents(*pack([[6]]))
    assert not (tmp_path / "more").exists()


def test_a_missing_temporary_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(DataError, match=r"gone: .* with the ids of shard.* 4 bytes a token.*TMPDIR"),
        LlmcWriter(STORAGE, str(tmp_path), NAME, 70_000) as writer,
    ):
        writer.write_documents(np.zeros(1_300_000, np.uint32), np.array([0, 1_300_000], np.int64))
    assert not list(tmp_path.iterdir())


def test_every_byte_of_the_header_counts(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2, 258], [], [7]])
    path = tmp_path / IDS
    whole = path.read_bytes()
    for at in [*range(20), 511, 1_000, 1_023]:
        for value in {whole[at] ^ 0xFF, whole[at] ^ 0x01, whole[at] ^ 0x80}:
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with pytest.raises(DataError, match=NAME):
                LlmcStream.open(STORAGE, str(tmp_path), NAME)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        (0, 20240522, r"byte 0: the magic is 20240522; expected 20240520 or 20240801"),
        (0, 20240801, r"byte 4: entry 1 of the header is 1; expected 7"),
        (1, 2, r"byte 4: entry 1 of the header is 2; expected 1"),
        (2, 3, r"byte 8: entry 2 of the header is 3; expected 4"),
        (2, -1, r"byte 8: entry 2 of the header is -1; expected 4"),
        (255, 1, r"byte 1020: entry 255 of the header is 1; expected 0"),
    ],
)
def test_a_broken_header_is_named(tmp_path: Path, entry: int, value: int, message: str) -> None:
    write(tmp_path, [[1, 2, 258], [], [7]])
    data = bytearray((tmp_path / IDS).read_bytes())
    struct.pack_into("<i", data, 4 * entry, value)
    (tmp_path / IDS).write_bytes(data)
    with pytest.raises(DataError, match=message):
        LlmcStream.open(STORAGE, str(tmp_path), NAME)


@pytest.mark.parametrize("size", [0, 1_023, 1_024, 1_031, 1_033])
def test_a_bin_of_another_size(tmp_path: Path, size: int) -> None:
    write(tmp_path, [[1, 2, 258], [], [7]])
    path = tmp_path / IDS
    path.write_bytes((path.read_bytes() + b"\0")[:size])
    with pytest.raises(DataError, match=rf"{NAME}\.bin: has {size} bytes; .*header"):
        LlmcStream.open(STORAGE, str(tmp_path), NAME)


def test_the_check_names_ids_and_widths(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2, 299], [298]])

    def problems(vocab_size: int, block: int) -> list[str]:
        check = FORMAT.check(NAME, vocab_size)
        data = (tmp_path / IDS).read_bytes()
        for start in range(0, len(data), block):
            check.add(".bin", data[start : start + block])
        with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
            return list(check.problems(reader))

    assert not problems(300, 4096)
    for block in (4096, 1_000, 1_024, 1_026):
        assert problems(298, block) == [
            f"{IDS}: document 1, token 1, byte 1028: the id is 299; expected 0 to 297; 2 such ids "
            "in this shard"
        ]
    assert problems(65_537, 4096) == [
        f"{IDS}: byte 0: ids are stored as uint16; expected uint32 for a vocabulary of 65537"
    ]


def test_golden_hashes(tmp_path: Path) -> None:
    """Of files whose `.bin` llm.c writes too: `write_datafile` of its `data_common.py` gives the
    same bytes, and its `dataloader.h` reads the ids of the uint16.
    """
    documents = [[50_256, 65_535, 7], [50_256], [50_256, *range(1, 2_002)]]
    for vocab_size, sha256 in GOLDEN.items():
        digest = hashlib.sha256()
        for file in write(tmp_path, documents, vocab_size=vocab_size).files:
            digest.update((tmp_path / file.name).read_bytes())
        assert digest.hexdigest() == sha256


GOLDEN = {
    65_536: "68d2a38ddd8275906316a1c7d463dfb2ab1c09c34f4cf11cd77e28f122746e0e",
    65_537: "cf8a808c59f4b753aab49ec4c7437f225b1d5e8f0fd4991c62ffbb70d1134c85",
}
