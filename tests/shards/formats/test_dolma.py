"""dolma shards: their bytes, their limits, and what their reader refuses."""

from __future__ import annotations

import gzip
import hashlib
import struct
import time
from functools import partial
from pathlib import Path

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.dolma import FORMAT, DolmaStream, DolmaWriter
from bpe_beam.shards.formats.interface import ShardFiles

pytestmark = pytest.mark.quick

IDS, ROWS = f"{NAME}.npy", f"{NAME}.csv.gz"

write = partial(one_shard.write, DolmaWriter)
read = partial(one_shard.read, DolmaStream.open)


@pytest.mark.parametrize(
    ("vocab_size", "letter"),
    [(1, "B"), (256, "B"), (257, "H"), (65_536, "H"), (65_537, "I"), (2**31, "I")],
)
def test_every_byte_of_a_small_shard(tmp_path: Path, vocab_size: int, letter: str) -> None:
    greatest = vocab_size - 1
    files = write(tmp_path, [[0, 0, greatest], []], [[greatest], []], vocab_size=vocab_size)

    ids = struct.pack(f"<4{letter}", 0, 0, greatest, greatest)
    assert (tmp_path / IDS).read_bytes() == ids
    stored = (tmp_path / ROWS).read_bytes()
    assert gzip.decompress(stored) == b"0,3,,,0\r\n3,3,,,1\r\n3,4,,,2\r\n4,4,,,3\r\n"
    assert files == ShardFiles(4, 4, (FileInfo.of(IDS, ids), FileInfo.of(ROWS, stored)))
    assert read(tmp_path) == [[0, 0, greatest], [], [greatest], []]


def test_ids_and_rows_that_olmo_core_reads(tmp_path: Path) -> None:
    """The hashes are of files in which OLMo-core 3.0.0 finds each document."""
    documents = [[n % 300] * (n % 7) for n in range(1_000)]
    write(tmp_path, documents)
    found = ((tmp_path / IDS).read_bytes(), gzip.decompress((tmp_path / ROWS).read_bytes()))
    assert tuple(hashlib.sha256(data).hexdigest()[:16] for data in found) == GOLDEN


GOLDEN = ("4ef6f74f552e95a2", "f26fa047ae573ae9")


def test_gzip_does_not_depend_on_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for now in (0.0, 2e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        write(tmp_path, [[1, 2], [3]])
        found.append((tmp_path / ROWS).read_bytes())
    assert found[0] == found[1]
    # No name, no time, no system.
    assert found[0][:8] == b"\x1f\x8b\x08\0\0\0\0\0"
    assert found[0][9] == 255


def test_batches_do_not_show_in_the_bytes(tmp_path: Path) -> None:
    documents = [[n % 300] * (n % 5) for n in range(40)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one = write(tmp_path / "one", documents)
    assert one == write(tmp_path / "many", [], *([document] for document in documents), [])


def test_more_documents_than_a_block(tmp_path: Path) -> None:
    count = 300_000
    offsets = np.concatenate(([0], np.cumsum(np.arange(count) % 3))).astype(np.int64)
    ids = (np.arange(int(offsets[-1])) * 7 % 70_000).astype(np.uint32)
    with DolmaWriter(STORAGE, str(tmp_path), NAME, 70_000) as writer:
        writer.write_documents(ids, offsets)
    with DolmaStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert np.array_equal(reader.lengths(0, count), np.diff(offsets))
        assert np.array_equal(reader.tokens(0, ids.size), ids)
        for index in (0, 1, 262_143, 262_144, count - 1):
            assert np.array_equal(reader.document(index), ids[offsets[index] : offsets[index + 1]])
        assert reader.locate(ids.size - 1) == (count - 1, 1)
        for outside in (lambda: reader.document(count), lambda: reader.lengths(1, 0)):
            with pytest.raises(IndexError, match="documents must be a range within 0 to 300000"):
                outside()


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_a_shard_on_a_store() -> None:
    folder = "memory://test-dolma"
    with DolmaWriter(STORAGE, folder, NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2], [], [3]]))
    assert STORAGE.list_names(folder) == [ROWS, IDS]
    with DolmaStream.open(STORAGE, folder, NAME) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]


