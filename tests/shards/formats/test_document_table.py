"""Tables of documents: what is in them, their groups of rows, and that damage is found."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import heavy_modules_of

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.formats import arrow, parquet, shard_format, table_writer
from bpe_beam.shards.formats.document_table import TableReader
from bpe_beam.shards.formats.interface import ShardFiles, ShardFormat, ShardOrigin
from bpe_beam.shards.formats.table_schema import SCHEMA
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"
STORAGE = Storage()
ORIGIN = ShardOrigin("f" * 64, prepend=(), append=(("<|ende…|>", 299),))
METADATA = {
    "append": {"id": 299, "token": "<|ende…|>"},
    "document": "row",
    "prepend": None,
    "tokenizer": {"fingerprint": "f" * 64, "vocab_size": 300},
}
DOCUMENTS = [[1, 2, 258], [], [7], []]


@pytest.fixture(params=["parquet", "arrow"])
def format_(request: pytest.FixtureRequest) -> ShardFormat:
    return shard_format(request.param)


def set_group_bytes(patch: pytest.MonkeyPatch, size: int) -> None:
    for writer in (arrow.ArrowWriter, parquet.ParquetWriter):
        patch.setattr(writer, "group_bytes", size)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of about ten rows, in pages of two or three."""
    set_group_bytes(monkeypatch, 400)
    monkeypatch.setattr(parquet, "PAGE_VALUES", 20)


def pack(documents: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([token for document in documents for token in document], dtype=np.uint32)
    return ids, np.cumsum([0, *map(len, documents)], dtype=np.int64)


def write(
    format_: ShardFormat, folder: Path | str, *batches: Sequence[Sequence[int]], vocab: int = 300
) -> ShardFiles:
    with format_.writer(STORAGE, str(folder), NAME, vocab) as writer:
        for documents in batches:
            writer.write_documents(*pack(documents))
    return writer.result()


def read(format_: ShardFormat, folder: Path | str) -> list[list[int]]:
    with format_.reader(STORAGE, str(folder), NAME) as reader:
        return [reader.document(index).tolist() for index in range(len(reader))]


def table_of(format_: ShardFormat, folder: Path) -> pa.Table:
    """The shard as pyarrow alone reads it."""
    path = folder / (NAME + format_.suffixes[0])
    if format_.name == "parquet":
        return pq.read_table(path)
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def labels_of(ids: Sequence[str | None], sources: Sequence[str | None]) -> pa.RecordBatch:
    rows = len(ids)
    columns = [ids, sources, [0] * rows, ["aß"] * rows]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, BATCH_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=BATCH_SCHEMA)


def open_labelled(format_: ShardFormat, folder: Path):
    return format_.writer(STORAGE, str(folder), NAME, 300, ORIGIN)


def test_a_row_is_a_document_with_its_labels(format_: ShardFormat, tmp_path: Path) -> None:
    with open_labelled(format_, tmp_path) as writer:
        labels = labels_of(["a:0", None, "ß"], ["a", "a", "b"])
        writer.write_documents(*pack(DOCUMENTS[:3]), labels)
        writer.write_documents(*pack(DOCUMENTS[3:]))

    found = table_of(format_, tmp_path)

    assert found.schema.remove_metadata().equals(SCHEMA)
    assert found.to_pydict() == {
        "input_ids": DOCUMENTS,
        "length": [3, 0, 1, 0],
        "id": ["a:0", None, "ß", None],
        "source": ["a", "a", "b", None],
        "text_bytes": [3, 3, 3, None],
    }
    assert json.loads(found.schema.metadata[b"bpe_beam"]) == METADATA
    (info,) = writer.result().files
    assert info.bytes == (tmp_path / info.name).stat().st_size
    assert read(format_, tmp_path) == DOCUMENTS


