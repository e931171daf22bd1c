"""Our datatrove shards in datatrove's own hands: package datatrove, which must be installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from trainer_readers import datatrove

from bpe_beam.shards.formats.datatrove import DatatroveStream, DatatroveWriter, for_people
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

STORAGE = Storage()
OURS, THEIRS = "shard-00000-of-00001", "theirs"
VOCAB_SIZES = {2: 65_536, 4: 65_537}
WINDOW = 10


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[ModuleType, ModuleType]]:
    with datatrove() as found:
        yield found


def corpus(vocab_size: int) -> list[np.ndarray]:
    """Documents of many lengths, some of them empty, every boundary id among them."""
    rng = np.random.default_rng(7)
    lengths = [0, 1, 0, 5, 2_000, 0, *rng.integers(0, 40, 300), 3, 0, 0]
    documents = [rng.integers(0, vocab_size, length, dtype=np.uint32) for length in lengths]
    documents[3] = np.array([0, 1, vocab_size - 1, vocab_size - 2, 255], dtype=np.uint32)
    return documents


def write(folder: Path, documents: Sequence[np.ndarray], vocab_size: int) -> None:
    with DatatroveWriter(STORAGE, str(folder), OURS, vocab_size) as writer:
        for start in range(0, len(documents), 100):
            part = documents[start : start + 100]
            offsets = np.cumsum([0, *(document.size for document in part)], dtype=np.int64)
            writer.write_documents(np.concatenate(part), offsets)


@pytest.mark.parametrize("width", [2, 4])
def test_datatrove_reads_every_token(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path, width: int
) -> None:
    documents = corpus(VOCAB_SIZES[width])
    write(tmp_path, documents, VOCAB_SIZES[width])

    data = modules[0].DatatroveFolderDataset(str(tmp_path), WINDOW - 1, token_size=width)

    tokens = np.concatenate(documents)
    assert len(data) == tokens.size // WINDOW
    for index in range(len(data)):
        expected = tokens[index * WINDOW : (index + 1) * WINDOW]
        assert data[index]["input_ids"].tolist() == expected.tolist()


@pytest.mark.parametrize("width", [2, 4])
def test_datatrove_reads_every_position(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path, width: int
) -> None:
    """Where each document has a token."""
    documents = [each for each in corpus(VOCAB_SIZES[width]) if each.size]
    write(tmp_path, documents, VOCAB_SIZES[width])

    data = modules[0].DatatroveFolderDataset(
        str(tmp_path), WINDOW - 1, token_size=width, return_positions=True
    )

    # A window begins at 0, whatever was before.
    begins = np.cumsum([0, *(document.size for document in documents)])
    for index in range(len(data)):
        tokens = np.arange(index * WINDOW, (index + 1) * WINDOW)
        document = begins[np.searchsorted(begins, tokens, side="right") - 1]
        expected = tokens - np.maximum(document, index * WINDOW)
        assert data[index]["positions"].tolist() == expected.tolist()


def test_datatrove_has_wrong_positions_behind_an_empty_document(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    """Why the documentation advises to append a token."""
    documents = [np.zeros(size, np.uint32) for size in (4, 0, 6)]
    write(tmp_path, documents, 300)
    data = modules[0].DatatroveFolderDataset(str(tmp_path), WINDOW - 1, return_positions=True)
    assert data[0]["positions"].tolist() != [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("width", [2, 4])
def test_datatrove_writes_the_same_bytes(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path, width: int
) -> None:
    documents = corpus(VOCAB_SIZES[width])
    write(tmp_path, documents, VOCAB_SIZES[width])
    theirs = modules[1].TokenizedFile(
        str(tmp_path),
        f"{THEIRS}.ds",
        tokenizer_name_or_path="tokenizer.json",
        save_final_metadata=True,
        token_size=width,
    )
    for document in documents:
        theirs.write(document.tolist(), None)
    theirs.close()

    for suffix in (".ds", ".ds.index", ".ds.metadata"):
        ours = (tmp_path / f"{OURS}{suffix}").read_bytes()
        assert ours == (tmp_path / f"{THEIRS}{suffix}").read_bytes()
    with DatatroveStream.open(STORAGE, str(tmp_path), THEIRS) as reader:
        assert len(reader) == len(documents)
        for index, document in enumerate(documents):
            assert reader.document(index).tolist() == document.tolist()


def test_numbers_for_people_are_those_of_humanize() -> None:
    humanize = importlib.import_module("humanize")
    near = [10**power + change for power in range(1, 13) for change in (-5, -4, -1, 0, 1)]
    spread = np.random.default_rng(3).lognormal(15, 6, 2_000).astype(np.int64).clip(1)
    for tokens in [1, 2, *near, 9_994, 9_995, 9_996, 99_949, 99_950, 999_499, 999_500, *spread]:
        assert for_people(int(tokens)) == humanize.metric(int(tokens), unit="T")