def test_an_id_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"document 1, token 1: id 256 is not in the vocabulary"):
        write(tmp_path, [[1], [2, 256]], vocab_size=256)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="vocab_size must be 1 to 2147483648"):
        DolmaWriter(STORAGE, str(tmp_path), NAME, 2**31 + 1)


GOOD = b"0,2,,,0\r\n2,3,,,1\r\n"
PACKED = gzip.compress(GOOD, mtime=0)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (b"0,2,,,0\r\n2,1,,,1\r\n", r"row 1: is '2,1,,,1'; expected 2,END,,,1, END at least 2"),
        (b"0,2,,,0\r\n1,3,,,1\r\n", r"row 1: is '1,3,,,1'; expected 2,END,,,1"),
        (b"0,2,,,0\r\n2,3,,,2\r\n", r"row 1: is '2,3,,,2'; expected 2,END,,,1"),
        (b"0,2147483648,,,0\r\n", r"row 0: .* END at least 0 and at most 2147483647 more"),
        (b"0,99999999999999999999,,,0\r\n", r"row 0: is '0,9999"),
        (b"0,2,a,b,0\r\n", r"row 0: is '0,2,a,b,0'; expected 0,END,,,0"),
        (b"start,end,id,src,loc\r\n" + GOOD, r"row 0: is 'start,end,id,src,loc'"),
        (GOOD.replace(b"\r", b""), r"row 0: is .* without its end, CR LF"),
        (GOOD[:-2], r"row 1: is '2,3,,,1', without its end, CR LF"),
        (b"0" * 1_000_000, r"row 0: is '0000"),
        (b"\xff\r\n", r"row 0: is "),
        (b"", r"\.npy: has 6 bytes; the 0 documents of .*\.csv\.gz have 0 tokens, of 1, 2 or 4"),
        (b"0,4,,,0\r\n", r"\.npy: has 6 bytes; the 1 documents of .*\.csv\.gz have 4 tokens"),
    ],
)
def test_rows_that_break_the_layout(tmp_path: Path, rows: bytes, problem: str) -> None:
    write(tmp_path, [[1, 2], [3]])
    (tmp_path / ROWS).write_bytes(gzip.compress(rows))
    with pytest.raises(DataError, match=problem) as raised:
        read(tmp_path)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (GOOD, r"bytes 0 to 18: the gzip stream is corrupt"),
        (PACKED[:-1], r"byte [0-9]+: the gzip stream ends too soon"),
        (PACKED + b"\0", r"byte [0-9]+: the gzip stream ends before the file does"),
        (PACKED * 2, r"byte [0-9]+: the gzip stream ends before the file does"),
        (PACKED[:-8] + bytes(8), r"bytes 0 to [0-9]+: .* is corrupt .*data check"),
        (b"", r"byte 0: the gzip stream ends too soon"),
    ],
)
def test_bytes_that_are_not_one_gzip_stream(tmp_path: Path, data: bytes, problem: str) -> None:
    write(tmp_path, [[1, 2], [3]])
    (tmp_path / ROWS).write_bytes(data)
    with pytest.raises(DataError, match=rf"{ROWS}: {problem}"):
        read(tmp_path)


@pytest.mark.parametrize("name", [IDS, ROWS])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, [[1]])
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=name):
        read(tmp_path)


def test_ids_of_another_width_are_named(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2]], vocab_size=257)
    check = FORMAT.check(NAME, 256)
    check.add(".npy", (tmp_path / IDS).read_bytes())
    with DolmaStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert list(check.problems(reader)) == [
            f"{NAME}.npy: ids are stored as uint16; expected uint8 for a vocabulary of 256"
        ]
