"""TFRecord shards: their bytes, their limits, and what their reader refuses."""

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

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import tfrecord
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.shards.formats.record_file import RecordReader
from bpe_beam.shards.formats.tfrecord import FORMAT

pytestmark = pytest.mark.quick

FILE = f"{NAME}.tfrecord"
# Those of tests/differential/test_shards_vs_tfrecord.py.
DOCUMENTS = [[], [1, 300, 70_000], [], [2**31 - 1], list(range(200)), []]

write = partial(one_shard.write, FORMAT.writer, vocab_size=2**31)
problems = partial(one_shard.problems, FORMAT)


def test_every_byte_of_a_small_shard(tmp_path: Path) -> None:
    files = write(tmp_path, [[1, 300]])
    example = b"\x0a\x16\x0a\x14\x0a\x09input_ids\x12\x07\x1a\x05\x0a\x03\x01\xac\x02"
    data = (tmp_path / FILE).read_bytes()
    assert data[:8] == struct.pack("<Q", len(example))
    assert data[12:-4] == example
    assert files == ShardFiles(1, 2, (FileInfo.of(FILE, data),))


def test_bytes_that_others_have_read(tmp_path: Path) -> None:
    """`tests/differential/test_shards_vs_tfrecord.py` proves them by the reader of tfrecord."""
    write(tmp_path, DOCUMENTS)
    found = hashlib.sha256((tmp_path / FILE).read_bytes()).hexdigest()
    assert found[:16] == "48f0743ed1c9dad4"


@pytest.mark.parametrize("window", [1, 30, 1 << 20])
def test_what_is_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(tfrecord, "_WINDOW", window)
    monkeypatch.setattr(tfrecord, "_TOKENS", 64)
    write(tmp_path, DOCUMENTS[:2], [], DOCUMENTS[2:])
    ids, offsets = pack(DOCUMENTS)
    with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert (len(reader), reader.token_count) == (len(DOCUMENTS), ids.size)
        assert reader.lengths(0, len(reader)).tolist() == np.diff(offsets).tolist()
        assert [reader.document(i).tolist() for i in range(len(reader))] == DOCUMENTS
        for start in range(0, ids.size, 17):
            for stop in range(start, ids.size + 1, 13):
                assert np.array_equal(reader.tokens(start, stop), ids[start:stop])
        assert isinstance(reader, RecordReader)
        assert [reader.locate(token) for token in (0, 2, 3, 4)] == [(1, 0), (1, 2), (3, 0), (4, 0)]
        with pytest.raises(IndexError):
            reader.tokens(0, ids.size + 1)
    assert problems(tmp_path) == []
    assert problems(tmp_path, 70_000) == [
        f"{FILE}: document 1, token 2: the id is 70000; expected 0 to 69999; 2 such ids in this "
        "shard"
    ]


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_a_shard_on_a_store() -> None:
    folder = "memory://test-tfrecord"
    with FORMAT.writer(STORAGE, folder, NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2], [], [3]]))
    assert STORAGE.list_names(folder) == [FILE]
    with FORMAT.reader(STORAGE, folder, NAME) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"document 1, token 1: id 300 is not in the vocabulary"):
        write(tmp_path, [[1], [2, 300]], vocab_size=300)
    with pytest.raises(UsageError, match="vocab_size must be 1 to 2147483648"):
        write(tmp_path, vocab_size=2**31 + 1)
    monkeypatch.setattr(tfrecord, "MAX_TOKENS", 3)
    with pytest.raises(DataError, match=r"document 2 has 4 tokens; the format allows at most 3 a"):
        write(tmp_path, [[1]], [[1, 2, 3], [1, 2, 3, 4]])
    assert not list(tmp_path.iterdir())


def test_each_of_1000_corruptions_is_named(tmp_path: Path) -> None:
    """Bytes changed, left out, doubled, or cut off: none is read as other documents."""
    write(tmp_path, DOCUMENTS * 3)
    path = tmp_path / FILE
    whole = path.read_bytes()
    draw = random.Random(11)
    for _ in range(1000):
        at, count = draw.randrange(len(whole)), draw.randrange(1, 20)
        damaged = draw.choice(
            (
                whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + whole[at + 1 :],
                whole[:at] + whole[at + count :],
                whole[:at] + whole[at : at + count] + whole[at:],
            )
        )
        path.write_bytes(damaged)
        try:
            reader = FORMAT.reader(STORAGE, str(tmp_path), NAME)
        except DataError as error:
            assert f"{FILE}: byte " in str(error)
            continue
        # Whole records at the end may be missing: the manifest has their number.
        with reader:
            assert whole.startswith(damaged)
            assert len(reader) < len(DOCUMENTS) * 3


def test_what_the_errors_say(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2]])
    path = tmp_path / FILE
    data = path.read_bytes()
    half = len(data) // 2
    for damaged, said in (
        (data[:-1], rf"byte {half}: record 1 has at least {half} bytes; the file has {half - 1}"),
        (data[:half] + b"\0" + data[half + 1 :], rf"byte {half}: record 1: the checksum of its le"),
        (data[:-5] + b"\7" + data[-4:], rf"byte {half}: record 1: its checksum does not match"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=said):
            FORMAT.reader(STORAGE, str(tmp_path), NAME)
    path.unlink()
    with pytest.raises(DataError, match="No such file"):
        FORMAT.reader(STORAGE, str(tmp_path), NAME)


def test_the_binding_refuses_offsets_outside_the_ids() -> None:
    with pytest.raises(ValueError, match="offsets must ascend within the data"):
        _native.tf_records(np.zeros(2, np.uint32), np.array([0, 3]))
