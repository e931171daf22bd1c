"""Columns for trainers: by their definitions, in whole jobs, and what `verify` finds wrong."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole
from made_text import documents, write
from msgspec import UNSET
from msgspec.structs import replace
from read_back import without_job

import bpe_beam
from bpe_beam.errors import UsageError
from bpe_beam.shards.formats import (
    DOCUMENT_COLUMNS,
    SHARD_FORMATS,
    TRAINER_COLUMNS,
    shard_format,
)
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.trainer_columns import (
    bytes_of_token,
    column_fields,
    require_columns,
    trainer_columns,
)
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage

END, PAD = "<|end|>", "<|pad|>"
ALL = ("--columns", ",".join(reversed(TRAINER_COLUMNS)))
Row = dict[str, list[int]]


def defined(ids: list[int], sizes: list[int]) -> Row:
    """Return the columns of a row by their definitions, token by token."""
    padding = len(ids) - sum(sizes)
    made: Row = {name: [] for name in TRAINER_COLUMNS}
    at = 0
    for size, is_padding in [*((size, False) for size in sizes), (padding, True)]:
        if not is_padding:
            made["seq_start_id"].append(at)
        for position in range(size):
            made["attention_mask"].append(0 if is_padding else 1)
            made["labels"].append(-100 if is_padding or position == 0 else ids[at])
            made["position_ids"].append(position)
            made["loss_mask"].append(0 if is_padding or position == size - 1 else 1)
            at += 1
    return made


def columns_of(rows: list[list[int]], sizes: list[list[int]] | None) -> list[Row]:
    ids = np.array([token for row in rows for token in row], np.uint32)
    lengths = np.array([*map(len, rows)], np.int32)
    # As a writer has them: a part of a longer column.
    lists = None if sizes is None else pa.array([[7], *sizes, [8]], pa.list_(pa.int32()))[1:-1]
    arrays = trainer_columns(TRAINER_COLUMNS, ids, lengths, lists)
    table = pa.table(arrays, pa.schema(column_fields(TRAINER_COLUMNS)))
    found: list[Row] = table.to_pylist()
    return found


def test_random_rows() -> None:
    made = random.Random(4)
    for _ in range(200):
        sizes = [
            [made.randint(0, 6) for _ in range(made.randint(0, 4))]
            for _ in range(made.randint(0, 6))
        ]
        rows = [
            [made.randrange(1 << 31) for _ in range(sum(each) + made.choice((0, 0, 3)))]
            for each in sizes
        ]
        assert columns_of(rows, sizes) == [
            defined(row, each) for row, each in zip(rows, sizes, strict=True)
        ]
        assert columns_of(rows, None) == [defined(row, [len(row)]) for row in rows]


def test_documents_that_are_not_known_or_too_long() -> None:
    ids, lengths = np.zeros(3, np.uint32), np.array([3], np.int32)
    for sizes, said in ((None, "it is unknown where"), ([2, 2], "more tokens"), ([-1, 2], "more")):
        with pytest.raises(ValueError, match=said):
            trainer_columns(("labels",), ids, lengths, pa.array([sizes], pa.list_(pa.int32())))


def test_tables_alone_have_them() -> None:
    for name in SHARD_FORMATS:
        if name in ("parquet", "arrow"):
            require_columns(TRAINER_COLUMNS, name, sequences=True)
            require_columns(DOCUMENT_COLUMNS, name, sequences=False)
            with pytest.raises(UsageError, match="where rows are documents, got position_ids"):
                require_columns(TRAINER_COLUMNS, name, sequences=False)
        else:
            require_columns((), name, sequences=True)
            with pytest.raises(UsageError, match=f"must not be given for shards of {name}"):
                require_columns(("labels",), name, sequences=True)


@pytest.mark.parametrize("format_name", ["parquet", "arrow"])
def test_groups_of_rows_stay_small(tmp_path: Path, format_name: str) -> None:
    """Their bytes count with the ids: neither a writer nor a reader has more in memory."""
    origin = ShardOrigin("0" * 64, (), (), sequence_length=1000, columns=TRAINER_COLUMNS)
    writer = shard_format(format_name).writer
    assert writer is not None
    rows, lengths = 4000, pa.array([[400, 600]] * 4000, pa.list_(pa.int32()))
    with writer(Storage(), str(tmp_path), "shard-00000-of-00001", 300, origin) as file:
        file.write_documents(
            np.full(rows * 1000, 7, np.uint32),
            np.arange(0, rows * 1000 + 1, 1000, dtype=np.int64),
            pa.record_batch([lengths], ["seq_lengths"]),
        )
    (path,) = tmp_path.iterdir()
    if format_name == "arrow":
        file_of_groups = pa.ipc.open_file(path)
        sizes = [
            file_of_groups.get_batch(number).nbytes
            for number in range(file_of_groups.num_record_batches)
        ]
        assert max(sizes) <= 2 << 20
        assert min(sizes[:-1]) > 1 << 20
    else:
        metadata = pq.read_metadata(path)
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        token = 4 + bytes_of_token(TRAINER_COLUMNS)
        assert max(sizes) * 1000 * token <= 16 << 20
        assert max(sizes) * 1000 * token > 15 << 20


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    corpus = write(folder / "a.jsonl", ["", *documents(90, seed=6)])
    special = ("--special-token", END, "--special-token", PAD)
    arguments = ("--input", corpus, "--vocab-size", "400", *special)
    run_whole("train", *arguments, "--output", folder / "tok")
    return corpus


def tokenized(corpus: Path, out: Path, *extra: object) -> dict[str, Any]:
    arguments = ("--input", corpus, "--tokenizer", corpus.parent / "tok", "--append", END)
    return run_whole("tokenize", *arguments, *extra, "--output", out).summary


PACKED = ("--sequence-length", 64, "--packing", "best_fit", "--pad-token", PAD)


def table(folder: Path) -> pa.Table:
    """Return the rows of a folder as a trainer's loader reads them."""
    parquet = sorted(folder.glob("shard-*.parquet"))
    arrow = [pa.ipc.open_file(path).read_all() for path in sorted(folder.glob("shard-*.arrow"))]
    return pa.concat_tables([*map(pq.read_table, parquet), *arrow])


