"""The same documents in every format: whole jobs, read back by numpy and pyarrow."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import COMMAND, run, run_whole
from killed_jobs import kill_between
from made_text import documents, write
from read_back import read_shards, tree

END = "<|endoftext|>"
FORMATS = ("datatrove", "dolma", "nanogpt", "llmc", "flat", "parquet", "arrow")


@dataclass
class Ground:
    """A corpus, its tokenizer, and the documents that Megatron shards of it have."""

    folder: Path
    documents: list[list[int]]

    def command(self, format_name: str, out: Path, range_bytes: str = "2KB") -> list[str]:
        reading = ["--input", str(self.folder / "a.jsonl"), "--range-bytes", range_bytes]
        tokenizer = ["--tokenizer", str(self.folder / "tok" / "tokenizer.json"), "--prepend", END]
        return ["tokenize", *reading, *tokenizer, "--format", format_name, "--output", str(out)]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    corpus = write(folder / "a.jsonl", ["", *documents(150, seed=6), "", ""])
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    made = Ground(folder, [])
    run_whole(*made.command("megatron", folder / "megatron"))
    made.documents = read_shards(folder / "megatron")
    return made


def inspected(ground: Ground) -> dict[str, Any]:
    """What `inspect` says of the Megatron shards."""
    path = ground.folder / "facts.json"
    if not path.exists():
        assert run("inspect", ground.folder / "megatron", "--summary-file", path).code == 0
    figures: dict[str, Any] = json.loads(path.read_bytes())
    return figures


def flat_offsets(ids: Path) -> list[int]:
    return np.load(ids.with_suffix(".document_offsets.npy")).tolist()


def datatrove_offsets(ids: Path) -> list[int]:
    return [0, *np.fromfile(f"{ids}.index", "<u8").tolist()]


def dolma_offsets(ids: Path) -> list[int]:
    with gzip.open(ids.with_suffix(".csv.gz"), "rt", newline="") as file:
        bounds = [(int(start), int(end)) for start, end, *_ in csv.reader(file)]
    ends = [end for _, end in bounds]
    assert [start for start, _ in bounds] == [0, *ends[:-1]]
    return [0, *ends]


def read_back(folder: Path, format_name: str) -> list[list[int]]:
    """Return the ids of all documents, in the order of the shards."""
    if format_name in ("parquet", "arrow"):
        return read_table(folder, format_name).column("input_ids").to_pylist()
    suffix, offsets_of = OFFSETS.get(format_name, (".bin", flat_offsets))
    found = []
    for path in sorted(folder.glob(f"shard-*{suffix}")):
        ids = np.fromfile(path, "<u2", offset=1024 if format_name == "llmc" else 0)
        offsets = offsets_of(path)
        assert offsets[-1] == ids.size
        found += [ids[start:end].tolist() for start, end in itertools.pairwise(offsets)]
    return found


def read_table(folder: Path, format_name: str) -> pa.Table:
    """Return the rows of all shards."""
    paths = sorted(folder.glob(f"shard-*.{format_name}"))
    if format_name == "parquet":
        return pa.concat_tables(map(pq.read_table, paths))
    return pa.concat_tables(pa.ipc.open_file(path.read_bytes()).read_all() for path in paths)


OFFSETS = {"datatrove": (".ds", datatrove_offsets), "dolma": (".npy", dolma_offsets)}


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_documents_are_those_of_megatron_shards(
    ground: Ground, tmp_path: Path, format_name: str
) -> None:
    out = tmp_path / "out"
    command = ground.command(format_name, out)
    run_whole(*command, "--workers", "2")
    assert read_back(out, format_name) == ground.documents
    assert all(document[0] == ground.documents[0][0] for document in ground.documents)
    proof = run_whole("verify", out, "--full", "--input", ground.folder / "a.jsonl").summary
    assert proof["whole"] is True
    assert run("inspect", out, "--summary-file", tmp_path / "facts.json").code == 0
    figures = json.loads((tmp_path / "facts.json").read_bytes())
    assert (figures["format"], figures["documents"]) == (format_name, len(ground.documents))
    for kind in ("first_documents", "sample"):
        assert figures[kind] == inspected(ground)[kind]
    before = tree(out)
    assert run_whole(*command).summary["was_finished_before"]
    (lost := max(out.glob("shard-00000-*"))).unlink()
    refused = run("verify", out)
    assert refused.code == 1
    assert lost.name in refused.err
    run_whole(*command)
    assert tree(out) == before


@pytest.mark.slow
@pytest.mark.parametrize("format_name", ["datatrove", "dolma", "llmc", "parquet", "arrow"])
def test_killed_and_resumed(ground: Ground, tmp_path: Path, format_name: str) -> None:
    """The ids of llm.c shards wait in a temporary file."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*ground.command(format_name, whole, "200"))
    command = ground.command(format_name, out, "200")
    receipts = out / "work"
    kill_between(
        [*COMMAND, *command, "--quiet"],
        out,
        lambda: len([*receipts.glob("*.json")]) > 2,
        (out / "__manifest").exists,
        "the receipts of three of a hundred splits",
    )
    summary = run_whole(*command).summary
    assert summary["shards_kept_from_before"] > 0
    assert tree(out) == tree(whole)


def test_llmc_needs_a_token_that_documents_begin_with(ground: Ground, tmp_path: Path) -> None:
    command = ground.command("llmc", tmp_path / "out")
    at = command.index("--prepend")
    ran = run(*command[:at], *command[at + 2 :], "--append", END)
    assert ran.code == 2
    assert "--prepend must be given for shards of llmc" in ran.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_name", ["parquet", "arrow"])
def test_rows_name_their_documents_and_what_made_them(
    ground: Ground, tmp_path: Path, format_name: str
) -> None:
    plain, named = tmp_path / "plain", tmp_path / "named"
    run_whole(*ground.command(format_name, plain))
    ran = run(*ground.command(format_name, named), "--source", "web=a*", "--id-field", "none")
    assert ran.code == 0
    assert "warning: 'none' is the field of ids, but none of the first" in ran.err

    found, other = read_table(plain, format_name), read_table(named, format_name)

    lines = (ground.folder / "a.jsonl").read_bytes().splitlines()
    assert other.column("id").null_count == len(lines)
    assert found.column("id").to_pylist() == [str(json.loads(line)["id"]) for line in lines]
    assert set(found.column("source").to_pylist()) == {"a.jsonl"}
    sizes = [len(json.loads(line)["text"].encode()) for line in lines]
    assert found.column("text_bytes").to_pylist() == sizes
    assert set(other.column("source").to_pylist()) == {"web"}
    tokenizer = (plain / "__tokenizer").read_bytes()
    assert json.loads(found.schema.metadata[b"bpe_beam"]) == {
        "append": None,
        "document": "row",
        "prepend": {"id": ground.documents[0][0], "token": END},
        "tokenizer": {
            "fingerprint": hashlib.sha256(tokenizer).hexdigest(),
            "vocab_size": json.loads((plain / "__manifest").read_bytes())["tokenizer"][
                "vocab_size"
            ],
        },
    }
