"""Our llm.c shards in the hands of package nemo-automodel, which must be installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bpe_beam.shards.formats.llmc import LlmcStream, LlmcWriter
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

STORAGE = Storage()
NAME = "shard-00000-of-00001"
END = 50_256
SEQUENCE = 5


class Array(np.ndarray):
    """What the reader uses of a tensor, over the bytes of the file."""

    def to(self, dtype: Any) -> Array:
        return self.astype(dtype).view(Array)


@pytest.fixture(scope="module")
def automodel() -> Iterator[ModuleType]:
    """The module `nanogpt_dataset` as its own package ships it, with stand-ins for torch."""
    # Not an importorskip: whoever selects these tests wants them run.
    home = Path(str(importlib.metadata.distribution("nemo-automodel").locate_file("")))
    name = "nemo_automodel/components/datasets/llm/nanogpt_dataset.py"
    data = ModuleType("torch.utils.data")
    data.__dict__.update(IterableDataset=object, get_worker_info=lambda: None)
    mesh = ModuleType("torch.distributed.device_mesh")
    mesh.__dict__.update(DeviceMesh=object)
    torch = ModuleType("torch")
    torch.__dict__.update(
        from_numpy=lambda ids: ids.view(Array), dtype=object, Tensor=Array, int32="<i4", int64="<i8"
    )
    with pytest.MonkeyPatch.context() as patch:
        for stand_in in (torch, data, mesh):
            patch.setitem(sys.modules, stand_in.__name__, stand_in)
        for parent in ("torch.utils", "torch.distributed"):
            patch.setitem(sys.modules, parent, ModuleType(parent))
        spec = importlib.util.spec_from_file_location("nanogpt_dataset", home / name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "nanogpt_dataset", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def documents(tmp_path: Path) -> list[list[int]]:
    """Documents that begin with the end token, written; the greatest id is 65,535."""
    rng = np.random.default_rng(11)
    bodies = [rng.integers(0, END, size).tolist() for size in (6, 0, 2_000, 0, 1, 40)]
    documents = [[END, *body] for body in bodies] + [[END, 65_535, 0]]
    ids = np.array([token for document in documents for token in document], np.uint32)
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    with LlmcWriter(STORAGE, str(tmp_path), NAME, 65_536) as writer:
        writer.write_documents(ids, offsets)
    return documents


def test_it_reads_every_id(
    automodel: ModuleType, tmp_path: Path, documents: list[list[int]]
) -> None:
    found = automodel.load_bin_shard(tmp_path / f"{NAME}.bin").tolist()
    assert found == [token for document in documents for token in document]
    starts = [at for at, token in enumerate(found) if token == END]
    assert starts == np.cumsum([0, *map(len, documents)])[:-1].tolist()
    with LlmcStream.open(STORAGE, str(tmp_path), NAME) as reader:
        assert [reader.document(i).tolist() for i in range(len(reader))] == documents


def test_its_samples_begin_with_documents(
    automodel: ModuleType, tmp_path: Path, documents: list[list[int]]
) -> None:
    data = automodel.NanogptDataset(
        str(tmp_path / "*.bin"), SEQUENCE, bos_token=END, align_to_bos=True
    )
    stream = [token for document in documents for token in document]
    samples = iter(data)
    for start in expected_starts(stream):
        sample = next(samples)
        assert sample["input_ids"] == stream[start : start + SEQUENCE]
        assert sample["labels"] == stream[start + 1 : start + SEQUENCE + 1]


def expected_starts(stream: list[int]) -> Iterator[int]:
    """Where samples begin: at the first document behind the sample before."""
    start = 0
    while start + SEQUENCE < len(stream):
        yield start
        behind = start + SEQUENCE + 1
        start = stream.index(END, behind) if END in stream[behind:] else len(stream)
