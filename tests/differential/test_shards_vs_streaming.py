"""Our MDS shards in mosaicml-streaming's own hands, and litdata's in litdata's: both installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from token_folders import made_documents, write_folder
from trainer_readers import litdata, mosaic_streaming

pytestmark = pytest.mark.trainers

VOCAB_SIZE = 2**31
LONG = [*range(65_535, 65_535 + 66_000)]
SHARDS = [[*made_documents(40, 600, 300)[1:], [2**31 - 1], LONG], made_documents(9, 9, 70_000)]
SHARDS = [[document for document in documents if document] for documents in SHARDS]


@pytest.fixture(scope="module")
def mosaic() -> Iterator[tuple[ModuleType, ModuleType]]:
    with mosaic_streaming() as found:
        yield found


def test_mosaic_reads_every_document(mosaic: tuple[ModuleType, ModuleType], tmp_path: Path) -> None:
    write_folder(tmp_path, "mds", SHARDS, VOCAB_SIZE)
    index = json.loads((tmp_path / "index.json").read_bytes())
    assert index["version"] == 2
    for row, documents in zip(index["shards"], SHARDS, strict=True):
        shard = mosaic[0].MDSReader.from_json(str(tmp_path), "", row)
        shard.validate(allow_unsafe_types=False)
        assert len(shard) == len(documents)
        found = [shard[at]["tokens"] for at in range(len(shard))]
        assert {ids.dtype for ids in found} == {np.dtype(np.int32)}
        assert [ids.tolist() for ids in found] == documents


def test_mosaic_writes_the_same_bytes(
    mosaic: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    write_folder(tmp_path / "ours", "mds", SHARDS[:1], VOCAB_SIZE)
    columns = {"tokens": "ndarray:int32"}
    with mosaic[1].MDSWriter(
        out=str(tmp_path / "theirs"), columns=columns, size_limit=None
    ) as writer:
        for document in SHARDS[0]:
            writer.write({"tokens": np.array(document, np.int32)})
    (theirs,), (ours,) = (sorted((tmp_path / name).glob("*.mds")) for name in ("theirs", "ours"))
    assert theirs.read_bytes() == ours.read_bytes()
    rows = [
        json.loads((tmp_path / name / "index.json").read_bytes()) for name in ("theirs", "ours")
    ]
    for row in rows:
        row["shards"][0]["raw_data"]["basename"] = "shard"
    assert rows[0] == rows[1]


def test_litdata_reads_every_token(tmp_path: Path) -> None:
    write_folder(tmp_path, "litdata", SHARDS, VOCAB_SIZE)
    index = json.loads((tmp_path / "index.json").read_bytes())
    size = 100
    with litdata() as module:
        loader = module.TokensLoader(size)
        serializer = SimpleNamespace(setup=lambda _: None)
        loader.setup(index["config"], index["chunks"], {"no_header_numpy": serializer})
        intervals = loader.generate_intervals()
        for number, documents in enumerate(SHARDS):
            path = tmp_path / index["chunks"][number]["filename"]
            ids = [token for document in documents for token in document]
            first, _, _, last = intervals[number]
            assert last - first == len(ids) // size
            for at in range(first, last):
                loader.pre_load_chunk(number, str(path))
                block = loader.load_item_from_chunk(
                    at, number, str(path), first, path.stat().st_size
                )
                start = (at - first) * size
                assert block.tolist() == ids[start : start + size]
