"""The Megatron pair: its bytes, its limits, and that nothing half written is ever seen."""

from __future__ import annotations

import hashlib
import io
import resource
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import spool
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.shards.formats.spool import Spool
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

write = partial(one_shard.write, MegatronWriter)
read = partial(one_shard.read, MegatronStream.open)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# The layout, spelled out.


@pytest.mark.parametrize(("vocab_size", "code", "letter"), [(300, 8, "H"), (70_000, 4, "i")])
def test_every_byte_of_a_small_pair(
    tmp_path: Path, vocab_size: int, code: int, letter: str
) -> None:
    files = write(tmp_path, [[1, 2, 258], []], [[7]], vocab_size=vocab_size)

    width = struct.calcsize(letter)
    expected_bin = struct.pack(f"<4{letter}", 1, 2, 258, 7)
    expected_idx = b"".join(
        [
            b"MMIDIDX\x00\x00",
            struct.pack("<Q", 1),
            struct.pack("<B", code),
            struct.pack("<Q", 3),
            struct.pack("<Q", 4),
            struct.pack("<3i", 3, 0, 1),
            struct.pack("<3q", 0, 3 * width, 3 * width),
            struct.pack("<4q", 0, 1, 2, 3),
        ]
    )
    assert (tmp_path / f"{NAME}.bin").read_bytes() == expected_bin
    assert (tmp_path / f"{NAME}.idx").read_bytes() == expected_idx
    assert names(tmp_path) == [f"{NAME}.bin", f"{NAME}.idx"]
    assert files == ShardFiles(
        documents=3,
        tokens=4,
        files=(
            FileInfo(f"{NAME}.bin", len(expected_bin), hashlib.sha256(expected_bin).hexdigest()),
            FileInfo(f"{NAME}.idx", len(expected_idx), hashlib.sha256(expected_idx).hexdigest()),
        ),
    )
    assert read(tmp_path) == [[1, 2, 258], [], [7]]


@pytest.mark.parametrize("documents", [[], [[]], [[], [], []]])
def test_without_tokens_nothing_is_written(tmp_path: Path, documents: list[list[int]]) -> None:
    assert write(tmp_path, documents) == ShardFiles(len(documents), 0, ())
    assert names(tmp_path) == []


def test_batches_do_not_show_in_the_bytes(tmp_path: Path) -> None:
    documents = [[n % 300] * (n % 5) for n in range(40)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one = write(tmp_path / "one", documents)
    many = write(tmp_path / "many", [], *([document] for document in documents), [])
    assert one == many


def test_more_documents_and_tokens_than_a_block(tmp_path: Path) -> None:
    # Past the block of 2^18 and the 4 MB of lengths that are held in memory.
    count = 1_300_000
    lengths = np.arange(count) % 3
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    ids = (np.arange(int(offsets[-1])) * 7 % 70_000).astype(np.uint32)
    with MegatronWriter(STORAGE, str(tmp_path), NAME, 70_000) as writer:
        writer.write_documents(ids, offsets)

    idx = (tmp_path / f"{NAME}.idx").read_bytes()
    assert len(idx) == 34 + 12 * count + 8 * (count + 1)
    body = memoryview(idx)[34:]
    assert np.array_equal(np.frombuffer(body[: 4 * count], "<i4"), lengths)
    assert np.array_equal(np.frombuffer(body[4 * count : 12 * count], "<i8"), offsets[:-1] * 4)
    assert np.array_equal(np.frombuffer(body[12 * count :], "<i8"), np.arange(count + 1))
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert np.array_equal(reader.tokens(0, reader.token_count), ids)
        assert np.array_equal(reader.lengths(0, count), lengths)
        for index in (0, 1, 262_143, 262_144, 262_145, count - 1):
            expected = ids[offsets[index] : offsets[index + 1]]
            assert np.array_equal(reader.document(index), expected)
        assert reader.locate(0) == (1, 0)
        assert reader.locate(ids.size - 1) == (count - 2, 1)
        assert reader.locate(int(offsets[700_000])) == (700_000, 0)


def test_a_pair_on_a_store() -> None:
    folder = "memory://test-megatron"
    with MegatronWriter(STORAGE, folder, NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2], [], [3]]))
    assert STORAGE.list_names(folder) == [f"{NAME}.bin", f"{NAME}.idx"]
    with MegatronStream.open(STORAGE, folder, NAME) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]


