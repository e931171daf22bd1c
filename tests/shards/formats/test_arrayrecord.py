"""ArrayRecord shards: their bytes, their limits, and what their readers refuse."""

from __future__ import annotations

import hashlib
import random
import struct
from functools import partial
from pathlib import Path

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack
from reference_array_record import (
    BLOCK,
    RiegeliFile,
    array_record,
    example,
    finish,
    highway_hash,
    message,
)
from token_folders import write_folder

import bpe_beam
from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import arrayrecord, example_writer
from bpe_beam.shards.formats.arrayrecord import FORMAT
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.shards.manifest import Manifest

pytestmark = pytest.mark.quick

FILE = f"{NAME}.array_record"
# Those of tests/differential/test_shards_vs_array_record.py.
DOCUMENTS = [[], [1, 300, 70_000], [], [2**31 - 1], list(range(200)), []]

write = partial(one_shard.write, FORMAT.writer, vocab_size=2**31)
problems = partial(one_shard.problems, FORMAT)


def made(draw: random.Random, count: int) -> list[list[int]]:
    """Documents of many sizes; some reach over blocks."""
    sizes = (0, 1, 5, 300, 9_000, 50_000)
    lengths = [draw.choice(sizes) for _ in range(count)]
    return [[1], *([draw.randrange(70_000) for _ in range(length)] for length in lengths)]


def test_bytes_that_others_have_read(tmp_path: Path) -> None:
    """`tests/differential/test_shards_vs_array_record.py` proves them by the package's reader."""
    files = write(tmp_path, DOCUMENTS[:2], [], DOCUMENTS[2:])
    data = (tmp_path / FILE).read_bytes()
    assert data == array_record([example(document) for document in DOCUMENTS])
    assert files == ShardFiles(6, 204, (FileInfo.of(FILE, data),))
    assert hashlib.sha256(data).hexdigest()[:16] == "87c8d90d8616be52"


@pytest.mark.parametrize("seed", range(4))
def test_bytes_equal_the_slow_definition(tmp_path: Path, seed: int) -> None:
    documents = made(random.Random(seed), 8)
    write(tmp_path, documents)
    expected = array_record([example(document) for document in documents])
    assert (tmp_path / FILE).read_bytes() == expected


def test_ends_of_blocks(tmp_path: Path) -> None:
    """There, a record ends, an index begins or ends, or the head of a padding just fits or not."""
    for length in (65_205, 65_206, 65_245, 65_356, 65_396):
        write(tmp_path, [[1] * length])
        expected = array_record([example([1] * length)])
        assert (tmp_path / FILE).read_bytes() == expected
        with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
            assert reader.token_count == length


def test_an_index_of_several_blocks(tmp_path: Path) -> None:
    documents = [[7]] * 70_000
    write(tmp_path, documents[:1], documents[1:])
    with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert (len(reader), reader.token_count) == (70_000, 70_000)
    data = (tmp_path / FILE).read_bytes()
    size = len(example([7]))
    entries = [message((1, 64 + (43 + size) * i), (2, size), (3, 1)) for i in range(900)]
    assert b"".join(entries) in b"".join(
        data[at + 24 : at + BLOCK] for at in range(0, len(data), BLOCK)
    )


@pytest.mark.parametrize("window", [1, 300, 1 << 20])
def test_what_is_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(arrayrecord, "_WINDOW", window)
    monkeypatch.setattr(example_writer, "_TOKENS", 64)
    write(tmp_path, DOCUMENTS[:2], [], DOCUMENTS[2:])
    ids, offsets = pack(DOCUMENTS)
    with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert (len(reader), reader.token_count) == (len(DOCUMENTS), ids.size)
        assert reader.lengths(0, len(reader)).tolist() == np.diff(offsets).tolist()
        assert [reader.document(i).tolist() for i in range(len(reader))] == DOCUMENTS
        for start in range(0, ids.size, 17):
            for stop in range(start, ids.size + 1, 13):
                assert np.array_equal(reader.tokens(start, stop), ids[start:stop])
    assert problems(tmp_path) == []
    assert problems(tmp_path, 70_000) == [
        f"{FILE}: document 1, token 2: the id is 70000; expected 0 to 69999; 2 such ids in this "
        "shard"
    ]


