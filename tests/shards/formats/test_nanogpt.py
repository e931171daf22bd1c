"""nanoGPT shards: the files of flat shards, and one stream when they are joined."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpe_beam.shards.formats import id_stream, shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()


@pytest.mark.parametrize("at_once", [7, 1 << 21])
@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_joined_shards_are_one_train_bin(
    tmp_path: Path,
    vocab_size: int,
    dtype: type,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As nanoGPT's `get_batch` maps it: no header, no gaps, in writes of any size."""
    monkeypatch.setattr(id_stream, "_IDS_AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    shards = [rng.integers(0, vocab_size, size, np.uint32) for size in (1_000, 3, 500)]
    for index, ids in enumerate(shards):
        writer = shard_format("nanogpt").writer(
            STORAGE, str(tmp_path), shard_name(index, 3), vocab_size
        )
        with writer:
            writer.write_documents(ids, np.array([0, 2, 2, ids.size], np.int64))
    joined = tmp_path / "train.bin"
    joined.write_bytes(b"".join(path.read_bytes() for path in sorted(tmp_path.glob("shard-*.bin"))))
    found = np.memmap(joined, dtype, mode="r")
    assert np.array_equal(found, np.concatenate(shards))


def test_the_files_are_those_of_flat_shards(tmp_path: Path) -> None:
    found = []
    for name in ("nanogpt", "flat"):
        folder = tmp_path / name
        folder.mkdir()
        with shard_format(name).writer(STORAGE, str(folder), "shard", 300) as writer:
            writer.write_documents(np.array([5, 6], np.uint32), np.array([0, 1, 1, 2], np.int64))
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert found[0] == found[1]