def test_ranges_outside_the_shard(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2]])
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        for call in (
            lambda: reader.document(1),
            lambda: reader.document(-1),
            lambda: reader.lengths(0, 2),
            lambda: reader.tokens(1, 3),
            lambda: reader.tokens(2, 1),
            lambda: reader.locate(2),
        ):
            with pytest.raises(IndexError, match="must be a range within 0 to"):
                call()


# Limits.


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [(1, "uint16"), (65_535, "uint16"), (65_536, "uint16"), (65_537, "int32"), (2**31, "int32")],
)
def test_the_greatest_id_of_each_width(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    assert MegatronWriter.dtype_for(vocab_size) == np.dtype(dtype)
    write(tmp_path, [[0, vocab_size - 1]], vocab_size=vocab_size)
    assert read(tmp_path) == [[0, vocab_size - 1]]
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert reader.dtype == np.dtype(dtype)


@pytest.mark.parametrize("vocab_size", [-1, 0, 2**31 + 1])
def test_a_vocabulary_that_no_width_holds(vocab_size: int) -> None:
    with pytest.raises(UsageError, match=f"must be 1 to 2147483648 .*, got {vocab_size}"):
        MegatronWriter(STORAGE, "folder", NAME, vocab_size)


@pytest.mark.parametrize("vocab_size", [10, 65_536, 65_537])
def test_an_id_outside_the_vocabulary_is_refused_by_its_place(
    tmp_path: Path, vocab_size: int
) -> None:
    with (
        pytest.raises(
            DataError,
            match=rf"{NAME}: document 4, token 1: id {vocab_size} is not in the vocabulary; "
            rf"allowed are 0 to {vocab_size - 1}$",
        ),
        MegatronWriter(STORAGE, str(tmp_path), NAME, vocab_size) as writer,
    ):
        writer.write_documents(*pack([[1], [2]]))
        writer.write_documents(*pack([[3], [], [4, vocab_size, vocab_size + 1]]))
    assert names(tmp_path) == []


def test_the_place_of_an_id_at_a_documents_start(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"document 2, token 0: id 10 is not"),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 10) as writer,
    ):
        writer.write_documents(*pack([[1], [], [10], []]))


def test_a_document_too_long_for_the_index(tmp_path: Path) -> None:
    ids = np.broadcast_to(np.uint32(0), (2**31 + 1,))  # one element, shown 2^31 + 1 times
    offsets = np.array([0, 1, 2**31 + 1], dtype=np.int64)
    with (
        pytest.raises(
            DataError, match=r"document 3 has 2147483648 tokens; .* at most 2147483647 a document"
        ),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 10) as writer,
    ):
        writer.write_documents(*pack([[1], []]))
        writer.write_documents(ids, offsets)
    assert names(tmp_path) == []


@pytest.mark.scheduled
def test_the_longest_document() -> None:
    ids = np.broadcast_to(np.uint32(9), (2**31,))
    with tempfile.TemporaryDirectory() as folder:  # 4 GiB, so not left behind as a tmp_path is
        with MegatronWriter(STORAGE, folder, NAME, 10) as writer:
            writer.write_documents(ids, np.array([0, 2**31 - 1, 2**31], dtype=np.int64))
        assert writer.result().files[0].bytes == 2**32
        with MegatronStream.open(STORAGE, folder, NAME) as reader:
            assert reader.lengths(0, 2).tolist() == [2**31 - 1, 1]
            assert reader.document(1).tolist() == [9]


def test_pointers_beyond_32_bits(tmp_path: Path) -> None:
    # A .bin of holes, so that 8 GiB of ids cost nothing.
    longest = 2**31 - 1
    with (tmp_path / f"{NAME}.bin").open("wb") as file:
        file.seek(4 * longest)
        file.write(struct.pack("<3i", 5, 6, 7))
    (tmp_path / f"{NAME}.idx").write_bytes(
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, 4, 3, 4)
        + struct.pack("<3i", longest, 1, 2)
        + struct.pack("<3q", 0, 4 * longest, 4 * longest + 4)
        + struct.pack("<4q", 0, 1, 2, 3)
    )
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert reader.token_count == longest + 3
        assert reader.document(1).tolist() == [5]
        assert reader.document(2).tolist() == [6, 7]
        assert reader.locate(longest + 2) == (2, 1)