@pytest.mark.parametrize(("one", "other"), [("parquet", "arrow"), ("arrow", "parquet")])
def test_sequences_have_the_columns_that_were_asked_for(
    corpus: Path, tmp_path: Path, one: str, other: str
) -> None:
    """By `tokenize` and by `convert`, which keeps, adds and drops them, with the same bytes."""
    plain, out, there, back, bare = (
        tmp_path / name for name in ("plain", "out", "there", "back", "bare")
    )
    tokenized(corpus, plain, *PACKED, "--format", one)
    tokenized(corpus, out, *PACKED, "--format", one, *ALL)
    rows = table(out)
    assert rows.schema.names[-5:] == [*TRAINER_COLUMNS]
    kinds = [str(field.type.value_type) for field in list(rows.schema)[-5:]]
    assert kinds == ["int8", "int32", "int32", "int8", "int32"]
    assert not all(all(mask) for mask in rows["attention_mask"].to_pylist())
    for row in rows.to_pylist():
        expected = defined(row["input_ids"], row["seq_lengths"])
        assert {name: row[name] for name in TRAINER_COLUMNS} == expected
    data = bpe_beam.shards.open(str(out))
    assert data.position_ids(-1).tolist() == rows["position_ids"].to_pylist()[-1]
    assert data.labels(-1) == {"seq_lengths": rows["seq_lengths"].to_pylist()[-1]}
    manifest = read_manifest(Storage(), str(out))
    assert manifest.columns == TRAINER_COLUMNS
    assert run_whole("verify", out, "--full", "--input", corpus).code == 0
    shown = run("inspect", out, "--summary-file", tmp_path / "shown.json")
    assert shown.code == 0
    assert json.loads((tmp_path / "shown.json").read_bytes())["columns"] == [*TRAINER_COLUMNS]

    run_whole("convert", out, "--format", other, "--output", there)
    run_whole("convert", there, "--format", one, "--output", back)
    assert without_job(back) == without_job(out)
    run_whole("convert", there, "--format", one, "--columns", "none", "--output", bare)
    assert without_job(bare) == without_job(plain)
    run_whole("convert", bare, *ALL, "--output", tmp_path / "added")
    assert without_job(tmp_path / "added") == without_job(out)
    for folder in (there, bare, tmp_path / "added"):
        assert run_whole("verify", folder).code == 0
    run_whole("convert", out, "--format", "flat", "--output", tmp_path / "flat")
    assert read_manifest(Storage(), str(tmp_path / "flat")).columns is UNSET


