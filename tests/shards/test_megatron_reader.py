"""Our Megatron pair in Megatron's own hands: package megatron-core, which must be installed.

Its dataset module imports torch, yet uses nothing of it to read and write a pair. Small stand-ins
take torch's place, and that of the parent packages, whose own imports want it too.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bpe_beam.shards.formats.megatron import MegatronWriter
from bpe_beam.shards.formats.megatron_reader import MegatronReader
from bpe_beam.storage import Storage

pytestmark = pytest.mark.megatron

STORAGE = Storage()
OURS = "shard-00000-of-00001"
THEIRS = "theirs"
VOCAB_SIZES = {"uint16": 65_536, "int32": 65_537}


class Tensor:
    """What the builder wants of a tensor."""

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = ids

    def numpy(self) -> np.ndarray:
        return self._ids


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names)
    return made


@pytest.fixture(scope="module")
def megatron() -> Iterator[ModuleType]:
    """`megatron.core.datasets.indexed_dataset`, as its own package ships it."""
    # Not an importorskip: whoever selects these tests wants them run.
    home = Path(str(importlib.metadata.distribution("megatron-core").locate_file("megatron")))
    data = module("torch.utils.data", Dataset=type("Dataset", (), {}))
    utils = module("torch.utils", data=data)
    distributed = module("torch.distributed", is_initialized=lambda: False)
    with pytest.MonkeyPatch.context() as patch:
        for stand_in in (
            module("torch", Tensor=Tensor, utils=utils, distributed=distributed),
            utils,
            data,
            distributed,
            module("megatron", __path__=[str(home)]),
            module("megatron.core", __path__=[str(home / "core")]),
            module("megatron.core.datasets", __path__=[str(home / "core" / "datasets")]),
            module("megatron.core.utils", log_single_rank=lambda *args, **named: None),
        ):
            patch.setitem(sys.modules, stand_in.__name__, stand_in)
        before = set(sys.modules)
        yield importlib.import_module("megatron.core.datasets.indexed_dataset")
        for name in set(sys.modules) - before:
            if name.startswith("megatron."):
                del sys.modules[name]


def corpus(vocab_size: int) -> list[np.ndarray]:
    """Documents of many lengths, empty ones at both ends, every boundary id among them."""
    rng = np.random.default_rng(7)
    lengths = [0, 1, 0, 5, 2_000, 0, *rng.integers(0, 40, 500), 3, 0, 0]
    documents = [rng.integers(0, vocab_size, length, dtype=np.uint32) for length in lengths]
    documents[3] = np.array([0, 1, vocab_size - 1, vocab_size - 2, 255], dtype=np.uint32)
    return documents


def write(folder: Path, documents: Sequence[np.ndarray], vocab_size: int) -> None:
    with MegatronWriter(STORAGE, str(folder), OURS, vocab_size) as writer:
        for start in range(0, len(documents), 100):
            part = documents[start : start + 100]
            offsets = np.cumsum([0, *(document.size for document in part)], dtype=np.int64)
            writer.write_documents(np.concatenate(part), offsets)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_megatron_reads_every_document(
    megatron: ModuleType, tmp_path: Path, dtype: str, mmap: bool
) -> None:
    documents = corpus(VOCAB_SIZES[dtype])
    write(tmp_path, documents, VOCAB_SIZES[dtype])

    dataset = megatron.IndexedDataset(str(tmp_path / OURS), mmap=mmap)

    assert len(dataset) == len(documents)
    assert dataset.index.dtype == np.dtype(dtype)
    assert dataset.document_indices.tolist() == list(range(len(documents) + 1))
    assert dataset.sequence_lengths.tolist() == [document.size for document in documents]
    for index, document in enumerate(documents):
        found = dataset[index]
        assert found.dtype == np.dtype(dtype)
        assert found.tolist() == document.tolist()
    assert [part.tolist() for part in dataset[2:7]] == [part.tolist() for part in documents[2:7]]


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_megatron_writes_the_same_bytes(megatron: ModuleType, tmp_path: Path, dtype: str) -> None:
    documents = corpus(VOCAB_SIZES[dtype])
    write(tmp_path, documents, VOCAB_SIZES[dtype])
    theirs = tmp_path / THEIRS
    builder = megatron.IndexedDatasetBuilder(f"{theirs}.bin", dtype=getattr(np, dtype))
    for document in documents:
        builder.add_item(Tensor(document))
        builder.end_document()
    builder.finalize(f"{theirs}.idx")

    for suffix in (".bin", ".idx"):
        ours = (tmp_path / f"{OURS}{suffix}").read_bytes()
        assert ours == (tmp_path / f"{THEIRS}{suffix}").read_bytes()
    with MegatronReader(STORAGE, str(tmp_path), THEIRS) as reader:
        for index, document in enumerate(documents):
            assert reader.document(index).tolist() == document.tolist()


@pytest.mark.parametrize("documents", [0, 3])
def test_megatron_reads_a_shard_without_tokens(
    megatron: ModuleType, tmp_path: Path, documents: int
) -> None:
    write(tmp_path, [np.zeros(0, np.uint32)] * documents, 300)
    for mmap in (True, False):
        dataset = megatron.IndexedDataset(str(tmp_path / OURS), mmap=mmap)
        assert [dataset[index].tolist() for index in range(len(dataset))] == [[]] * documents