@pytest.mark.parametrize(
    ("ids", "offsets", "message"),
    [
        (np.zeros(2, np.int64), np.array([0, 2]), "ids must be uint32"),
        (np.zeros((1, 2), np.uint32), np.array([0, 2]), "ids must be uint32"),
        (np.zeros(2, np.uint32), np.array([0, 2], np.int32), "offsets must be int64"),
        (np.zeros(2, np.uint32), np.array([], np.int64), "offsets must be int64"),
        (np.zeros(2, np.uint32), np.array([0, 1]), "offsets must rise from 0"),
        (np.zeros(2, np.uint32), np.array([1, 2]), "offsets must rise from 0"),
        (np.zeros(2, np.uint32), np.array([0, 2, 1, 2]), "offsets must rise from 0"),
        (np.zeros(2, np.uint32), np.array([0, -1, 2]), "offsets must rise from 0"),
    ],
)
def test_arrays_that_do_not_belong_together(
    tmp_path: Path, ids: Any, offsets: Any, message: str
) -> None:
    with (
        pytest.raises(ValueError, match=message),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 10) as writer,
    ):
        writer.write_documents(ids, offsets)
    assert names(tmp_path) == []


# Failures leave nothing.


def test_an_exception_in_the_middle(tmp_path: Path) -> None:
    writer = MegatronWriter(STORAGE, str(tmp_path), NAME, 300)
    with pytest.raises(ZeroDivisionError), writer:
        writer.write_documents(*pack([[1, 2, 3]]))
        raise ZeroDivisionError
    assert names(tmp_path) == []
    with pytest.raises(ValueError, match="has not ended well"):
        writer.result()


def test_neither_file_is_visible_before_the_end(tmp_path: Path) -> None:
    with MegatronWriter(STORAGE, str(tmp_path), NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2, 3]]))
        assert not [name for name in names(tmp_path) if name.endswith((".bin", ".idx"))]
        with pytest.raises(ValueError, match="has not ended well"):
            writer.result()
    with pytest.raises(ValueError, match="must be called in the writer's with block"):
        writer.write_documents(*pack([[1]]))


def test_writing_outside_the_with_block(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be called in the writer's with block"):
        MegatronWriter(STORAGE, str(tmp_path), NAME, 300).write_documents(*pack([[1]]))


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Lets the system refuse to write more to any file, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100_000, 1_900_000])
@pytest.mark.parametrize(
    ("suffix", "lengths"), [(".bin", [1_000_000]), (".idx", [1] + [0] * 99_999)]
)
def test_a_disk_without_room(tmp_path: Path, suffix: str, lengths: list[int], size: int) -> None:
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    with (
        pytest.raises(DataError, match=rf"{NAME}\{suffix}: File too large"),
        files_of_at_most(size),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(np.zeros(offsets[-1], np.uint32), offsets)
    assert names(tmp_path) == []


def test_a_failed_batch_is_never_published_even_if_the_error_is_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, data: bytes) -> None:
        raise DataError("the lengths cannot be kept")

    with (
        pytest.raises(DataError, match="a batch of documents failed before"),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1]]))
        with monkeypatch.context() as patch:
            patch.setattr(Spool, "write", broken)
            with pytest.raises(DataError, match="cannot be kept"):
                writer.write_documents(*pack([[2]]))
    assert names(tmp_path) == []


def test_a_refused_batch_leaves_the_writer_whole(tmp_path: Path) -> None:
    with MegatronWriter(STORAGE, str(tmp_path), NAME, 10) as writer:
        with pytest.raises(DataError, match="id 10 is not in the vocabulary"):
            writer.write_documents(*pack([[1, 10]]))
        writer.write_documents(*pack([[2]]))
    assert read(tmp_path) == [[2]]


def test_a_bin_that_cannot_be_published(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.bin").mkdir()  # a folder is where the file must go
    (tmp_path / f"{NAME}.bin" / "other").touch()
    with (
        pytest.raises((DataError, OSError), match=rf"{NAME}\.bin"),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1, 2, 3]]))
    assert names(tmp_path) == [f"{NAME}.bin"]
    assert (tmp_path / f"{NAME}.bin" / "other").exists()


