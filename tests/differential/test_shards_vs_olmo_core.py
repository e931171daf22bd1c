"""Our dolma shards in OLMo-core's own hands: package ai2-olmo-core, which must be installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from trainer_readers import olmo_core

from bpe_beam.shards.formats.dolma import DolmaWriter
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

STORAGE = Storage()
NAME = "shard-00000-of-00001"
VOCAB_SIZES = {"uint8": 256, "uint16": 65_536, "uint32": 65_537}
END = 0


@pytest.fixture(scope="module")
def utils() -> Iterator[ModuleType]:
    with olmo_core() as found:
        yield found


def corpus(vocab_size: int) -> list[np.ndarray]:
    """Documents of many lengths, some of them empty, without the id END; the greatest id in one."""
    rng = np.random.default_rng(7)
    lengths = [0, 1, 0, 5, 2_000, 0, *rng.integers(0, 40, 300), 3, 0, 0]
    documents = [rng.integers(1, vocab_size, length, dtype=np.uint32) for length in lengths]
    documents[3] = np.array([1, 2, vocab_size - 1, vocab_size - 2, 255], dtype=np.uint32)
    return documents


def write(folder: Path, documents: Sequence[np.ndarray], vocab_size: int) -> str:
    """Write a shard, and return the path of its ids."""
    with DolmaWriter(STORAGE, str(folder), NAME, vocab_size) as writer:
        for start in range(0, len(documents), 100):
            part = documents[start : start + 100]
            offsets = np.cumsum([0, *(document.size for document in part)], dtype=np.int64)
            writer.write_documents(np.concatenate(part), offsets)
    return str(folder / f"{NAME}.npy")


@pytest.mark.parametrize("dtype", VOCAB_SIZES)
def test_olmo_core_reads_every_document(utils: ModuleType, tmp_path: Path, dtype: str) -> None:
    documents = corpus(VOCAB_SIZES[dtype])
    path = write(tmp_path, documents, VOCAB_SIZES[dtype])

    bounds = list(utils.iter_document_indices(path))

    assert len(bounds) == len(documents)
    for (start, end), document in zip(bounds, documents, strict=True):
        found = utils.load_array_slice(path, start, end, getattr(np, dtype))
        assert found.tolist() == document.tolist()


@pytest.mark.parametrize("dtype", VOCAB_SIZES)
def test_both_ways_to_find_documents_agree(utils: ModuleType, tmp_path: Path, dtype: str) -> None:
    """Where each document ends with the end-of-text id, as `--append` writes it."""
    documents = [np.append(each, np.uint32(END)) for each in corpus(VOCAB_SIZES[dtype])]
    path = write(tmp_path, documents, VOCAB_SIZES[dtype])

    by_id = utils.iter_document_indices(path, eos_token_id=END, dtype=getattr(np, dtype))

    assert list(by_id) == list(utils.iter_document_indices(path))


def test_the_documents_of_the_hashes_in_the_default_tests(
    utils: ModuleType, tmp_path: Path
) -> None:
    documents = [np.full(n % 7, n % 300, np.uint32) for n in range(1_000)]
    path = write(tmp_path, documents, 300)
    found = [
        utils.load_array_slice(path, start, end, np.uint16).tolist()
        for start, end in utils.iter_document_indices(path)
    ]
    assert found == [document.tolist() for document in documents]


def test_olmo_core_refuses_an_empty_document_at_the_end(utils: ModuleType, tmp_path: Path) -> None:
    """Where it checks the rows by the size of the ids: the documentation advises `--append`."""
    documents = corpus(65_536)
    options = {"use_array_if_local": False, "dtype": np.uint16}
    path = write(tmp_path, documents, 65_536)
    with pytest.raises(RuntimeError, match="is out-of-bounds"):
        list(utils.iter_document_indices(path, **options))
    path = write(tmp_path, documents[:-2], 65_536)
    assert len(list(utils.iter_document_indices(path, **options))) == len(documents) - 2
