"""Whole folders of shards, opened as readers open a folder: files that are no data are left out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset
import pytest
from command_line import run_whole

DOCUMENTS = 300


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each format of tables; one record is rejected, and some documents are apart."""
    folder = tmp_path_factory.mktemp("readers")
    lines = [json.dumps({"id": str(i), "text": f"text {i}"}) for i in range(DOCUMENTS)]
    (folder / "in.jsonl").write_text("\n".join([*lines, '{"text']) + "\n")
    reading = ("--input", folder / "in.jsonl", "--max-rejects", "1")
    run_whole("train", *reading, "--vocab-size", "270", "--output", folder / "tok")
    tokenize = ("tokenize", *reading, "--tokenizer", folder / "tok")
    for name in ("parquet", "arrow"):
        run_whole(*tokenize, "--format", name, "--output", folder / name)
    run_whole(
        *(*tokenize, "--format", "parquet", "--validation-share", "10%"),
        *("--output", folder / "divided"),
    )
    for name in ("parquet", "arrow"):
        assert (folder / name / "__rejects").is_dir(), "the folder has all that may be in it"
    return folder


@pytest.mark.parametrize("name", ["parquet", "arrow", "divided"])
def test_datasets(made: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    found = datasets.load_dataset(str(made / name), cache_dir=str(tmp_path))
    parts = {"train", "validation"} if name == "divided" else {"train"}
    assert set(found) == parts
    assert sum(part.num_rows for part in found.values()) == DOCUMENTS


def _arrow(folder: Path) -> int:
    return int(pyarrow.dataset.dataset(str(folder)).count_rows())


def _pandas(folder: Path) -> int:
    return len(pytest.importorskip("pandas").read_parquet(folder))


def _duckdb(folder: Path) -> int:
    query = f"select count(*) from '{folder}/**/*.parquet'"
    return int(pytest.importorskip("duckdb").sql(query).fetchall()[0][0])


def _polars(folder: Path) -> int:
    polars = pytest.importorskip("polars")
    return int(polars.scan_parquet(f"{folder}/**/*.parquet").collect().height)


@pytest.mark.parametrize("name", ["parquet", "divided"])
@pytest.mark.parametrize("read", [_arrow, _pandas, _duckdb, _polars])
def test_parquet(made: Path, name: str, read: Callable[[Path], int]) -> None:
    assert read(made / name) == DOCUMENTS


def test_arrow_files(made: Path) -> None:
    found = pyarrow.dataset.dataset(str(made / "arrow"), format="arrow")
    assert found.count_rows() == DOCUMENTS
