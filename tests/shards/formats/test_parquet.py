"""Parquet files: pages by documents alone, the ids in use, and the footer as pyarrow reads it."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe_beam.shards.formats import parquet
from bpe_beam.shards.formats.parquet import ParquetWriter
from bpe_beam.shards.formats.table_schema import SCHEMA, SEQUENCES_SCHEMA
from bpe_beam.storage.thrift_compact import Struct, decode, encode

Documents = Sequence[Sequence[int]]
LABELS = {"id": None, "source": "a", "text_bytes": 7, "seq_lengths": [1, 2]}


def written(
    groups: Sequence[Documents], batch: int | None = None, schema: pa.Schema = SCHEMA
) -> bytes:
    """A file of groups of documents, each added `batch` documents at a time."""
    sink = io.BytesIO()
    with ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        for documents in groups:
            for at in range(0, len(documents), batch or len(documents)):
                rows = documents[at : at + (batch or len(documents))]
                labels = [
                    pa.array([LABELS[field.name]] * len(rows), field.type)
                    for field in schema
                    if field.name in LABELS
                ]
                ids = np.array([token for row in rows for token in row], np.uint32)
                writer.add(ids, np.array([*map(len, rows)], np.int32), labels)
            writer.end_group()
    return sink.getvalue()


def read(file: bytes) -> pa.Table:
    return pq.ParquetFile(io.BytesIO(file), page_checksum_verification=True).read()


def pages(file: bytes, group: int = 0) -> list[Struct]:
    """The headers of the pages of ids of a row group, that of the dictionary first."""
    column = pq.read_metadata(io.BytesIO(file)).row_group(group).column(0)
    at = column.dictionary_page_offset
    end, found = at + column.total_compressed_size, []
    while at < end:
        header = decode(file[at:])
        found.append(header)
        at += len(encode(header)) + header[3].value
    assert at == end
    return found


def values_of_pages(file: bytes, group: int = 0) -> list[int]:
    return [header[5].value[1].value for header in pages(file, group)[1:]]


def test_pages_have_whole_rows_or_a_part_of_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PAGE_VALUES", 20)
    sizes = [8, 0, 11, 12, 45, 3, 3, 0, 20, 1]
    documents = [[n] * size for n, size in enumerate(sizes)]
    files = {written([documents], batch) for batch in (None, 1, 2, 3)}
    assert len(files) == 1
    (file,) = files
    # An empty row is a value too; the rest of the long row has room for those behind it.
    assert values_of_pages(file) == [20, 12, 20, 20, 12, 20, 1]
    assert read(file).column("input_ids").to_pylist() == documents


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_any_rows_in_any_pages(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(parquet, "PAGE_VALUES", draw.choice([1, 2, 7, 64]))
    vocabulary = draw.choice([1, 2, 300, 70_000, 2**31])
    groups = [
        [
            [draw.randrange(vocabulary) for _ in range(draw.choice([0, 0, 1, 2, 7, 8, 30, 200]))]
            for _ in range(draw.randrange(1, 60))
        ]
        for _ in range(3)
    ]
    file = written(groups, draw.choice([None, 1, 5]))
    found = read(file)
    assert found.column("input_ids").to_pylist() == [row for rows in groups for row in rows]
    assert found.schema.equals(SCHEMA)
    metadata = pq.read_metadata(io.BytesIO(file))
    for group, rows in enumerate(groups):
        assert metadata.row_group(group).num_rows == len(rows)
        assert sum(values_of_pages(file, group)) == sum(max(len(row), 1) for row in rows)


def test_the_dictionary_has_the_ids_in_use() -> None:
    file = written([[[7, 70_000, 7, 7]], [[9], [8, 9]], [list(range(300)) * 2]])
    counts = [pages(file, group)[0][7].value[1].value for group in range(3)]
    assert counts == [2, 2, 300]


@pytest.mark.parametrize("distinct", [256, 257, 65_536, 65_537])
def test_indices_have_as_many_bytes_as_they_need(
    monkeypatch: pytest.MonkeyPatch, distinct: int
) -> None:
    monkeypatch.setattr(parquet, "PAGE_VALUES", 1 << 17)
    ids = list(range(distinct))
    random.Random(1).shuffle(ids)
    file = written([[ids]])
    size = pages(file)[1][2].value
    width = 1 if distinct <= 256 else 2 if distinct <= 65_536 else 3
    assert abs(size - distinct * (width + 1 / 8)) < 50
    assert read(file).column("input_ids").to_pylist() == [ids]


def test_the_footer_says_what_pyarrow_would_say() -> None:
    """Sizes and positions add up, and the other columns are as pyarrow has written them."""
    file = written([[[1, 2], [], [3]], [[4] * 1000]])
    metadata = pq.read_metadata(io.BytesIO(file))
    assert (metadata.num_rows, metadata.num_row_groups, metadata.num_columns) == (4, 2, 5)
    assert metadata.created_by == "bpe-beam version 1.0.0 (build 1)"
    position = 4
    for number in range(2):
        group = metadata.row_group(number)
        columns = [group.column(each) for each in range(5)]
        assert group.total_byte_size == sum(each.total_uncompressed_size for each in columns)
        for column in columns:
            first = column.data_page_offset
            if column.has_dictionary_page:
                first = column.dictionary_page_offset
            assert first == position
            position += column.total_compressed_size
            assert column.compression == "ZSTD"
        assert columns[0].num_values == (4 if number == 0 else 1000)
        assert columns[0].encodings == ("PLAIN", "RLE", "RLE_DICTIONARY")
        assert columns[3].statistics.max == "a"
    footer = int.from_bytes(file[-8:-4], "little")
    assert position == len(file) - 8 - footer
    assert file[:4] == file[-4:] == b"PAR1"
    stored = base64.b64decode(metadata.metadata[b"ARROW:schema"])
    assert pa.ipc.read_schema(pa.py_buffer(stored)).equals(SCHEMA)


def test_sequences_have_lists_beside_their_ids() -> None:
    file = written([[[1, 2], [3]]], schema=SEQUENCES_SCHEMA)
    assert read(file).column("seq_lengths").to_pylist() == [[1, 2], [1, 2]]
    assert read(file).column("input_ids").to_pylist() == [[1, 2], [3]]


def test_lists_may_be_null_or_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PAGE_VALUES", 3)
    lists = [[1, -100], None, [], [3] * 7, None, None, [2]]
    labels = pa.array([[9], *lists], pa.list_(pa.int8())).slice(1)
    schema = pa.schema([*SEQUENCES_SCHEMA, ("attention_mask", labels.type)])
    sink = io.BytesIO()
    with ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        rows = len(lists)
        writer.add(
            np.arange(rows, dtype=np.uint32),
            np.ones(rows, np.int32),
            [pa.nulls(rows, pa.list_(pa.int32())), labels],
        )
        writer.end_group()
    found = read(sink.getvalue())
    assert found.schema.equals(schema)
    assert found.column("attention_mask").to_pylist() == lists
    assert found.column("seq_lengths").null_count == rows


def test_an_error_leaves_no_footer() -> None:
    sink = io.BytesIO()
    with pytest.raises(KeyError), ParquetWriter(pa.PythonFile(sink, mode="w"), SCHEMA):
        raise KeyError
    assert sink.getvalue() == b"PAR1"


def test_a_flipped_bit_in_a_page_is_found() -> None:
    file = bytearray(written([[list(range(2000))]]))
    column = pq.read_metadata(io.BytesIO(file)).row_group(0).column(0)
    file[column.data_page_offset + 1000] ^= 1
    with pytest.raises(OSError, match="CRC checksum"):
        read(bytes(file))
