"""A data set of ours in the loaders of others: grain, which must be installed, and torch's code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from token_folders import made_documents, write_folder

import bpe_beam
from bpe_beam.shards.dataset import TokenDataset

pytestmark = pytest.mark.trainers

SHARDS = [made_documents(40, 30, seed=seed) for seed in range(3)]
DOCUMENTS = [document for shard in SHARDS for document in shard]


@pytest.fixture
def dataset(tmp_path: Path) -> TokenDataset:
    return bpe_beam.shards.open(write_folder(tmp_path / "tokens", "datatrove", SHARDS))


def test_grain_reads_and_resumes(dataset: TokenDataset) -> None:
    grain = importlib.import_module("grain")

    data = grain.MapDataset.source(dataset).map(np.ndarray.tolist)
    assert [data[at] for at in range(len(data))] == DOCUMENTS
    assert isinstance(dataset, grain.sources.RandomAccessDataSource)
    shuffled = data.shuffle(seed=5)
    order = grain.MapDataset.range(120).shuffle(seed=5)
    expected = [DOCUMENTS[order[at]] for at in range(120)]
    iterator = iter(shuffled.to_iter_dataset())
    head = [next(iterator) for _ in range(50)]
    state = iterator.get_state()
    resumed = iter(shuffled.to_iter_dataset())
    resumed.set_state(state)
    assert head + list(resumed) == expected == [ids.tolist() for ids in dataset.shuffled(5)]


def test_processes_of_grain_read_each_document_once(dataset: TokenDataset) -> None:
    grain = importlib.import_module("grain")

    sampler = grain.samplers.IndexSampler(
        len(dataset), grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=3
    )
    loader = grain.DataLoader(data_source=dataset, sampler=sampler, worker_count=2)
    assert sorted(ids.tolist() for ids in loader) == sorted(DOCUMENTS)


@pytest.fixture
def torch_dataset() -> Iterator[Any]:
    """Yield our module for torch, with a stand-in for the two names of torch that it uses."""

    class Dataset:
        def __class_getitem__(cls, item: object) -> type[Dataset]:
            return cls

    torch, utils = ModuleType("torch"), ModuleType("torch.utils")
    data = ModuleType("torch.utils.data")
    torch.__dict__.update(Tensor=np.ndarray, from_numpy=lambda array: ("tensor", array))
    data.__dict__.update(Dataset=Dataset)
    name = "bpe_beam.shards.torch_dataset"
    with pytest.MonkeyPatch.context() as patch:
        for module in (torch, utils, data):
            patch.setitem(sys.modules, module.__name__, module)
        patch.delitem(sys.modules, name, raising=False)
        yield importlib.import_module(name)
        del sys.modules[name]


def test_torch_gets_int64_tensors(torch_dataset: Any, dataset: TokenDataset) -> None:
    view = dataset.shuffled(1)[10:]
    tensors = view.to_torch()
    assert isinstance(tensors, torch_dataset.TorchTokens)
    assert len(tensors) == 110
    (kind, ids), batch = tensors[4], tensors.__getitems__([4, 0])
    assert (kind, ids.dtype, ids.tolist()) == ("tensor", np.int64, view[4].tolist())
    assert [each[1].tolist() for each in batch] == [view[4].tolist(), view[0].tolist()]
