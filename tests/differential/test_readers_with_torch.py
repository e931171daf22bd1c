"""Our shards in whole readers, with torch itself: `scripts/torch_tests.sh` installs them.

The markers `trainers` and `megatron` read with the same packages' own modules, and with stand-ins
for torch, which takes 7 GB. Here nothing is replaced.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from made_text import documents, write
from small_tokenizers import learn
from token_folders import Documents, made_documents, write_folder

import bpe_beam
from bpe_beam.shards.dataset import TokenDataset

pytestmark = pytest.mark.torch

SHARDS = [made_documents(40, 300, 65_536, seed=seed) for seed in range(3)]
DOCUMENTS = [document for shard in SHARDS for document in shard]
WITHOUT_EMPTY = [[document for document in shard if document] for shard in SHARDS]
VOCAB_SIZE = 65_536
WINDOW = 10


def tokens_of(shards: list[Documents]) -> list[int]:
    """Return the tokens of all documents, one after the other."""
    return [token for shard in shards for document in shard for token in document]


@pytest.fixture
def dataset(tmp_path: Path) -> TokenDataset:
    return bpe_beam.shards.open(write_folder(tmp_path / "tokens", "datatrove", SHARDS, VOCAB_SIZE))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_of_torch(dataset: TokenDataset, workers: int) -> None:
    torch = importlib.import_module("torch")
    loader = torch.utils.data.DataLoader(
        dataset.to_torch(),
        batch_size=7,
        shuffle=True,
        generator=torch.Generator().manual_seed(3),
        num_workers=workers,
        collate_fn=list,
    )
    found = [ids for batch in loader for ids in batch]
    assert {ids.dtype for ids in found} == {torch.int64}
    read = [ids.tolist() for ids in found]
    assert read != DOCUMENTS
    assert sorted(read) == sorted(DOCUMENTS)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_stateful_loader_resumes(dataset: TokenDataset, workers: int) -> None:
    loaders = importlib.import_module("torchdata.stateful_dataloader")

    def loader() -> Any:
        items = dataset.shuffled(5).to_torch()
        return loaders.StatefulDataLoader(
            items, batch_size=4, num_workers=workers, collate_fn=lambda found: found
        )

    first = loader()
    head = list(itertools.islice(first, 9))
    resumed = loader()
    resumed.load_state_dict(first.state_dict())
    read = [ids.tolist() for batch in [*head, *resumed] for ids in batch]
    assert read == [ids.tolist() for ids in dataset.shuffled(5)]


def test_streaming_dataset_of_mosaic(tmp_path: Path) -> None:
    streaming = importlib.import_module("streaming")
    write_folder(tmp_path, "mds", WITHOUT_EMPTY, VOCAB_SIZE)
    data = streaming.StreamingDataset(local=str(tmp_path), batch_size=1, shuffle=False)
    expected = [document for shard in WITHOUT_EMPTY for document in shard]
    assert len(data) == len(expected)
    assert [data[at]["tokens"].tolist() for at in range(len(data))] == expected
    assert [row["tokens"].tolist() for row in data] == expected


def test_streaming_dataset_of_litdata(tmp_path: Path) -> None:
    litdata = importlib.import_module("litdata")
    write_folder(tmp_path, "litdata", WITHOUT_EMPTY, VOCAB_SIZE)
    data = litdata.StreamingDataset(
        str(tmp_path), item_loader=litdata.TokensLoader(block_size=WINDOW), shuffle=False
    )
    blocks = [
        ids[start : start + WINDOW]
        for ids in (tokens_of([shard]) for shard in WITHOUT_EMPTY)
        for start in range(0, len(ids) - WINDOW + 1, WINDOW)  # the rest of each file is left out
    ]
    assert len(data) == len(blocks)
    assert [data[at].tolist() for at in range(len(data))] == blocks
    loader = litdata.StreamingDataLoader(data, batch_size=4, num_workers=0)
    assert [row for batch in loader for row in batch.tolist()] == blocks


def test_datasets_of_megatron(tmp_path: Path) -> None:
    gpt = importlib.import_module("megatron.core.datasets.gpt_dataset")
    indexed = importlib.import_module("megatron.core.datasets.indexed_dataset")
    utils = importlib.import_module("megatron.core.datasets.utils")
    write_folder(tmp_path, "megatron", SHARDS[:1], VOCAB_SIZE)
    prefix = str(tmp_path / "shard-00000-of-00001")
    found = indexed.IndexedDataset(prefix)
    assert [found[at].tolist() for at in range(len(found))] == SHARDS[0]

    config = gpt.GPTDatasetConfig(
        random_seed=1,
        sequence_length=WINDOW,
        blend=([prefix], None),
        split="1,0,0",
        tokenizer=_Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        path_to_cache=str(tmp_path / "cache"),
    )
    data = gpt.GPTDataset(
        found, prefix, np.arange(len(found), dtype=np.int32), None, utils.Split.train, config
    )
    # Samples are cut from the documents in a random order, and shuffled.
    stream = [token for at in data.document_index for token in SHARDS[0][at]]
    assert len(data) == (len(stream) - 1) // WINDOW
    for at in range(len(data)):
        start = int(data.shuffle_index[at]) * WINDOW
        assert data[at]["tokens"].tolist() == stream[start : start + WINDOW]
        assert data[at]["labels"].tolist() == stream[start + 1 : start + WINDOW + 1]


class _Tokenizer:
    """What a dataset of Megatron asks of a tokenizer."""

    vocab_size, pad, eod = VOCAB_SIZE, -1, 0
    unique_identifiers: dict[str, str] = {}  # noqa: RUF012


def test_folder_dataset_of_datatrove(tmp_path: Path) -> None:
    datasets = importlib.import_module("datatrove.utils.dataset")
    write_folder(tmp_path, "datatrove", SHARDS[:1], VOCAB_SIZE)
    data = datasets.DatatroveFolderDataset(str(tmp_path), WINDOW - 1, token_size=2)
    stream = tokens_of(SHARDS[:1])
    assert len(data) == len(stream) // WINDOW
    for at in range(len(data)):
        assert data[at]["input_ids"].tolist() == stream[at * WINDOW : (at + 1) * WINDOW]


def test_dataset_of_olmo_core(tmp_path: Path) -> None:
    data = importlib.import_module("olmo_core.data")
    write_folder(tmp_path, "dolma", SHARDS, VOCAB_SIZE)
    paths = [str(tmp_path / f"shard-0000{at}-of-00003.npy") for at in range(3)]
    windows = data.NumpyFSLDataset(
        *paths,
        sequence_length=WINDOW,
        pad_token_id=0,
        eos_token_id=0,
        vocab_size=VOCAB_SIZE,
        dtype=np.uint16,
    )
    windows.prepare()
    expected = [
        ids[start : start + WINDOW]
        for ids in (tokens_of([shard]) for shard in SHARDS)
        for start in range(0, len(ids) - WINDOW + 1, WINDOW)
    ]
    assert len(windows) == len(expected)
    assert [windows[at]["input_ids"].tolist() for at in range(len(windows))] == expected


def test_dataset_of_automodel(tmp_path: Path) -> None:
    # The module alone: its package wants dozens of others.
    home = Path(str(importlib.metadata.distribution("nemo-automodel").locate_file("")))
    path = home / "nemo_automodel/components/datasets/llm/nanogpt_dataset.py"
    spec = importlib.util.spec_from_file_location("nanogpt_dataset", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    documents = [[7, *document] for document in SHARDS[0]]  # they begin with the end token
    write_folder(tmp_path, "llmc", [documents], VOCAB_SIZE)
    stream = tokens_of([documents])
    (path,) = tmp_path.glob("*.bin")
    assert module.load_bin_shard(path).tolist() == stream
    samples = module.NanogptDataset(str(path), WINDOW)
    for at, sample in enumerate(itertools.islice(samples, 100)):
        start = at * (WINDOW + 1)
        assert sample["input_ids"] == stream[start : start + WINDOW]
        assert sample["labels"] == stream[start + 1 : start + WINDOW + 1]


def test_axolotl_takes_rows_as_tokenized(tmp_path: Path) -> None:
    """From its choice of a reader to a batch of packed documents."""
    datasets = importlib.import_module("datasets")
    transformers = importlib.import_module("transformers")
    wrappers = importlib.import_module("axolotl.utils.data.wrappers")
    trainer = importlib.import_module("axolotl.utils.trainer")
    batching = importlib.import_module("axolotl.utils.collators.batching")
    settings = importlib.import_module("axolotl.utils.dict").DictDefault
    texts = documents(60)
    corpus = write(tmp_path / "texts.jsonl", texts)
    tokenizer = learn("bytes", ("<pad>",), 100)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    job = ("tokenize", "--input", corpus, "--tokenizer", tmp_path / "tokenizer.json")
    table = ("--format", "parquet", "--columns", "attention_mask,labels")
    assert run(*job, *table, "--output", tmp_path / "labelled").code == 0
    rows = datasets.load_dataset(
        "parquet",
        data_files=str(tmp_path / "labelled" / "shard-*.parquet"),
        split="train",
        cache_dir=str(tmp_path),
    )
    data, _ = wrappers.get_dataset_wrapper(settings(path="labelled"), None, settings(), None, rows)
    assert data is rows
    packed, _ = trainer.process_datasets_for_packing(settings(sample_packing=True), rows, None)
    # It leaves out documents without a token that is learnt: the first one never is.
    expected = [ids for ids in map(tokenizer.encode, texts) if len(ids) > 1]
    assert list(packed["input_ids"]) == expected

    collate = batching.V2BatchSamplerDataCollatorForSeq2Seq(
        transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(tmp_path / "tokenizer.json"), pad_token="<pad>"
        )
    )
    learnt = ["input_ids", "attention_mask", "labels", "position_ids"]  # what its trainer keeps
    batch = collate([[*packed.select_columns(learnt).select(range(3))]])
    assert batch["input_ids"].tolist() == [tokens_of([expected[:3]])]
    assert batch["labels"].tolist() == [
        [label for document in expected[:3] for label in (-100, *document[1:])]
    ]
    assert batch["attention_mask"].tolist() == [
        [at for at, document in enumerate(expected[:3], 1) for _ in document]
    ]
    assert batch["position_ids"].tolist() == [
        [at for document in expected[:3] for at in range(len(document))]
    ]


def test_arrow_in_datasets(tmp_path: Path) -> None:
    datasets = importlib.import_module("datasets")
    torch = importlib.import_module("torch")
    write_folder(tmp_path, "parquet", SHARDS, VOCAB_SIZE)
    rows = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "*.parquet"), split="train", cache_dir=str(tmp_path)
    ).with_format("torch")
    assert rows[3]["input_ids"].dtype == torch.int64
    assert [row["input_ids"].tolist() for row in rows] == DOCUMENTS
