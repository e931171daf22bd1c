"""datatrove shards: their bytes, their limits, and what their reader refuses."""

from __future__ import annotations

import hashlib
import struct
from functools import partial
from pathlib import Path

import numpy as np
import one_shard
import pytest
from one_shard import NAME, STORAGE, pack

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.datatrove import FORMAT, DatatroveStream, DatatroveWriter
from bpe_beam.shards.formats.interface import ShardFiles

pytestmark = pytest.mark.quick

IDS, INDEX, METADATA = (f"{NAME}{suffix}" for suffix in (".ds", ".ds.index", ".ds.metadata"))

write = partial(one_shard.write, DatatroveWriter)
read = partial(one_shard.read, DatatroveStream.open)


@pytest.mark.parametrize(("vocab_size", "letter"), [(300, "H"), (65_536, "H"), (65_537, "I")])
def test_every_byte_of_a_small_shard(tmp_path: Path, vocab_size: int, letter: str) -> None:
    greatest = vocab_size - 1
    files = write(tmp_path, [[1, 2, 258], []], [[greatest], []], vocab_size=vocab_size)

    ids = struct.pack(f"<4{letter}", 1, 2, 258, greatest)
    index = struct.pack("<4Q", 3, 3, 4, 4)
    metadata = f"tokenizer.json|{struct.calcsize(letter)}\n4\n4.00 T".encode()
    for name, data in ((IDS, ids), (INDEX, index), (METADATA, metadata)):
        assert (tmp_path / name).read_bytes() == data
    assert files == ShardFiles(
        4, 4, (FileInfo.of(IDS, ids), FileInfo.of(INDEX, index), FileInfo.of(METADATA, metadata))
    )
    assert read(tmp_path) == [[1, 2, 258], [], [greatest], []]


def test_bytes_that_datatrove_writes(tmp_path: Path) -> None:
    """The hashes are of files of datatrove 0.10.1, from the same documents."""
    documents = [[n % 300] * (n % 7) for n in range(1_000)]
    write(tmp_path, documents)
    found = {name: (tmp_path / name).read_bytes() for name in (IDS, INDEX, METADATA)}
    assert found[METADATA] == b"tokenizer.json|2\n2997\n3.00 kT"
    assert {name: hashlib.sha256(data).hexdigest()[:16] for name, data in found.items()} == GOLDEN


GOLDEN = {
    IDS: "4ef6f74f552e95a2",
    INDEX: "06578bf395673200",
    METADATA: "efe3e1ec7f36b538",
}


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (1, "1.00 T"),
        (12, "12.0 T"),
        (999, "999 T"),
        (1_000, "1.00 kT"),
        (99_960, "100 kT"),
        (123_456, "123 kT"),
        (999_600, "1.00 MT"),
    ],
)
def test_the_number_of_tokens_for_people(tmp_path: Path, tokens: int, shown: str) -> None:
    """As package humanize, which datatrove uses, writes them."""
    with DatatroveWriter(STORAGE, str(tmp_path), NAME, 300) as writer:
        writer.write_documents(np.zeros(tokens, np.uint32), np.array([0, tokens], np.int64))
    lines = (tmp_path / METADATA).read_text().split("\n")
    assert lines == ["tokenizer.json|2", str(tokens), shown]


def test_without_tokens_nothing_is_written(tmp_path: Path) -> None:
    assert write(tmp_path, [[], []]) == ShardFiles(2, 0, ())
    assert not list(tmp_path.iterdir())


def test_batches_do_not_show_in_the_bytes(tmp_path: Path) -> None:
    documents = [[n % 300] * (n % 5) for n in range(40)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one = write(tmp_path / "one", documents)
    assert one == write(tmp_path / "many", [], *([document] for document in documents), [])


def test_a_shard_on_a_store() -> None:
    folder = "memory://test-datatrove"
    with DatatroveWriter(STORAGE, folder, NAME, 300) as writer:
        writer.write_documents(*pack([[1, 2], [], [3]]))
    assert STORAGE.list_names(folder) == [IDS, INDEX, METADATA]
    with DatatroveStream.open(STORAGE, folder, NAME) as reader:
        assert [reader.document(index).tolist() for index in range(3)] == [[1, 2], [], [3]]
        assert reader.locate(2) == (2, 0)


def test_an_id_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"document 1, token 1: id 65536 is not in the vocabulary"):
        write(tmp_path, [[1], [2, 65_536]], vocab_size=65_536)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="vocab_size must be 1 to 2147483648"):
        DatatroveWriter(STORAGE, str(tmp_path), NAME, 2**31 + 1)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        (INDEX, struct.pack("<2Q", 2, 3)[:-1], r"\.ds\.index: has 15 bytes; expected 8 for each"),
        (INDEX, struct.pack("<2Q", 3, 2), r"index: byte 8: document 1 ends at token 2; expected 3"),
        (
            INDEX,
            struct.pack("<2Q", 2**31, 2**31),
            r"index: byte 0: document 0 ends at .*2147483648",
        ),
        (INDEX, struct.pack("<2Q", 2**63, 3), r"index: byte 0: document 0 ends at token -"),
        (INDEX, struct.pack("<2Q", 2, 4), r"\.ds\.metadata: byte 0: .* for the 4 tokens of the in"),
        (INDEX, b"", r"\.ds\.metadata: byte 0: .* for the 0 tokens of the index"),
        (IDS, bytes(8), r"\.ds: has 8 bytes; the 2 documents of .*index have 3 tokens, of 2 byte"),
        (METADATA, b"tokenizer.json|4\n3\n3.00 T", r"\.ds: has 6 bytes; .* 3 tokens, of 4 bytes"),
        (METADATA, b"gpt2|2\n3\n3.00 T", r"metadata: byte 0: the description is 'gpt2|2"),
        (METADATA, b"\xff" * 100_000, r"metadata: byte 0: the description is "),
    ],
)
def test_what_breaks_the_layout(tmp_path: Path, name: str, data: bytes, problem: str) -> None:
    write(tmp_path, [[1, 2], [3]])
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=problem) as raised:
        read(tmp_path)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("name", [IDS, INDEX, METADATA])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    write(tmp_path, [[1]])
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=name):
        read(tmp_path)


def test_an_index_that_changes_while_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, [[1], [2, 3]])
    with DatatroveStream.open(STORAGE, str(tmp_path), NAME) as reader:
        with (tmp_path / INDEX).open("r+b") as file:
            file.write(struct.pack("<2Q", 3, 1))
        with pytest.raises(DataError, match="document 1 ends at token 1; expected 3"):
            reader.lengths(0, 2)


def test_ids_of_another_width_are_named(tmp_path: Path) -> None:
    write(tmp_path, [[1, 2]], vocab_size=65_537)
    check = FORMAT.check(NAME, 300)
    check.add(".ds", (tmp_path / IDS).read_bytes())
    with DatatroveStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert list(check.problems(reader)) == [
            f"{NAME}.ds.metadata: byte 0: ids are stored as uint32; expected uint16 for a "
            "vocabulary of 300"
        ]