class CannotPublishIdx(Storage, frozen=True):
    """A store that fails when the .idx is to appear, after the .bin did."""

    @contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        with super().create(url) as file:
            yield file
            if url.endswith(".idx"):
                assert Path(url).with_suffix(".bin").exists()
                raise DataError("the rename failed")


@pytest.mark.parametrize("twin", [False, True])
def test_an_idx_that_cannot_be_published(tmp_path: Path, twin: bool) -> None:
    if twin:
        write(tmp_path, [[1, 2, 3]])
    with (
        pytest.raises(DataError, match="the rename failed"),
        MegatronWriter(CannotPublishIdx(), str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1, 2, 3]]))
    if twin:
        # Another attempt has finished the shard: it stays whole.
        assert read(tmp_path) == [[1, 2, 3]]
    else:
        # The .bin may be another attempt's: its .idx may come at any moment.
        assert names(tmp_path) == [f"{NAME}.bin"]


def test_a_missing_temporary_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with (
        pytest.raises(DataError, match=r"gone: the temporary file .* TMPDIR"),
        MegatronWriter(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(np.zeros(0, np.uint32), np.zeros(2_000_000, np.int64))
    assert names(tmp_path) == []


# What the reader refuses.


def small_pair(folder: Path, vocab_size: int = 300) -> bytearray:
    write(folder, [[1, 2, 258], [], [7]], vocab_size=vocab_size)
    return bytearray((folder / f"{NAME}.idx").read_bytes())


@pytest.mark.parametrize("vocab_size", [300, 70_000])
def test_every_byte_of_the_index_counts(tmp_path: Path, vocab_size: int) -> None:
    idx = small_pair(tmp_path, vocab_size)
    path = tmp_path / f"{NAME}.idx"
    for place in range(len(idx)):
        for value in {idx[place] ^ 0xFF, idx[place] ^ 0x01, idx[place] ^ 0x80}:
            broken = bytearray(idx)
            broken[place] = value
            path.write_bytes(broken)
            with pytest.raises(DataError, match=NAME):
                MegatronStream.open(STORAGE, str(tmp_path), NAME)


def test_every_length_of_the_index_but_the_right_one_is_refused(tmp_path: Path) -> None:
    idx = bytes(small_pair(tmp_path))
    path = tmp_path / f"{NAME}.idx"
    for broken in [idx[:size] for size in range(len(idx))] + [idx + b"\0", idx + idx]:
        path.write_bytes(broken)
        with pytest.raises(DataError, match=NAME):
            MegatronStream.open(STORAGE, str(tmp_path), NAME)


HUGE = 2**63 - 1
FIELDS = [
    # what, place, layout, value, part of the message
    ("magic", 0, "8s", b"MMIDIDY\0", r"\.idx: byte 0: the magic is b'MMIDIDY"),
    ("version 0", 9, "Q", 0, r"\.idx: byte 9: the version is 0; expected 1"),
    ("version 2", 9, "Q", 2, r"\.idx: byte 9: the version is 2; expected 1"),
    ("dtype int64", 17, "B", 5, r"\.idx: byte 17: the dtype code is 5; expected 8"),
    ("dtype unknown", 17, "B", 255, r"\.idx: byte 17: the dtype code is 255; expected 8"),
    ("dtype int32", 17, "B", 4, r"\.idx: byte \d+: the pointer of document 1 is 6; expected 12"),
    ("no sequences", 18, "Q", 0, r"byte 26: the document index has 4 entries; expected 1"),
    ("many sequences", 18, "Q", 2**64 - 1, r"byte 26: the document index has 4 entries"),
    ("sequences, documents", 18, "QQ", (2, 3), r"byte 18: 2 sequences make an index of 82 bytes"),
    ("absurd counts", 18, "QQ", (2**64 - 2, 2**64 - 1), r"byte 18: 18446744073709551614 seq"),
    ("absurd counts, 2", 18, "QQ", (2**40, 2**40 + 1), r"byte 18: 1099511627776 sequences"),
    ("documents", 26, "Q", 2, r"byte 26: the document index has 2 entries; expected 4"),
    ("negative length", 38, "i", -1, r"byte 38: document 1 has the length -1; expected 0"),
    ("length", 38, "i", 1, r"byte 62: the pointer of document 2 is 6; expected 8"),
    ("last length", 42, "i", 2, r"\.bin: has 8 bytes; .* need 10"),
    ("last length, less", 42, "i", 0, r"\.bin: has 8 bytes; the 3 documents .* 3 tokens, of 2"),
    ("absurd lengths", 34, "iii", (2**31 - 1,) * 3, r"byte 54: the pointer of document 1 is 6; e"),
    ("first pointer", 46, "q", 2, r"byte 46: the pointer of document 0 is 2; expected 0"),
    ("pointer", 54, "q", HUGE, rf"byte 54: the pointer of document 1 is {HUGE}; expected 6"),
    ("negative pointer", 62, "q", -8, r"byte 62: the pointer of document 2 is -8; expected 6"),
    ("first document", 70, "q", 1, r"byte 70: the entry of the document index 0 is 1; expected 0"),
    ("document falls", 86, "q", 0, r"byte 86: the entry of the document index 2 is 0; expected 2"),
    ("document ends", 94, "q", 4, r"byte 94: the entry of the document index 3 is 4; expected 3"),
]


@pytest.mark.parametrize(
    ("place", "layout", "value", "message"),
    [row[1:] for row in FIELDS],
    ids=[row[0] for row in FIELDS],
)
def test_a_broken_field_is_named(
    tmp_path: Path, place: int, layout: str, value: Any, message: str
) -> None:
    idx = small_pair(tmp_path)
    struct.pack_into(f"<{layout}", idx, place, *(value if isinstance(value, tuple) else (value,)))
    (tmp_path / f"{NAME}.idx").write_bytes(idx)
    with pytest.raises(DataError, match=message):
        MegatronStream.open(STORAGE, str(tmp_path), NAME)


def test_an_index_of_holes_fails_at_its_first_block(tmp_path: Path) -> None:
    # 2 * 10^10 documents, 400 GB that cost nothing on disk: the counts fit the file's size.
    count = 2 * 10**10
    with (tmp_path / f"{NAME}.idx").open("wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, count, count + 1))
        file.truncate(34 + 12 * count + 8 * (count + 1))
    (tmp_path / f"{NAME}.bin").write_bytes(b"")
    with pytest.raises(DataError, match="entry of the document index 1 is 0; expected 1"):
        MegatronStream.open(STORAGE, str(tmp_path), NAME)


@pytest.mark.parametrize("change", [-8, -1, 1, 2])
def test_a_bin_of_another_size(tmp_path: Path, change: int) -> None:
    small_pair(tmp_path)
    path = tmp_path / f"{NAME}.bin"
    path.write_bytes((path.read_bytes() + b"\0\0")[: 8 + change])
    with pytest.raises(DataError, match=rf"{NAME}\.bin: has {8 + change} bytes"):
        MegatronStream.open(STORAGE, str(tmp_path), NAME)


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_a_missing_file(tmp_path: Path, suffix: str) -> None:
    small_pair(tmp_path)
    (tmp_path / f"{NAME}{suffix}").unlink()
    with pytest.raises(DataError, match=rf"{NAME}\{suffix}"):
        MegatronStream.open(STORAGE, str(tmp_path), NAME)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, [[1] * 200_000])
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        (tmp_path / f"{NAME}.bin").write_bytes(b"\1\0" * 100_000)
        with pytest.raises(DataError, match=r"\.bin: ends at byte 200000; bytes up to 400000"):
            reader.document(0)


def test_a_negative_id(tmp_path: Path) -> None:
    small_pair(tmp_path, vocab_size=70_000)
    (tmp_path / f"{NAME}.bin").write_bytes(struct.pack("<4i", 1, 2, -3, 4))
    with MegatronStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert reader.document(2).tolist() == [4]
        with pytest.raises(DataError, match=r"\.bin: byte 8: the id is -3; expected 0 or more"):
            reader.document(0)


def test_a_spool_moves_to_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_IN_MEMORY", 10)
    with Spool("numbers", "much") as spooled:
        for number in range(5):
            spooled.write(bytes([number]) * 4)
            assert isinstance(spooled._file, io.BytesIO) == (number < 2)
        assert b"".join(spooled.blocks(7)) == b"".join(bytes([number]) * 4 for number in range(5))
        assert spooled.read(18, 9) == b"\4\4"
