"""`bpe_beam.shards.open` on every store, and on the web."""

from __future__ import annotations

import importlib.util
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starting import missing
from stores import Store
from token_folders import answer, made_documents, write_folder
from web import Web

import bpe_beam
from bpe_beam.errors import DataError

pytestmark = pytest.mark.servers

# Some blocks a shard.
SHARDS = [made_documents(800, 600, seed=seed) for seed in range(2)]
DOCUMENTS = [document for shard in SHARDS for document in shard]
IDS = [token for document in DOCUMENTS for token in document]


def lists(items: Any) -> list[list[int]]:
    return [item.tolist() for item in items]


@pytest.mark.parametrize("format_name", ["dolma", "parquet"])
def test_any_order(store: Store, format_name: str) -> None:
    url = write_folder(store.folder(), format_name, SHARDS, storage=store.storage)
    data = bpe_beam.shards.open(url, storage_options=store.options, memory=2 << 20)
    assert lists(data) == DOCUMENTS
    order = data.order.shuffled(4).items(np.arange(len(data)))
    assert lists(data.shuffled(4)) == [DOCUMENTS[at] for at in order]
    assert lists(data[[7, 1_599, 0]]) == [DOCUMENTS[at] for at in (7, 1_599, 0)]
    assert lists(data.sequences(5_000)) == [
        IDS[at : at + 5_000] for at in range(0, len(IDS) - 4_999, 5_000)
    ]


def test_damage_is_found_when_the_folder_is_opened(store: Store) -> None:
    url = write_folder(store.folder(), "flat", SHARDS, storage=store.storage)
    name = store.storage.join(url, "shard-00001-of-00002.bin")
    whole = store.storage.read_bytes(name)
    store.storage.write_bytes(name, whole + b"\0\0")
    with pytest.raises(DataError, match=rf"of-00002.bin: has {len(whole) + 2} bytes; the manifest"):
        bpe_beam.shards.open(url, storage_options=store.options)
    store.storage.remove(name)
    with pytest.raises(DataError, match="is missing"):
        bpe_beam.shards.open(url, storage_options=store.options)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_read_on(start_store: Callable[[str], Store], method: str) -> None:
    store = start_store("moto")
    url = write_folder(store.folder(), "flat", SHARDS, storage=store.storage)
    data = bpe_beam.shards.open(url, storage_options=store.options)
    assert data[1_000].tolist() == DOCUMENTS[1_000]
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(pickle.dumps(data), 1_500, there))
    process.start()
    there.close()
    try:
        assert here.recv() == DOCUMENTS[1_500]
    finally:
        process.join()
    assert data[1_001].tolist() == DOCUMENTS[1_001]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    if importlib.util.find_spec("aiohttp") is None:
        missing("aiohttp is not installed")
    folder = Path(write_folder(tmp_path / "tokens", "datatrove", SHARDS))
    with Web({path.name: path.read_bytes() for path in folder.iterdir()}).running() as running:
        yield running


@pytest.mark.parametrize("manner", ["ranges", "headless"])
def test_the_web(web: Web, manner: str) -> None:
    data = bpe_beam.shards.open(f"http://127.0.0.1:{web.port}/{manner}")
    assert lists(data) == DOCUMENTS
    assert sorted(lists(data.shuffled(1))) == sorted(DOCUMENTS)


def test_damage_on_the_web_is_found_when_a_shard_is_read(web: Web) -> None:
    web.files["shard-00001-of-00002.ds"] += b"\0\0"
    data = bpe_beam.shards.open(f"http://127.0.0.1:{web.port}/ranges")
    assert data[0].tolist() == DOCUMENTS[0]
    with pytest.raises(DataError, match=r"of-00002.ds: has \d+ bytes; the manifest says"):
        data[-1]