def test_a_document_is_read_by_the_index_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = made(random.Random(5), 40)
    url = write_folder(tmp_path, "arrayrecord", [documents], 70_000)
    data = bpe_beam.shards.open(url)
    with monkeypatch.context() as patch:
        patch.setattr(arrayrecord, "_ReadRecords", None)
        order = random.Random(6).sample(range(len(documents)), len(documents))
        assert [data[i].tolist() for i in order] == [documents[i] for i in order]
        assert [ids.tolist() for ids in data] == documents
    # Where documents begin in the ids is in no index.
    starts = data.reader.starts(0, data.token_count)
    lengths = [len(document) for document in documents]
    assert starts.tolist() == (np.cumsum(lengths) - lengths)[np.array(lengths) > 0].tolist()


def test_a_long_document(tmp_path: Path) -> None:
    ids = np.arange(10**7, dtype=np.uint32) % 70_000
    with FORMAT.writer(STORAGE, str(tmp_path), NAME, 70_000) as writer:
        writer.write_documents(ids, np.array([0, ids.size]))
    with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert np.array_equal(reader.document(0), ids)


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_a_shard_on_a_store() -> None:
    url = write_folder("memory://test-arrayrecord", "arrayrecord", [[[1, 2], [], [3]]])
    name = "shard-00000-of-00001"
    with FORMAT.reader(STORAGE, url, name) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]
    assert [ids.tolist() for ids in bpe_beam.shards.open(url)] == [[1, 2], [], [3]]


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"document 1, token 1: id 300 is not in the vocabulary"):
        write(tmp_path, [[1], [2, 300]], vocab_size=300)
    with pytest.raises(UsageError, match="vocab_size must be 1 to 2147483648"):
        write(tmp_path, vocab_size=2**31 + 1)
    monkeypatch.setattr(example_writer, "MAX_TOKENS", 3)
    with pytest.raises(DataError, match=r"document 2 has 4 tokens; the format allows at most 3 a"):
        write(tmp_path, [[1]], [[1, 2, 3], [1, 2, 3, 4]])
    assert not list(tmp_path.iterdir())


def test_every_changed_byte_is_refused(tmp_path: Path) -> None:
    """All of the file is checked, without a hash of it: padding, too."""
    write(tmp_path, DOCUMENTS * 3)
    path = tmp_path / FILE
    whole = path.read_bytes()
    draw = random.Random(11)
    begin = 64 + whole[64:].index(b"group_size") + 300
    for at in (*range(0, begin, 3), *range(BLOCK - 20, BLOCK + 200, 3)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"{FILE}: byte \d+: "):
            FORMAT.reader(STORAGE, str(tmp_path), NAME)


def test_each_of_1000_corruptions_is_named(tmp_path: Path) -> None:
    """Bytes changed, left out, doubled, or cut off: none is read as other documents."""
    write(tmp_path, DOCUMENTS * 3)
    path = tmp_path / FILE
    whole = path.read_bytes()
    draw = random.Random(11)
    for _ in range(1000):
        at, count = draw.randrange(2_400), draw.randrange(1, 20)
        at = draw.choice((at, BLOCK + at % 200))
        damaged = draw.choice(
            (
                whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + whole[at + 1 :],
                whole[:at] + whole[at + count :],
                whole[:at] + whole[at + count :] + bytes(count),
                whole[:at] + whole[at : at + count] + whole[at:-count],
                whole[:at],
                whole[:at] + bytes(len(whole) - at),
            )
        )
        if damaged == whole:
            continue
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"{FILE}: (byte|has) \d+"):
            FORMAT.reader(STORAGE, str(tmp_path), NAME)


