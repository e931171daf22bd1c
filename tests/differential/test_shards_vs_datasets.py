"""Our Parquet and Arrow shards in the hands of those who read them: packages datasets, polars and
DuckDB, which must be installed.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from mixtures import made_mixture

import bpe_beam
from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.arrow import ArrowWriter
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.parquet import ParquetWriter
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

GOLDEN = Path(__file__).parents[1] / "golden" / "shards"
NAME = "shard-00000-of-00001"
VOCAB_SIZES = (65_536, 65_537)
LABELS = ("id", "source", "text_bytes")
Columns = dict[str, list[Any]]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    # Not an importorskip: whoever selects these tests wants them run.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
        yield importlib.import_module("datasets")


def by_datasets(path: Path, format_name: str, datasets: ModuleType) -> Columns:
    data = datasets.load_dataset(format_name, data_files=str(path), split="train")
    assert data.features["input_ids"].feature.dtype == "int32"
    return data.to_dict()


def by_datasets_stream(path: Path, format_name: str, datasets: ModuleType) -> Columns:
    data = datasets.load_dataset(format_name, data_files=str(path), split="train", streaming=True)
    rows = list(data)
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_polars(path: Path, format_name: str, _: ModuleType) -> Columns:
    polars = importlib.import_module("polars")
    frame = polars.read_parquet(path) if format_name == "parquet" else polars.read_ipc(path)
    assert frame.schema["input_ids"] == polars.List(polars.Int32)
    return frame.to_dict(as_series=False)


def by_duckdb(path: Path, format_name: str, _: ModuleType) -> Columns:
    duckdb = importlib.import_module("duckdb")
    found = duckdb.sql(f"select * from read_{format_name}('{path}')")
    rows = found.fetchall()
    return {name: [row[i] for row in rows] for i, name in enumerate(found.columns)}


READERS: dict[str, tuple[str, Callable[[Path, str, ModuleType], Columns]]] = {
    "parquet in datasets": ("parquet", by_datasets),
    "parquet in datasets, as a stream": ("parquet", by_datasets_stream),
    "parquet in polars": ("parquet", by_polars),
    "parquet in DuckDB": ("parquet", by_duckdb),
    "arrow in datasets": ("arrow", by_datasets),
    "arrow in datasets, as a stream": ("arrow", by_datasets_stream),
    "arrow in polars": ("arrow", by_polars),
}


def columns(vocab_size: int) -> Columns:
    """Documents of many lengths, empty ones at both ends, every boundary id among them."""
    rng = np.random.default_rng(7)
    lengths = [0, 1, 0, 5, 2_000, 0, *rng.integers(0, 40, 500), 3, 0, 0]
    ids = [rng.integers(0, vocab_size, length).tolist() for length in lengths]
    ids[3] = [0, 1, vocab_size - 1, vocab_size - 2, 255]
    numbers = range(len(lengths))
    return {
        "input_ids": ids,
        "length": [len(each) for each in ids],
        "id": [f"文{n}" if n % 3 else None for n in numbers],
        "source": ["web" if n < 400 else "books" for n in numbers],
        "text_bytes": [n % 7 for n in numbers],
    }


def write(folder: Path, format_name: str, documents: Columns, vocab_size: int) -> Path:
    format_ = shard_format(format_name)
    origin = ShardOrigin("0" * 64, (), (("<|endoftext|>", 0),))
    rows = len(documents["id"])
    with format_.writer(Storage(), str(folder), NAME, vocab_size, origin) as writer:
        for start in range(0, rows, 100):
            part = slice(start, start + 100)
            lengths = documents["length"][part]
            ids = np.array([*itertools.chain(*documents["input_ids"][part])], np.uint32)
            labels = [documents["id"][part], documents["source"][part]]
            texts = ["t" * size for size in documents["text_bytes"][part]]
            empty = [[0] * len(lengths), texts]
            arrays = [
                pa.array(values, field.type)
                for values, field in zip([*labels, *empty], BATCH_SCHEMA, strict=True)
            ]
            offsets = np.cumsum([0, *lengths], dtype=np.int64)
            writer.write_documents(ids, offsets, pa.record_batch(arrays, BATCH_SCHEMA))
    return folder / (NAME + format_.suffixes[0])


@pytest.mark.parametrize("vocab_size", VOCAB_SIZES)
@pytest.mark.parametrize("reader", READERS)
def test_each_reads_every_row(
    datasets: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
    vocab_size: int,
) -> None:
    for writer in (ArrowWriter, ParquetWriter):
        monkeypatch.setattr(writer, "group_bytes", 10_000)
    format_name, read = READERS[reader]
    documents = columns(vocab_size)
    path = write(tmp_path, format_name, documents, vocab_size)
    assert read(path, format_name, datasets) == documents


@pytest.mark.parametrize("reader", READERS)
def test_each_reads_the_golden_files(datasets: ModuleType, reader: str) -> None:
    format_name, read = READERS[reader]
    path = GOLDEN / f"{NAME}.{format_name}"
    assert read(path, format_name, datasets) == {
        "input_ids": [[1, 65_536, 2, 0], [], [70_000], [0]],
        "length": [4, 0, 1, 1],
        "id": ["a.jsonl:0", None, "文", "4"],
        "source": ["web", "web", "books", None],
        "text_bytes": [3, 3, 3, 3],
    }


def test_datasets_reads_a_mixture(datasets: ModuleType, tmp_path: Path) -> None:
    out = made_mixture(tmp_path, format="parquet")
    data = bpe_beam.shards.open(out)
    assert by_datasets_stream(out / "shard-*.parquet", "parquet", datasets) == {
        "input_ids": [ids.tolist() for ids in data],
        "length": [len(ids) for ids in data],
        **{name: [data.labels(at)[name] for at in range(len(data))] for name in LABELS},
    }
    assert {data.labels(at)["source"] for at in range(len(data))} == {"web", "code"}
