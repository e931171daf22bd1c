"""Flat shards: their bytes as numpy reads them, their limits, and what their reader refuses."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.flat import FORMAT, FlatStream, FlatWriter
from bpe_beam.shards.formats.interface import ShardFiles

pytestmark = pytest.mark.quick

IDS, OFFSETS = f"{NAME}.bin", f"{NAME}.document_offsets.npy"

write = partial(one_shard.write, FlatWriter)
read = partial(one_shard.read, FlatStream.open)


def saved(values: Sequence[int]) -> bytes:
    """Numpy's own file of these int64."""
    file = io.BytesIO()
    np.save(file, np.array(values, np.int64))
    return file.getvalue()


@pytest.mark.parametrize(("vocab_size", "letter"), [(300, "H"), (65_536, "H"), (65_537, "I")])
def test_every_byte_of_a_small_shard(tmp_path: Path, vocab_size: int, letter: str) -> None:
    greatest = vocab_size - 1
    files = write(tmp_path, [[1, 2, 258], []], [[greatest]], vocab_size=vocab_size)

    ids = struct.pack(f"<4{letter}", 1, 2, 258, greatest)
    offsets = (
        b"\x93NUMPY\x01\x00\x76\x00"
        + b"{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }".ljust(117)
        + b"\n"
        + struct.pack("<4q", 0, 3, 3, 4)
    )
    assert (tmp_path / IDS).read_bytes() == ids
    assert (tmp_path / OFFSETS).read_bytes() == offsets
    assert files == ShardFiles(3, 4, (FileInfo.of(IDS, ids), FileInfo.of(OFFSETS, offsets)))
    assert sorted(path.name for path in tmp_path.iterdir()) == [IDS, OFFSETS]
    assert read(tmp_path) == [[1, 2, 258], [], [greatest]]


@pytest.mark.parametrize("documents", [1, 2, 9, 10, 99_999])
def test_the_offsets_are_a_file_of_numpy(tmp_path: Path, documents: int) -> None:
    write(tmp_path, [[5]] * documents)
    data = (tmp_path / OFFSETS).read_bytes()
    assert data == saved(range(documents + 1))
    offsets = np.load(tmp_path / OFFSETS, mmap_mode="r")
    assert (offsets.dtype, offsets.shape) == (np.int64, (documents + 1,))


def test_documents_as_a_trainer_slices_them(tmp_path: Path) -> None:
    """As in the README of torchtitan: both files by numpy, and slices between two offsets."""
    rng = np.random.default_rng(3)
    documents = [rng.integers(0, 70_000, n).tolist() for n in [0, 7, 0, 2_000, 1, 0, 3, 0]]
    write(tmp_path, documents[:3], documents[3:], vocab_size=70_000)
    tokens = np.memmap(tmp_path / IDS, np.uint32, mode="r")
    offsets = np.load(tmp_path / OFFSETS)
    found = [tokens[start:end].tolist() for start, end in pairwise(offsets)]
    assert found == read(tmp_path) == documents


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_batches_do_not_show_in_the_bytes(tmp_path: Path) -> None:
    documents = [[n % 300] * (n % 5) for n in range(40)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one = write(tmp_path / "one", documents)
    assert one == write(tmp_path / "many", [], *([document] for document in documents), [])


def test_more_documents_and_tokens_than_a_block(tmp_path: Path) -> None:
    count = 600_000
    offsets = np.concatenate(([0], np.cumsum(np.arange(count) % 3))).astype(np.int64)
    ids = (np.arange(int(offsets[-1])) * 7 % 70_000).astype(np.uint32)
    with FlatWriter(STORAGE, str(tmp_path), NAME, 70_000) as writer:
        writer.write_documents(ids, offsets)
    assert np.array_equal(np.fromfile(tmp_path / IDS, "<u4"), ids)
    assert np.array_equal(np.load(tmp_path / OFFSETS), offsets)
    with FlatStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert np.array_equal(reader.lengths(0, count), np.diff(offsets))
        assert reader.lengths(0, count).dtype == np.int32
        for index in (0, 1, 262_143, 262_144, count - 1):
            assert np.array_equal(reader.document(index), ids[offsets[index] : offsets[index + 1]])
        assert reader.locate(ids.size - 1) == (count - 1, 1)
        for outside in (lambda: reader.document(count), lambda: reader.lengths(1, 0)):
            with pytest.raises(IndexError, match="documents must be a range within 0 to 600000"):
                outside()


def test_a_shard_on_a_store() -> None:
    folder = "memory://test-flat"
    with FlatWriter(STORAGE, folder, NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2], [], [3]]))
    assert STORAGE.list_names(folder) == [IDS, OFFSETS]
    with FlatStream.open(STORAGE, folder, NAME) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]


