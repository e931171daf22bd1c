"""Megatron shards as `preprocess_data.py` writes them: others than ours for some vocabularies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpe_beam.shards.formats import shard_format
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"


@pytest.mark.parametrize(
    ("vocab_size", "code"), [(65_499, 8), (65_500, 4), (65_536, 4), (65_537, 4)]
)
def test_the_type_of_ids(tmp_path: Path, vocab_size: int, code: int) -> None:
    format_ = shard_format("megatron_preprocess_data")
    ids = np.array([0, vocab_size - 1], np.uint32)
    with format_.writer(Storage(), str(tmp_path), NAME, vocab_size) as writer:
        writer.write_documents(ids, np.array([0, 2]))
    assert (tmp_path / f"{NAME}.idx").read_bytes()[17] == code
    with format_.reader(Storage(), str(tmp_path), NAME) as reader:
        assert reader.document(0).tolist() == ids.tolist()
        for other, count in ((vocab_size, 0), (300 if code == 4 else 70_000, 1)):
            check = format_.check(NAME, other)
            for suffix in format_.suffixes:
                check.add(suffix, (tmp_path / f"{NAME}{suffix}").read_bytes())
            assert len([*check.problems(reader)]) == count
