"""Parquet files: equal rows give equal bytes with any pyarrow, and others read them."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bpe_beam.storage.parquet_file import ParquetFile


def table(rows: int, start: int = 0) -> pa.Table:
    numbers = np.arange(start, start + rows) * 2654435761 % 2**32
    return pa.table(
        {
            "word": pa.array([f"{number:x}" for number in numbers.tolist()], pa.large_string()),
            "id": pa.array(range(rows), pa.uint32()),
            "count": pa.array(numbers % 1000, pa.int64()),
            "source": pa.array([None if n % 3 else "ab"[n % 2] for n in numbers.tolist()]),
        }
    )


def written(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    with ParquetFile(
        sink,
        tables[0].schema,
        dictionary=["count", "source"],
        encodings={"id": "DELTA_BINARY_PACKED"},
        statistics=["source"],
    ) as file:
        for each in tables:
            file.add(each)
    return sink.getvalue()


def test_equal_rows_have_equal_bytes() -> None:
    """With pyarrow 18.0, 21.0 and 25.0; pyarrow alone ends pages, and says more, by its version."""
    file = written(table(50_000), table(30_000, 50_000))
    assert (
        hashlib.sha256(file).hexdigest()
        == "6077a400f6702fd46ffe2b2375d2a5806b7e03e8d9b86df8f869bfbf33cb1acb"
    )
    assert b"parquet-cpp" not in file


def test_others_read_it() -> None:
    tables = [table(50_000), table(7, 50_000)]
    file = pq.ParquetFile(io.BytesIO(written(*tables)), page_checksum_verification=True)
    assert file.read().equals(pa.concat_tables(tables))
    assert file.metadata.created_by == "bpe-beam version 1.0.0 (build 1)"
    assert [file.metadata.row_group(each).num_rows for each in range(2)] == [50_000, 7]
    source = file.metadata.row_group(0).column(3).statistics
    assert (source.min, source.max) == ("a", "b")
    assert source.null_count == tables[0]["source"].null_count
    assert file.metadata.row_group(0).column(0).statistics is None


def test_a_file_may_have_no_rows() -> None:
    sink = io.BytesIO()
    with ParquetFile(sink, table(0).schema):
        pass
    assert pq.read_table(io.BytesIO(sink.getvalue())).equals(table(0))