def test_an_id_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"document 1, token 1: id 65536 is not in the vocabulary"):
        write(tmp_path, [[1], [2, 65_536]], vocab_size=65_536)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="vocab_size must be 1 to 2147483648 for token shards"):
        FlatWriter(STORAGE, str(tmp_path), NAME, 2**31 + 1)


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        FlatWriter(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1, 2, 3]]))
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


# What the reader refuses.


def test_every_byte_of_the_offsets_counts(tmp_path: Path) -> None:
    """All but those whose change only moves a boundary: what is between documents is free."""
    write(tmp_path, [[1, 2, 258], [], [7]])
    path = tmp_path / OFFSETS
    whole = path.read_bytes()
    accepted = []
    for at in range(len(whole)):
        for value in {whole[at] ^ 0xFF, whole[at] ^ 0x01, whole[at] ^ 0x80}:
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                accepted.append((at, sum(map(len, read(tmp_path)))))
            except DataError as error:
                assert NAME in str(error)
    # The end of document 0 is 2, and the end of document 1 is 2: still four tokens.
    assert {at for at, _ in accepted} <= {136, 144}
    assert {tokens for _, tokens in accepted} == {4}


def test_every_size_but_the_right_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2, 258], [], [7]])
    for name in (IDS, OFFSETS):
        path = tmp_path / name
        whole = path.read_bytes()
        for broken in [whole[:size] for size in range(len(whole))] + [whole + b"\0", whole * 3]:
            path.write_bytes(broken)
            with pytest.raises(DataError, match=NAME):
                FlatStream.open(STORAGE, str(tmp_path), NAME)
        path.write_bytes(whole)


FIELDS: list[tuple[str, int, int, str]] = [
    ("first", 128, 1, r"npy: byte 128: document 0 begins at token 1; expected 0"),
    (
        "falls",
        136,
        4,
        r"npy: byte 144: document 1 ends at token 3; expected 4, where it begins, or",
    ),
    ("negative", 136, -1, r"npy: byte 136: document 0 ends at token -1; expected 0"),
    ("long", 152, 2**31 + 3, r"npy: byte 152: document 2 ends at token 2147483651; expected 3"),
    (
        "more",
        152,
        5,
        r"\.bin: has 8 bytes; the 3 documents of .* have 5 tokens, of 2 or 4",
    ),
    ("greatest", 152, 2**63 - 1, r"npy: byte 152: document 2 ends at token 922337203685"),
]


@pytest.mark.parametrize(
    ("at", "value", "message"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS]
)
def test_a_broken_offset_is_named(tmp_path: Path, at: int, value: int, message: str) -> None:
    write(tmp_path, [[1, 2, 258], [], [7]])
    data = bytearray((tmp_path / OFFSETS).read_bytes())
    struct.pack_into("<q", data, at, value)
    (tmp_path / OFFSETS).write_bytes(data)
    with pytest.raises(DataError, match=message):
        FlatStream.open(STORAGE, str(tmp_path), NAME)


def problems(folder: Path, vocab_size: int) -> list[str]:
    check = FORMAT.check(NAME, vocab_size)
    for suffix in FORMAT.suffixes:
        check.add(suffix, (folder / f"{NAME}{suffix}").read_bytes())
    with FORMAT.reader(STORAGE, str(folder), NAME) as reader:
        return list(check.problems(reader))


def test_the_check_names_ids_and_widths(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2, 299], [298]])
    assert not problems(tmp_path, 300)
    assert problems(tmp_path, 298) == [
        f"{IDS}: document 1, token 1, byte 4: the id is 299; expected 0 to 297; 2 such ids in this "
        "shard"
    ]
    assert problems(tmp_path, 65_537) == [
        f"{IDS}: ids are stored as uint16; expected uint32 for a vocabulary of 65537"
    ]


def test_golden_hashes(tmp_path: Path) -> None:
    """Of files that `numpy.memmap` and `numpy.load` gave back equal."""
    documents = [[0, 65_535, 7], [], [*range(1, 2_002)], [50_256]]
    for vocab_size, sha256 in GOLDEN.items():
        digest = hashlib.sha256()
        for file in write(tmp_path, documents, vocab_size=vocab_size).files:
            digest.update((tmp_path / file.name).read_bytes())
        assert digest.hexdigest() == sha256


GOLDEN = {
    65_536: "d8d0d0894284524b2004db1f88314f7532ec27715ed938daa13e39f87ca598fd",
    65_537: "1bc9d0ed8434e32fbfa5e95425c3ded2306ab75fe08514e92e72cd751c9a8db3",
}
