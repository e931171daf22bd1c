"""`verify --full` of shards whose documents were arranged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run, run_whole
from made_text import documents

from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a file of documents with ids, and a reject."""
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(documents(120, seed=6))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{}\n")
    return path


@pytest.mark.parametrize(
    "arranging",
    [
        ("--shuffle-seed", 7),
        ("--sequence-length", 32, "--packing", "best_fit", "--max-documents-per-sequence", 2),
    ],
)
def test_the_corpus_proves_what_is_arranged(
    corpus: Path, tokenizer: str, tmp_path: Path, arranging: tuple[object, ...]
) -> None:
    """In the folder of a part, also after a conversion to other shards; changes are named."""
    part, other, arguments = tmp_path / "out" / "train", tmp_path / "other", ("--input", corpus)
    settings = ("--tokenizer", tokenizer, "--max-rejects", 1, "--range-bytes", "5KB")
    rows = ("--shard-tokens", 900, "--validation-share", "20%", "--output", tmp_path / "out")
    run_whole("tokenize", *arguments, *settings, *arranging, *rows)
    run_whole("convert", part, "--format", "arrow", "--shards", 2, "--output", other)
    for folder in (part, other):
        summary = run_whole("verify", folder, "--full", *arguments).summary
        assert summary["compared"] == "every token, with the corpus encoded and arranged again"
    refused = run("verify", part, *arguments)
    assert refused.code == 2
    assert refused.message.endswith("; give --full too")

    manifest = read_manifest(Storage(), str(part))
    name = manifest.shards[1].name
    text = corpus.read_text()
    changed = corpus.with_name("changed.jsonl")
    changed.write_text(text.replace('"text": "', '"text": "!'))
    ran = run("verify", part, "--full", "--input", changed)
    assert ran.code == 1
    assert "is not whole" in ran.message
    assert f"{name}: document 0" in ran.message
    assert "arranged.tokens is" in ran.message
