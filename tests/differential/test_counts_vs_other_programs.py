"""Counts as pandas and DuckDB read them, where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from counted_sources import KINDS, TEXTS, count, manifest, rows, words, write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of five files."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("kind", ["plain", "both"])
def test_pandas(corpus: Path, tmp_path: Path, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
    frame = pandas.concat([pandas.read_parquet(path) for path in folder.glob("*.parquet")])
    assert frame.groupby("word")["count"].sum().to_dict() == words(folder)
    assert len(frame) == len(rows(folder))


@pytest.mark.parametrize("kind", ["plain", "both"])
def test_duckdb(corpus: Path, tmp_path: Path, kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder = count(corpus, tmp_path / "in", tuple(TEXTS), *KINDS[kind])
    table = f"read_parquet('{folder}/*.parquet')"
    found = duckdb.sql(f"select word, sum(count)::bigint from {table} group by word").fetchall()
    assert dict(found) == words(folder)
    if kind == "both":
        query = f"select source, sum(count)::bigint from {table} group by source"
        expected = {name: row["words"] for name, row in manifest(folder)["sources"].items()}
        assert dict(duckdb.sql(query).fetchall()) == expected
