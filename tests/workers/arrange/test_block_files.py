"""Block files: each new shard gets its slices."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.storage.read_ahead import read_ahead
from bpe_beam.workers.arrange import block_files
from bpe_beam.workers.arrange.block_files import BlockFileWriter, read_block


@pytest.mark.parametrize("buffer_bytes", [0, 3_000, 10**9])
def test_each_new_shard_has_one_block(
    buffer_bytes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However often the buffer is full, every new shard gets its slices in their order."""
    monkeypatch.setattr(block_files, "BUFFER_BYTES", buffer_bytes)
    rng = np.random.default_rng(4)
    schema = pa.schema([("position", pa.int64()), ("ids", pa.large_binary())])
    shards = [rng.integers(0, 7, size) for size in (100, 0, 1, 300, 50)]
    shards[3][:] = 5
    rows = pa.RecordBatch.from_pydict(
        {"position": range(451), "ids": [rng.bytes(size) for size in rng.integers(0, 90, 451)]},
        schema=schema,
    )
    path = tmp_path / "scatter.bin"
    with path.open("wb") as stored, BlockFileWriter(stored, schema, 8) as file:
        start = 0
        for each in shards:
            file.add(rows.slice(start, each.size), each)
            start += each.size
        file.finish()
    task = task_of(schema)
    shard_numbers = np.concatenate(shards)
    for small_bytes in (block_files.SMALL_BLOCK_BYTES, 1000):
        monkeypatch.setattr(block_files, "SMALL_BLOCK_BYTES", small_bytes)
        for shard in range(8):
            block = read_block(task, [str(path)], shard, 8)
            assert block["ids"].num_chunks == 1
            chosen = np.flatnonzero(shard_numbers == shard)
            assert block.to_pylist() == rows.take(pa.array(chosen)).to_pylist()


SCHEMA = pa.schema([("position", pa.int64()), ("ids", pa.large_binary())])


def task_of(schema: pa.Schema) -> Any:
    """Return what `read_block` needs of a task."""
    return SimpleNamespace(folder=SimpleNamespace(storage=Storage()), slices_schema=schema)


def write_file(url: str, ids: list[bytes], blocks: list[int]) -> None:
    """Write a block file of 3 blocks."""
    rows = pa.RecordBatch.from_pydict({"position": range(len(ids)), "ids": ids}, schema=SCHEMA)
    with Storage().create(url) as stored, BlockFileWriter(stored, SCHEMA, 3) as file:
        file.add(rows, np.array(blocks))
        file.finish()


@pytest.mark.parametrize("small_bytes", [block_files.SMALL_BLOCK_BYTES, 300])
def test_blocks_of_remote_files_are_read_ahead_and_come_in_order(
    small_bytes: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Of 40 files, some without a slice; some blocks are larger than small ones."""
    monkeypatch.setattr(block_files, "SMALL_BLOCK_BYTES", small_bytes)
    ahead: list[int] = []

    def recorded(call: Any, items: Any, number: int) -> Any:
        ahead.append(number)
        return read_ahead(call, items, number)

    monkeypatch.setattr(block_files, "read_ahead", recorded)
    urls, expected = [], []
    for number in range(40):
        urls.append(f"memory://{request.node.name}/{number:02}.bin")
        ids = [
            bytes([number, each]) * (100 if number % 7 == 0 else 2) for each in range(number % 5)
        ]
        write_file(urls[-1], ids, [each % 3 for each in range(len(ids))])
        expected += ids[1::3]
    assert read_block(task_of(SCHEMA), urls, 1, 3)["ids"].to_pylist() == expected
    assert ahead == [5]


@pytest.mark.parametrize("small_bytes", [block_files.SMALL_BLOCK_BYTES, 50])
def test_a_damaged_file_is_an_error_and_is_removed(
    small_bytes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cut, or with another byte anywhere: the right rows if the block is whole, or this error."""
    monkeypatch.setattr(block_files, "SMALL_BLOCK_BYTES", small_bytes)
    path, ids = tmp_path / "blocks.bin", [b"abcd", b"efgh", b"ijkl"]
    write_file(str(path), ids, [0, 1, 1])
    whole = path.read_bytes()
    damaged = [whole[:size] for size in (0, 20, len(whole) - 8, len(whole) // 2)]
    for at in range(len(whole)):
        damaged += [
            whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :] for flip in (1, 128, 255)
        ]
    refused = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            assert read_block(task_of(SCHEMA), [str(path)], 1, 3)["ids"].to_pylist() == ids[1:]
        except DataError as error:
            refused += 1
            assert str(error).startswith(f"{path} had other bytes than were written")
            assert not path.exists()
    assert refused > len(whole) // 3


@pytest.mark.parametrize("number", [-1, 3])
def test_a_slice_without_a_block_is_an_error(number: int, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        write_file(str(tmp_path / "blocks.bin"), [b"abcd", b"efgh"], [0, number])
