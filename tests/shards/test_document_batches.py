"""The documents of a shard in batches: each once, in order, from any position to any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpe_beam.shards import document_batches as module
from bpe_beam.shards.document_batches import document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.storage import Storage

LENGTHS = [0, 3, 0, 0, 5, 1, 40, 0, 2, 0]
NAME = "shard-00000-of-00001"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A shard of documents of these lengths, whose ids count from 0."""
    ids = np.arange(sum(LENGTHS), dtype=np.uint32)
    with shard_format("megatron").writer(Storage(), str(tmp_path), NAME, 100) as writer:
        writer.write_documents(ids, np.cumsum([0, *LENGTHS]))
    return str(tmp_path)


@pytest.mark.parametrize(("documents", "tokens"), [(1, 1), (3, 6), (100, 100)])
def test_ranges_that_touch_have_each_document_once(
    folder: str, monkeypatch: pytest.MonkeyPatch, documents: int, tokens: int
) -> None:
    monkeypatch.setattr(module, "_DOCUMENTS", documents)
    monkeypatch.setattr(module, "_TOKENS", tokens)
    total = sum(LENGTHS)
    starts = np.cumsum([0, *LENGTHS])[:-1].tolist()
    with shard_format("megatron").reader(Storage(), folder, NAME) as reader:

        def read(start: int, stop: int | None) -> list[list[int]]:
            found = []
            for ids, offsets, _ in document_batches(reader, start, stop):
                assert offsets[0] == 0
                assert len(offsets) - 1 <= documents
                assert len(ids) <= tokens or len(offsets) == 2
                found += [part.tolist() for part in np.split(ids, offsets[1:-1])]
            return found

        whole = [list(range(at, at + n)) for at, n in zip(starts, LENGTHS, strict=True)]
        assert read(0, None) == whole
        for cut in range(total + 2):
            assert read(0, cut) + read(cut, None) == whole
            assert len(read(0, cut)) == sum(start < cut for start in starts)