def test_what_nobody_knows_is_not_said(format_: ShardFormat, tmp_path: Path) -> None:
    write(format_, tmp_path, DOCUMENTS)
    found = table_of(format_, tmp_path)
    assert json.loads(found.schema.metadata[b"bpe_beam"]) == {
        "document": "row",
        "tokenizer": {"vocab_size": 300},
    }
    for name in ("id", "source", "text_bytes"):
        assert found.column(name).null_count == 4


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("documents", [[], [[]], [[]] * 100])
def test_without_tokens_nothing_is_written(
    format_: ShardFormat, tmp_path: Path, documents: list[list[int]]
) -> None:
    assert write(format_, tmp_path, documents) == ShardFiles(len(documents), 0, ())
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("small_groups")
def test_neither_batches_nor_attempts_show_in_the_bytes(
    format_: ShardFormat, tmp_path: Path
) -> None:
    documents = [[n % 300] * (n * n % 37) for n in range(80)]
    labels = [[f"{n}" * (n % 9) for n in range(80)], ["web" * (n % 2) for n in range(80)]]
    results = []
    for size in (80, 1, 7):
        folder = tmp_path / f"{size}"
        folder.mkdir()
        with open_labelled(format_, folder) as writer:
            for at in range(0, 80, size):
                names = [column[at : at + size] for column in labels]
                writer.write_documents(*pack(documents[at : at + size]), labels_of(*names))
        results.append(writer.result())
    assert results[0] == results[1] == results[2]
    assert table_of(format_, tmp_path / "7").column("input_ids").num_chunks > 5
    assert read(format_, tmp_path / "7") == documents


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("seed", range(5))
def test_reading_any_range_of_any_documents(
    format_: ShardFormat, tmp_path: Path, seed: int
) -> None:
    made = random.Random(seed)
    lengths = [made.choice([0, 0, 1, 5, 30, 200]) for _ in range(90)] + [1]
    documents = [[made.randrange(300) for _ in range(length)] for length in lengths]
    write(format_, tmp_path, documents[:50], [], documents[50:])
    ids, offsets = pack(documents)
    with format_.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert isinstance(reader, TableReader)
        assert (len(reader), reader.token_count) == (len(documents), ids.size)
        for _ in range(30):
            start, stop = sorted(made.choices(range(len(documents) + 1), k=2))
            assert reader.lengths(start, stop).tolist() == lengths[start:stop]
            start, stop = sorted(made.choices(range(ids.size + 1), k=2))
            assert np.array_equal(reader.tokens(start, stop), ids[start:stop])
            index = made.randrange(len(documents))
            assert reader.document(index).tolist() == documents[index]
            token = made.randrange(ids.size)
            document, inner = reader.locate(token)
            assert int(offsets[document]) + inner == token < offsets[document + 1]
        for bad in ((-1, 0), (1, 0), (0, ids.size + 1)):
            with pytest.raises(IndexError, match="must be a range within 0 to"):
                reader.tokens(*bad)
        with pytest.raises(IndexError, match="documents must be a range within 0 to"):
            reader.lengths(0, len(documents) + 1)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("batches", [1, 4])
def test_a_document_larger_than_a_group_is_a_group(
    format_: ShardFormat, tmp_path: Path, batches: int
) -> None:
    documents = [[1], [2] * 1000, [3], [4]]
    write(format_, tmp_path, *([documents] if batches == 1 else [[each] for each in documents]))
    found = table_of(format_, tmp_path).column("length")
    assert [chunk.to_pylist() for chunk in found.chunks] == [[1], [1000], [1, 1]]


def test_a_long_document_is_one_row(format_: ShardFormat, tmp_path: Path) -> None:
    ids = (np.arange(10_000_000, dtype=np.uint32) * 7) % 100_000
    with format_.writer(STORAGE, str(tmp_path), NAME, 100_000) as writer:
        writer.write_documents(*pack([[1], []]))
        writer.write_documents(ids, np.array([0, ids.size], np.int64))
        writer.write_documents(*pack([[2]]))
    with format_.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert reader.lengths(0, 4).tolist() == [1, 0, ids.size, 1]
        assert np.array_equal(reader.document(2), ids)


@pytest.mark.parametrize("vocab_size", [65_535, 65_536, 65_537, 2**31])
def test_every_id_of_the_vocabulary_and_no_other(
    format_: ShardFormat, tmp_path: Path, vocab_size: int
) -> None:
    last = vocab_size - 1
    write(format_, tmp_path, [[0, last]], vocab=vocab_size)
    assert read(format_, tmp_path) == [[0, last]]
    with (
        pytest.raises(DataError, match=rf"document 2, token 1: id {vocab_size} is not in the voc"),
        format_.writer(STORAGE, str(tmp_path), NAME, vocab_size) as writer,
    ):
        writer.write_documents(*pack([[1], [2]]))
        writer.write_documents(*pack([[0, vocab_size]]))
    assert read(format_, tmp_path) == [[0, last]], "the older shard stays"


@pytest.mark.parametrize("vocab_size", [0, 2**31 + 1])
def test_a_vocabulary_of_no_size(format_: ShardFormat, tmp_path: Path, vocab_size: int) -> None:
    with pytest.raises(UsageError, match="vocab_size must be 1 to"):
        format_.writer(STORAGE, str(tmp_path), NAME, vocab_size)


