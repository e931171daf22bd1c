"""ArrayRecord shards: their bytes, their limits, and what their readers refuse."""

from __future__ import annotations

import hashlib
import importlib
import os
import random
import sys
from functools import partial
from pathlib import Path

import numpy as np
import one_shard
import pytest
from array_record.python import array_record_module
from one_shard import NAME, STORAGE, pack
from token_folders import write_folder

import bpe_beam
from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import arrayrecord, tfrecord
from bpe_beam.shards.formats.arrayrecord import FORMAT
from bpe_beam.shards.formats.interface import ShardFiles

FILE = f"{NAME}.array_record"
# Those of tests/differential/test_shards_vs_array_record.py.
DOCUMENTS = [[], [1, 300, 70_000], [], [2**31 - 1], list(range(200)), []]

write = partial(one_shard.write, FORMAT.writer, vocab_size=2**31)
problems = partial(one_shard.problems, FORMAT)


def random_documents(draw: random.Random, count: int) -> list[list[int]]:
    """Documents of many sizes; some are longer than the package's blocks of 64 KiB."""
    lengths = [draw.choice((0, 1, 5, 300, 9_000, 50_000)) for _ in range(count)]
    return [[1], *([draw.randrange(70_000) for _ in range(length)] for length in lengths)]


def test_bytes_that_others_have_read(tmp_path: Path) -> None:
    """`tests/differential/test_shards_vs_array_record.py` proves them by grain."""
    files = write(tmp_path, DOCUMENTS[:2], [], DOCUMENTS[2:])
    data = (tmp_path / FILE).read_bytes()
    assert files == ShardFiles(6, 204, (FileInfo.of(FILE, data),))
    assert hashlib.sha256(data).hexdigest()[:16] == "87c8d90d8616be52"


@pytest.mark.parametrize("window", [1, 300, 1 << 20])
def test_what_is_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(arrayrecord, "_WINDOW", window)
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
    assert problems(tmp_path) == []
    assert problems(tmp_path, 70_000) == [
        f"{FILE}: document 1, token 2: the id is 70000; expected 0 to 69999; 2 such ids in this "
        "shard"
    ]


def test_any_document_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = random_documents(random.Random(5), 40)
    url = write_folder(tmp_path, "arrayrecord", [documents], 70_000)
    data = bpe_beam.shards.open(url)
    with monkeypatch.context() as patch:
        patch.setattr(arrayrecord._Records, "bounds", None)
        order = random.Random(6).sample(range(len(documents)), len(documents))
        assert [data[i].tolist() for i in order] == [documents[i] for i in order]
        assert [ids.tolist() for ids in data] == documents
    # The index does not say where documents begin in the ids.
    starts = data.reader.starts(0, data.token_count)
    lengths = [len(document) for document in documents]
    assert starts.tolist() == (np.cumsum(lengths) - lengths)[np.array(lengths) > 0].tolist()


def test_few_of_many_shards_are_open(tmp_path: Path) -> None:
    url = write_folder(tmp_path, "arrayrecord", [[[1, i]] for i in range(30)])
    data = bpe_beam.shards.open(url, memory=3 << 20)
    descriptors = Path("/dev/fd")
    before = len([*descriptors.iterdir()])
    order = random.Random(1).choices(range(30), k=60)
    assert [data[i].tolist() for i in order] == [[1, i] for i in order]
    assert len([*descriptors.iterdir()]) < before + 8


def test_a_forked_process_reads(tmp_path: Path) -> None:
    data = bpe_beam.shards.open(write_folder(tmp_path, "arrayrecord", [[[1], [2, 3]]]))
    assert data[1].tolist() == [2, 3]
    child = os.fork()
    if not child:
        os._exit(0 if data[0].tolist() == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0


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
    monkeypatch.setattr(tfrecord, "MAX_TOKENS", 3)
    with pytest.raises(DataError, match=r"document 2 has 4 tokens; the format allows at most 3 a"):
        write(tmp_path, [[1]], [[1, 2, 3], [1, 2, 3, 4]])
    assert not list(tmp_path.iterdir())


def test_a_full_disk_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrayrecord, "Path", lambda *_: Path("/dev/full"))
    with pytest.raises(DataError, match=f"the temporary file with the records of {NAME} failed"):
        write(tmp_path, [list(range(50_000))] * 20)
    assert not list(tmp_path.iterdir())


def test_no_corruption_is_read_as_other_documents(tmp_path: Path) -> None:
    """Bytes changed, removed, doubled, or cut off are refused, or make no difference."""
    write(tmp_path, DOCUMENTS * 3)
    path = tmp_path / FILE
    whole = path.read_bytes()
    draw = random.Random(11)
    refused = 0
    for _ in range(300):
        at, count = draw.randrange(2_400), draw.randrange(1, 20)
        at = draw.choice((at, (1 << 16) + at % 200))
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
        path.write_bytes(damaged)
        try:
            with FORMAT.reader(STORAGE, str(tmp_path), NAME) as reader:
                assert [reader.document(i).tolist() for i in range(len(reader))] == DOCUMENTS * 3
        except DataError as error:
            assert FILE in str(error)
            refused += 1
    assert refused > 200


def test_what_the_errors_say(tmp_path: Path) -> None:
    path = tmp_path / FILE
    write(tmp_path, [[1], [2]])
    whole = path.read_bytes()
    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1")
    writer.write(b"no Example")
    writer.close()
    other = path.read_bytes()
    for damaged, said in (
        (b"text", "the index cannot be read: "),
        (whole[:110] + b"x" + whole[111:], "record 0 or one of those that follow cannot be read: "),
        (other, "record 0: it is no Example with one list input_ids"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=f"{FILE}: {said}"):
            FORMAT.reader(STORAGE, str(tmp_path), NAME)
    path.unlink()
    with pytest.raises(DataError, match="No such file"):
        FORMAT.reader(STORAGE, str(tmp_path), NAME)


def test_without_the_package_the_format_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "array_record.python", None)
    monkeypatch.delitem(sys.modules, "bpe_beam.shards.formats.arrayrecord")
    with pytest.raises(UsageError, match=r"pip install 'bpe-beam\[arrayrecord\]'"):
        importlib.import_module("bpe_beam.shards.formats.arrayrecord")


def test_the_binding_refuses_wrong_arguments() -> None:
    ids, offsets = pack([[1], [2]])
    with pytest.raises(ValueError, match="offsets must ascend within the data"):
        _native.examples(ids, offsets + 1)
    data, ends = _native.examples(ids, offsets)
    for wrong in (ends + 1, ends[::-1].copy(), -ends):
        with pytest.raises(ValueError, match="ends must ascend within the data"):
            _native.read_examples(data, wrong)