def test_documents_have_a_mask_and_labels(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tokenized(corpus, out, "--format", "parquet", "--columns", "attention_mask,labels")
    for row in table(out).to_pylist():
        expected = defined(row["input_ids"], [len(row["input_ids"])])
        assert (row["attention_mask"], row["labels"]) == (
            expected["attention_mask"],
            expected["labels"],
        )
    assert table(out).schema.names[2:5] == ["id", "source", "text_bytes"]
    assert run_whole("verify", out, "--full", "--input", corpus).code == 0


def test_what_cannot_be_asked_for(corpus: Path, tmp_path: Path) -> None:
    arguments = ("--input", corpus, "--tokenizer", corpus.parent / "tok")
    mds, arrow, labelled = (tmp_path / name for name in ("mds", "arrow", "labelled"))
    tokenized(corpus, mds, *PACKED, "--format", "mds")
    tokenized(corpus, labelled, *PACKED, "--format", "arrow", "--columns", "labels")
    run_whole("convert", mds, "--format", "arrow", "--output", arrow)
    columns = ("--columns", "labels")
    for command, code, said in (
        (("tokenize", *arguments, *columns), 2, "--columns must not be given for shards of mega"),
        (("tokenize", *arguments, "--columns", "label"), 2, "--columns must be one of attention_m"),
        (("convert", mds, *columns), 2, "--columns must not be given for shards of mds"),
        (("convert", mds, "--format", "arrow", *columns), 2, "which do not say where documents"),
        (("convert", arrow, *columns), 1, "it is unknown where documents begin in a sequence"),
        (("convert", labelled, arrow), 2, "--columns must be given, since the folders have diff"),
        (("convert", arrow, labelled), 2, "; give --columns none to leave them out"),
    ):
        ran = run(*command, "--output", tmp_path / "out")
        assert (ran.code, said in ran.message) == (code, True), ran.message
    (job,) = (json.loads((labelled / "__job").read_bytes()),)
    assert job["settings"]["columns"] == ["labels"]


def test_verify_finds_wrong_columns(corpus: Path, tmp_path: Path) -> None:
    """With right hashes: each column, and those that the manifest does not know."""
    out = tmp_path / "out"
    tokenized(corpus, out, *PACKED, "--format", "arrow", *ALL)
    manifest = read_manifest(Storage(), str(out))
    (shard,) = manifest.shards
    path, manifest_path = out / shard.files[0].name, out / "__manifest"
    rows, row = table(out), 3
    for name in TRAINER_COLUMNS:
        lists = rows[name].to_pylist()
        lists[row][0] += 1
        at = rows.schema.get_field_index(name)
        wrong = rows.set_column(at, rows.schema.field(at), pa.array(lists, rows[name].type))
        with pa.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(wrong)
        data = path.read_bytes()
        file = replace(shard.files[0], bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        blessed = replace(manifest, shards=(replace(shard, files=(file,)),))
        manifest_path.write_bytes(blessed.to_bytes())
        ran = run("verify", out)
        assert ran.code == 1
        assert "1 problem" in ran.message
        assert f"row {row}: {name} is not what follows from the other columns" in ran.message
    manifest_path.write_bytes(replace(blessed, columns=("labels",)).to_bytes())
    ran = run("verify", out)
    listed = ", ".join(TRAINER_COLUMNS)
    assert f"the columns for trainers are {listed}; __manifest has labels" in ran.message
    manifest_path.write_bytes(replace(blessed, columns=("label",)).to_bytes())
    assert "columns must be of attention_mask, " in run("verify", out).message