def test_in_any_store(format_: ShardFormat) -> None:
    folder = f"memory://test-{format_.name}"
    write(format_, folder, DOCUMENTS)
    assert read(format_, folder) == DOCUMENTS


@pytest.mark.usefixtures("small_groups")
def test_nothing_half_written_is_seen(format_: ShardFormat, tmp_path: Path) -> None:
    writer = format_.writer(STORAGE, str(tmp_path), NAME, 300)
    with pytest.raises(KeyError), writer:
        writer.write_documents(*pack([[1] * 90] * 9))
        raise KeyError
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="its with block has not ended well"):
        writer.result()
    with pytest.raises(ValueError, match="must be called in the writer's with block"):
        writer.write_documents(*pack([[1]]))


def test_a_batch_that_failed_is_not_passed_over(
    format_: ShardFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object) -> None:
        raise OSError("no space")

    with (
        pytest.raises(DataError, match="writing a batch of documents failed before"),
        format_.writer(STORAGE, str(tmp_path), NAME, 300) as writer,
    ):
        writer.write_documents(*pack([[1]]))
        with monkeypatch.context() as patch:
            set_group_bytes(patch, 1)
            patch.setattr(arrow.ArrowWriter, "end_group", full)
            patch.setattr(parquet.ParquetWriter, "end_group", full)
            with pytest.raises(OSError, match="no space"):
                writer.write_documents(*pack([[2]]))
    assert not any(tmp_path.iterdir())


def test_labels_of_other_documents(format_: ShardFormat, tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="labels must have 1 rows, got 2"),
        open_labelled(format_, tmp_path) as writer,
    ):
        writer.write_documents(*pack([[1]]), labels_of(["a", "b"], ["c", "d"]))


# Files that no job wrote.


def save(format_: ShardFormat, folder: Path, table: pa.Table) -> None:
    path = folder / (NAME + format_.suffixes[0])
    if format_.name == "parquet":
        pq.write_table(table, path)
        return
    with pa.OSFile(str(path), "w") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def changed(column: str, values: object, kind: pa.DataType | None = None) -> pa.Table:
    schema = SCHEMA.with_metadata({"bpe_beam": json.dumps(METADATA)})
    rows = {"input_ids": [[1, 2], []], "length": [2, 0], "id": ["a", "b"], "source": [None, None]}
    rows["text_bytes"] = [None, 1]
    table = pa.Table.from_pydict(rows, schema)
    index = table.schema.get_field_index(column)
    field = schema.field(index) if kind is None else pa.field(column, kind)
    return table.set_column(index, field, pa.array(values, field.type))