def test_what_the_errors_say(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2]])
    path = tmp_path / FILE
    data = path.read_bytes()
    second = data.index(example([2])) - 43
    other = RiegeliFile()
    other.chunk(b"s", (), b"")
    other.records([b"no Example"])
    for damaged, said in (
        (data[:-1], r"has 131071 bytes; expected a multiple of 65536, at least 131072"),
        (b"x" + data[1:], r"byte 0: it does not begin as an ArrayRecord file"),
        (data[:BLOCK] * 2, r"byte 65536: it does not say where the index is"),
        (
            data[:second] + b"x" + data[second + 1 :],
            rf"byte {second}: record 1: the checksum of it",
        ),
        (data[: second + 60] + b"x" + data[second + 61 :], rf"byte {second}: record 1: its checks"),
        (other.data + data[len(other.data) :], r"byte 64: record 0: it is no Example"),
        (data + data[-BLOCK:], rf"byte {2 * BLOCK}: expected its end; it has {3 * BLOCK} bytes"),
        (data[:400] + b"x" + data[401:], r"byte \d+: the index is not the one of the records"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=said):
            FORMAT.reader(STORAGE, str(tmp_path), NAME)
    path.unlink()
    with pytest.raises(DataError, match="No such file"):
        FORMAT.reader(STORAGE, str(tmp_path), NAME)


SIZE = len(example([1]))
SECOND = 64 + 43 + SIZE
TRUE = [(64, SIZE), (SECOND, SIZE)]


@pytest.mark.parametrize(
    "entries",
    [
        [(64, SIZE), (66, SIZE)],  # in the middle of a record
        [(64, SIZE), (64, SIZE)],
        [(SECOND, SIZE), (64, SIZE)],
        [(64, SIZE), (BLOCK + 3, SIZE)],  # no chunk begins there
        [(64, SIZE + 1), (SECOND, SIZE)],
        [(64, SIZE)],
        [*TRUE, (SECOND + 43 + SIZE, SIZE)],
        TRUE,
    ],
)
def test_an_index_that_lies_with_true_checksums(
    tmp_path: Path, entries: list[tuple[int, int]]
) -> None:
    url = write_folder(tmp_path, "arrayrecord", [[[1], [2]]])
    file = RiegeliFile()
    file.chunk(b"s", (), b"")
    for token in (1, 2):
        file.records([example([token])])
    finish(file, entries)
    (tmp_path / FILE).write_bytes(file.data)
    if entries == TRUE:
        assert file.data == array_record([example([1]), example([2])])
        return
    with pytest.raises(DataError, match=FILE):
        FORMAT.reader(STORAGE, url, NAME)
    manifest = Manifest.from_bytes((tmp_path / "__manifest").read_bytes())
    assert len(file.data) == manifest.shards[0].files[0].bytes
    with pytest.raises(DataError, match=FILE):
        [bpe_beam.shards.open(url)[i] for i in (1, 0)]


def test_an_index_of_a_position_where_no_chunk_begins(tmp_path: Path) -> None:
    url = write_folder(tmp_path, "arrayrecord", [[[1] * 70_000, [2]]], 300)
    path = tmp_path / FILE
    file = RiegeliFile()
    file.chunk(b"s", (), b"")
    file.records([example([1] * 70_000)])
    file.records([example([2])])
    index = finish(file, [(64, len(example([1] * 70_000))), (BLOCK + 3, SIZE)])
    assert path.stat().st_size == len(file.data)
    path.write_bytes(file.data)
    with pytest.raises(DataError, match=rf"{FILE}: byte {index}: this is no index"):
        bpe_beam.shards.open(url)[1]


def test_the_slow_hash_has_the_value_of_a_known_file() -> None:
    """The hash of no bytes stands in the first chunk of every Riegeli file."""
    assert highway_hash(b"") == 0x72C3B1E9C0139FE1
    assert _native.array_record_start()[40:48].tobytes() == struct.pack("<Q", highway_hash(b""))


def test_the_binding_refuses_wrong_arguments() -> None:
    ids, offsets = pack([[1], [2]])
    for position in (-1, 1, 24, BLOCK + 24, 2**62 + 64):
        with pytest.raises(ValueError, match="position must be one where a chunk can begin, got"):
            _native.array_records(ids, offsets, position)
        with pytest.raises(ValueError, match="position must be"):
            _native.read_array_records(b"", position)
    with pytest.raises(ValueError, match="offsets must ascend within the data"):
        _native.array_records(ids, offsets + 1, 64)
    for rows in (np.zeros((0, 3), np.int64), np.zeros((2, 2), np.int64), np.zeros(3, np.int64)):
        with pytest.raises(ValueError, match=r"rows must be int64\[records \+ 1, 3\]"):
            _native.ArrayRecordTail(rows)
