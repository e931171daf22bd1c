"""Our Megatron pair in Megatron's own hands: package megatron-core, which must be installed."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from megatron_core import Tensor, gpt_samples, importable
from mixtures import made_mixture

import bpe_beam
from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.shards.formats.megatron_preprocess_data import PreprocessDataWriter
from bpe_beam.storage import Storage

pytestmark = pytest.mark.megatron

STORAGE = Storage()
OURS = "shard-00000-of-00001"
THEIRS = "theirs"
VOCAB_SIZES = {"uint16": 65_536, "int32": 65_537}


@pytest.fixture(scope="module")
def megatron() -> Iterator[ModuleType]:
    """`megatron.core.datasets.indexed_dataset`, as its own package ships it."""
    with importable():
        yield importlib.import_module("megatron.core.datasets.indexed_dataset")


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
    with MegatronStream.open(STORAGE, str(tmp_path), THEIRS) as reader:
        for index, document in enumerate(documents):
            assert reader.document(index).tolist() == document.tolist()


def test_the_type_of_ids_is_that_of_preprocess_data(megatron: ModuleType) -> None:
    for vocab_size in (256, 65_499, 65_500, 65_535, 65_536, 65_537, 1 << 20):
        theirs = megatron.DType.optimal_dtype(vocab_size)
        assert PreprocessDataWriter.dtype_for(vocab_size) == np.dtype(theirs)


def test_megatron_reads_a_mixture(megatron: ModuleType, tmp_path: Path) -> None:
    out = made_mixture(tmp_path, sequence_length=64)
    shards = [path.with_suffix("") for path in sorted(out.glob("shard-*.bin"))]
    read = [megatron.IndexedDataset(str(shard)) for shard in shards]
    rows = [dataset[at].tolist() for dataset in read for at in range(len(dataset))]
    assert {len(row) for row in rows} == {64}
    assert rows == [ids.tolist() for ids in bpe_beam.shards.open(out)]


def test_the_list_of_blend_is_what_megatron_takes(megatron: ModuleType) -> None:
    """Also two prefixes, which are not a weight and a prefix."""
    utils = importlib.import_module("megatron.core.datasets.utils")
    assert utils.get_blend_from_list(["0.25", "a/x", "0.75", "b/y"]) == (
        ["a/x", "b/y"],
        [0.25, 0.75],
    )
    assert utils.get_blend_from_list(["a/x", "b/y"]) == (["a/x", "b/y"], None)


# What training reads: GPTDataset, which cuts samples across documents.

SEQUENCE = 8


@pytest.mark.parametrize("samples", [None, 60])
def test_training_reads_every_token(megatron: ModuleType, tmp_path: Path, samples: int) -> None:
    """Empty documents do no harm, at either end and in between."""
    documents = corpus(300)[6:100]
    documents = [documents[0][:0], *documents, documents[0][:0]]
    write(tmp_path, documents, 300)

    found, order = gpt_samples(tmp_path / OURS, SEQUENCE, samples)

    read = np.concatenate([documents[index] for index in order])
    assert len(found) == (read.size - 1) // SEQUENCE if samples is None else len(found) >= samples
    for number, sample in enumerate(found):
        assert sample == read[SEQUENCE * number : SEQUENCE * (number + 1) + 1].tolist()


def test_training_fails_on_a_pair_without_tokens(megatron: ModuleType, tmp_path: Path) -> None:
    """Why none is written: what earlier versions wrote raises, or would loop for ever."""
    header = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 0, 1)
    (tmp_path / f"{OURS}.idx").write_bytes(header + struct.pack("<q", 0))
    (tmp_path / f"{OURS}.bin").write_bytes(b"\0\0")
    with pytest.raises(ValueError, match="zero-size array"):
        gpt_samples(tmp_path / OURS, SEQUENCE)
    gpt = importlib.import_module("megatron.core.datasets.gpt_dataset")
    # With a number of samples wanted it asks for one more epoch of no tokens, and again.
    with pytest.MonkeyPatch.context() as patch:
        epochs = iter([0, 0, 0])
        patch.setattr(gpt.GPTDataset, "_get_num_tokens_per_epoch", lambda self: Epoch(epochs))
        with pytest.raises(StopIteration):
            gpt_samples(tmp_path / OURS, SEQUENCE, samples=5)


class Epoch(int):
    """The tokens of an epoch, none; ends a loop that adds them up for ever."""

    def __new__(cls, left: Iterator[int]) -> Epoch:
        made = super().__new__(cls, 0)
        made.left = left  # type: ignore[attr-defined]
        return made

    def __radd__(self, other: int) -> int:
        return other + next(self.left)  # type: ignore[attr-defined]

    def __lt__(self, other: int) -> bool:
        return True