BAD_TABLES = {
    "int64": (changed("input_ids", [[1], []], pa.list_(pa.int64())), "the columns are"),
    "no column": (changed("id", ["a", "b"]).drop_columns(["id"]), "the columns are"),
    "null list": (changed("input_ids", [[1, 2], None]), "there is a null"),
    "null id": (changed("input_ids", [[1, None], []]), "there is a null"),
    "null length": (changed("length", [2, None]), "there is a null"),
    "negative id": (changed("input_ids", [[1, -2], []]), "an id is -2; expected 0 or more"),
    "negative length": (changed("length", [2, -1]), "a length is -1; expected 0 or more"),
    "another length": (changed("length", [1, 1]), "have other lengths than length says"),
    "no metadata": (changed("id", ["a", "b"]).replace_schema_metadata(None), "lack 'bpe_beam'"),
    "not JSON": (
        changed("id", ["a", "b"]).replace_schema_metadata({"bpe_beam": "{"}),
        "the head or the footer cannot be read",
    ),
    "not an object": (
        changed("id", ["a", "b"]).replace_schema_metadata({"bpe_beam": "[]"}),
        "the head or the footer cannot be read",
    ),
    "hashes unsaid": (
        changed("id", ["a", "b"]).append_column("hash", pa.array([1, 2], pa.uint64())),
        "the columns are",
    ),
    "no hashes": (
        changed("id", ["a", "b"]).replace_schema_metadata(
            {"bpe_beam": json.dumps({**METADATA, "hashes": True})}
        ),
        "the columns are",
    ),
    "no rows": (
        changed("id", ["a", "b"]).replace_schema_metadata({"bpe_beam": '{"document": "eos"}'}),
        "a document is a 'eos'; expected a row",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_table_that_is_no_shard(format_: ShardFormat, tmp_path: Path, name: str) -> None:
    table, problem = BAD_TABLES[name]
    save(format_, tmp_path, table)
    with (
        pytest.raises(DataError, match=problem) as raised,
        format_.reader(STORAGE, str(tmp_path), NAME) as reader,
    ):
        reader.tokens(0, reader.token_count)
    assert f"{NAME}{format_.suffixes[0]}: " in str(raised.value)


def test_a_table_that_is_a_shard(format_: ShardFormat, tmp_path: Path) -> None:
    save(format_, tmp_path, changed("id", ["c", None]))
    assert read(format_, tmp_path) == [[1, 2], []]


def test_a_shard_for_another_vocabulary(format_: ShardFormat, tmp_path: Path) -> None:
    write(format_, tmp_path, [[1, 2], [], [280, 299, 290]])
    with format_.reader(STORAGE, str(tmp_path), NAME) as reader:
        assert list(format_.check(NAME, 300).problems(reader)) == []
        (problem,) = format_.check(NAME, 400).problems(reader)
        assert problem.endswith("say that the vocabulary has 300 ids; expected 400")
        (problem,) = format_.check(NAME, 290).problems(reader)
        assert problem.endswith(
            "document 2, token 1: the id is 299; expected 0 to 289; 2 such ids in this shard"
        )
    assert list(format_.check(NAME, 300).problems(None)) == []


def test_a_missing_shard(format_: ShardFormat, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=NAME):
        format_.reader(STORAGE, str(tmp_path), NAME)


# Files that `tests/differential/test_shards_vs_datasets.py` has proven.

GOLDEN = Path(__file__).parents[2] / "golden" / "shards"
GOLDEN_ORIGIN = ShardOrigin("0" * 64, (), (("<|endoftext|>", 0),))
GOLDEN_DOCUMENTS = [[1, 65_536, 2, 0], [], [70_000], [0]]


def write_golden(format_: ShardFormat, folder: Path) -> None:
    with format_.writer(STORAGE, str(folder), NAME, 100_000, GOLDEN_ORIGIN) as writer:
        labels = labels_of(["a.jsonl:0", None, "文", "4"], ["web", "web", "books", None])
        writer.write_documents(*pack(GOLDEN_DOCUMENTS), labels)


def test_what_is_written_is_what_others_have_read(format_: ShardFormat, tmp_path: Path) -> None:
    """By content: the bytes depend on the version of pyarrow, and the Parquet file is one that
    pyarrow alone wrote, as shards of earlier versions are."""
    write_golden(format_, tmp_path)
    assert read(format_, GOLDEN) == GOLDEN_DOCUMENTS
    assert table_of(format_, tmp_path).equals(table_of(format_, GOLDEN), check_metadata=True)


def test_several_tokens_around_documents_are_a_list(tmp_path: Path) -> None:
    format_ = shard_format("arrow")
    origin = ShardOrigin("0" * 64, (("<s>", 1), ("<en>", 7)), ())
    with format_.writer(STORAGE, str(tmp_path), NAME, 9, origin) as writer:
        writer.write_documents(np.array([1, 7], np.uint32), np.array([0, 2]))
    schema = pa.ipc.open_file(tmp_path / f"{NAME}.arrow").schema
    metadata = json.loads(schema.metadata[b"bpe_beam"])
    assert metadata["prepend"] == [{"token": "<s>", "id": 1}, {"token": "<en>", "id": 7}]
    assert metadata["append"] is None


def test_labels_without_pyarrow_compute() -> None:
    """Slices, nulls and empty strings of either width give what casts and lengths give."""
    draw = random.Random(3)
    for _ in range(300):
        nulls = draw.choice((0, 0.3, 1))
        values = [
            None if draw.random() < nulls else "ä" * draw.randrange(4)
            for _ in range(draw.randrange(9))
        ]
        for kind in (pa.string(), pa.large_string()):
            column = pa.array(values, kind)
            column = column[draw.randrange(len(column) + 1) :]
            found = table_writer._of_type(column, pa.string())
            found.validate(full=True)
            assert found.equals(column.cast(pa.string()))
            sizes = [len((value or "").encode()) for value in column.to_pylist()]
            assert table_writer._value_sizes(column).tolist() == sizes
    loaded = heavy_modules_of("import bpe_beam.shards.formats.arrow", "pyarrow.compute")
    assert "pyarrow.compute" not in loaded


def test_little_memory_is_no_damage(format_: ShardFormat, tmp_path: Path) -> None:
    with open_labelled(format_, tmp_path) as writer:
        writer.write_documents(*pack(DOCUMENTS))
    reader: Any = format_.reader(STORAGE, str(tmp_path), NAME)
    for size, kind in ((1 << 20, MemoryError), (1 << 60, DataError)):
        with pytest.raises(kind), reader._reading("a group"):
            raise pa.ArrowMemoryError(f"malloc of size {size} failed")
