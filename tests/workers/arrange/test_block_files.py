"""Block files: each new shard gets its slices."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam.storage import Storage
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
    task = SimpleNamespace(
        folder=SimpleNamespace(storage=Storage()),
        slices_schema=schema,
        new_shards=8,
    )
    shard_numbers = np.concatenate(shards)
    for shard in range(8):
        block = read_block(task, [str(path)], shard, 8)
        assert block["ids"].num_chunks == 1
        chosen = np.flatnonzero(shard_numbers == shard)
        assert block.to_pylist() == rows.take(pa.array(chosen)).to_pylist()
