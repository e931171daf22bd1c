"""Splits with more tokens than a shard may have: only the shards are others."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from command_line import run, run_whole
from made_text import documents, write
from msgspec.structs import replace
from read_back import tree, without_job

import bpe_beam.shards
from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.shards.formats import litdata, llmc, mds, shard_format
from bpe_beam.shards.formats.interface import ShardLimit
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.storage import Storage
from bpe_beam.workers.split_shards import SplitShards

MOST = 700
FORMATS = {"llmc": llmc, "mds": mds, "litdata": litdata}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of three splits with rejects, sources and empty documents, and a tokenizer."""
    folder = tmp_path_factory.mktemp("made")
    texts = documents(220, seed=5)
    rows = [
        json.dumps({"id": f"{at}", "web": f"s{at % 3}", "text": text})
        for at, text in enumerate(texts)
    ]
    rows[30:30] = ["no JSON", "{}"]
    (folder / "a.jsonl").write_text("\n".join(rows) + "\n")
    corpus = write(folder / "train.jsonl", texts)
    run_whole("train", "--input", corpus, "--vocab-size", "300", "--output", folder / "tok")
    return folder


@pytest.fixture(params=FORMATS)
def limited(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A format whose shards have at most MOST tokens."""
    module: ModuleType = FORMATS[request.param]
    monkeypatch.setattr(module, "FORMAT", replace(module.FORMAT, max_shard_tokens=MOST))
    return str(request.param)


def tokenize(made: Path, output: Path, format_name: str, *more: object) -> None:
    corpus = made / "a.jsonl"
    size = corpus.stat().st_size // 3
    arguments = ("--input", corpus, "--range-bytes", size, "--max-rejects", "9")
    sources = ("--source-field", "web", "--prepend", "a")
    done = run(
        *("tokenize", "--tokenizer", made / "tok" / "tokenizer.json", *arguments, *sources),
        *("--format", format_name, "--output", output, "--quiet", *more),
    )
    assert done.code == 0, done.err


def stream(folder: Path) -> list[list[int]]:
    """The ids of every document, in order."""
    return [ids.tolist() for ids in bpe_beam.shards.open(str(folder))]


def manifest_of(folder: Path) -> Manifest:
    return read_manifest(Storage(), str(folder))


def test_documents_go_on_in_another_shard(limited: str, made: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    tokenize(made, whole, "flat")
    tokenize(made, out, limited)
    before, found = manifest_of(whole), manifest_of(out)
    assert stream(out) == stream(whole)
    assert len(found.shards) > 2 * len(before.shards) > 4
    weight = shard_format(limited).document_weight
    for shard, after in zip(found.shards, found.shards[1:], strict=False):
        assert shard.tokens + weight * shard.documents <= MOST
        assert shard.split < after.split or not (after.slices or after.rejects)
    assert replace(found.totals, shards=0) == replace(before.totals, shards=0)
    assert (found.sources, found.rejects) == (before.sources, before.rejects)
    for folder, more in ((out, ()), (out, ("--full", "--input", str(made / "a.jsonl")))):
        done = run("verify", folder, *more)
        assert done.code == 0, done.err
    assert run("inspect", out).code == 0
    left = {path.name for path in out.iterdir()} - {path.name for path in whole.iterdir()}
    assert all(name.startswith("shard-") or name == "index.json" for name in left)


def test_several_formats_have_the_shards_of_the_strictest(
    limited: str, made: Path, tmp_path: Path
) -> None:
    alone, out = tmp_path / "alone", tmp_path / "out"
    tokenize(made, alone, limited)
    for _ in range(2):  # the second time nothing is left to do
        tokenize(made, out, "parquet", "--format", limited)
        shards = [(each.documents, each.tokens) for each in manifest_of(alone).shards]
        for name in ("parquet", limited):
            found = manifest_of(out / name)
            assert [(each.documents, each.tokens) for each in found.shards] == shards


@pytest.mark.parametrize("format_name", ["mds", "litdata"])
def test_documents_without_tokens_begin_no_shard(
    format_name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard has tokens, so they are in the one before, though it is full."""
    corpus = write(tmp_path / "a.jsonl", ["", "hello world", "", "", ""])
    command = ("tokenize", "--tokenizer", made / "tok" / "tokenizer.json", "--input", corpus)
    run_whole(*command, "--format", "flat", "--output", tmp_path / "flat")
    (shard,) = manifest_of(tmp_path / "flat").shards
    module = FORMATS[format_name]
    full = shard.tokens + 2 * module.FORMAT.document_weight
    monkeypatch.setattr(module, "FORMAT", replace(module.FORMAT, max_shard_tokens=full))
    out = tmp_path / "out"
    done = run(*command, "--format", format_name, "--output", out, "--quiet")
    assert done.code == 0, done.err
    assert [(each.documents, each.tokens) for each in manifest_of(out).shards] == [
        (5, shard.tokens)
    ]
    assert run_whole("verify", out, "--full", "--input", corpus).code == 0


def test_one_worker_or_two_and_beam_write_the_same(
    limited: str, made: Path, tmp_path: Path
) -> None:
    for name, more in {
        "one": ("--workers", "1"),
        "two": ("--workers", "2"),
        "beam": ("--runner", "FnApiRunner"),
    }.items():
        tokenize(made, tmp_path / name, limited, *more)
    assert tree(tmp_path / "one") == tree(tmp_path / "two") == tree(tmp_path / "beam")


def test_a_folder_is_repaired_and_replaced(limited: str, made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tokenize(made, out, limited)
    whole = tree(out)
    suffix = shard_format(limited).suffixes[0]
    for number in (1, len(manifest_of(out).shards) - 1):
        (out / f"{manifest_of(out).shards[number].name}{suffix}").unlink()
        tokenize(made, out, limited)
        assert tree(out) == whole
    (out / "__manifest").unlink()  # as if it had been killed before its end
    tokenize(made, out, limited)
    assert tree(out) == whole
    tokenize(made, out, "flat", "--overwrite")
    tokenize(made, tmp_path / "flat", "flat")
    assert tree(out) == tree(tmp_path / "flat")


def test_conversion_keeps_the_shards(limited: str, made: Path, tmp_path: Path) -> None:
    out, other, back = tmp_path / "out", tmp_path / "other", tmp_path / "back"
    tokenize(made, out, limited)
    for source, format_name, target in ((out, "datatrove", other), (other, limited, back)):
        done = run("convert", source, "--format", format_name, "--output", target, "--quiet")
        assert done.code == 0, done.err
        done = run("verify", target, "--full", "--input", str(made / "a.jsonl"))
        assert done.code == 0, done.err
    assert without_job(out) == without_job(back)


def test_another_text_in_a_later_shard_is_found(limited: str, made: Path, tmp_path: Path) -> None:
    out, corpus = tmp_path / "out", tmp_path / "a.jsonl"
    tokenize(made, out, limited)
    rows = (made / "a.jsonl").read_bytes().splitlines(keepends=True)
    found = manifest_of(out)
    in_split = [shard for shard in found.shards if shard.split == 1]
    # The last document of the split that has a space.
    end = sum(shard.documents for shard in found.shards if shard.split < 2)
    ids = {b'{"id": "%d"' % number for number in range(end - in_split[-1].documents, end)}
    at = max(
        row
        for row, line in enumerate(rows)
        if line.split(b",")[0] in ids and line.split(b'"text"')[-1].count(b" ") > 1
    )
    rows[at] = b"_".join(rows[at].rsplit(b" ", 1))
    corpus.write_bytes(b"".join(rows))
    done = run("verify", out, "--full", "--input", corpus)
    assert done.code == 1
    assert f"{in_split[0].name} to {in_split[-1].name}: document" in done.err


@pytest.mark.parametrize("weight", [0, 1, 4])
def test_shards_are_filled_document_by_document(weight: int, tmp_path: Path) -> None:
    """Against the definition: a document with tokens begins a shard if the last one has no room."""
    draw = random.Random(weight)
    for trial in range(20):
        folder = tmp_path / f"{trial}"
        (folder / "work").mkdir(parents=True)
        lengths = [draw.choice([0, 1, 3, 10, 30, 46]) for _ in range(draw.randrange(1, 60))]
        expected: list[list[int]] = [[]]
        for length in lengths:
            used = sum(expected[-1]) + weight * len(expected[-1])
            if sum(expected[-1]) and length and used + length + weight > 50:
                expected.append([])
            expected[-1].append(length)
        open_writer = partial(_open_writer, folder / "work")
        limit = ShardLimit(50, weight)
        with SplitShards(limit, open_writer, "shard", by_source=False) as shards:
            start = 0
            while start < len(lengths):
                part = lengths[start : start + draw.randrange(1, 20)]
                offsets = np.cumsum([0, *part], dtype=np.int64)
                ids = np.arange(offsets[-1], dtype=np.uint32) % 300
                shards.add(_batch(part), ids, offsets)
                start += len(part)
        assert [(each.documents, each.tokens) for each in shards.sums] == [
            (len(each), sum(each)) for each in expected
        ]


def _open_writer(folder: Path, name: str) -> llmc.LlmcWriter:
    return llmc.LlmcWriter(Storage(), str(folder), name, 300)


def _batch(lengths: list[int]) -> pa.RecordBatch:
    columns = {
        "text": pa.array(["a" * length for length in lengths], pa.large_string()),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(len(lengths), field.type)) for field in BATCH_SCHEMA],
        schema=pa.schema([field.with_nullable(True) for field in BATCH_SCHEMA]),
    )
