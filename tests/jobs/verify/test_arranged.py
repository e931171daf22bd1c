"""`verify --full` of shards whose documents were arranged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run, run_whole
from made_text import documents
from msgspec import UNSET
from msgspec.structs import asdict, replace

from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a file of documents with ids, and a reject."""
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(documents(120, seed=6))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{}\n")
    return path


@pytest.mark.sampled(2)
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
    unit = "document" if manifest.sequences is None else "sequence"
    assert f"{name}: {unit} 0" in ran.message
    assert "arranged.tokens is" in ran.message
    assert "__manifest: arranged.corpus.text_bytes is" in ran.message


def test_the_settings_of_reading_stay_with_divided_shards(tokenizer: str, tmp_path: Path) -> None:
    """The fields of text, id and source: the id decides which documents are for validation."""
    corpus = tmp_path / "corpus.jsonl"
    rows = [
        {"key": f"d{at}", "body": text, "lang": "de" if at % 3 else "en"}
        for at, text in enumerate(documents(120, seed=6))
    ]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = ("--text-field", "body", "--id-field", "key", "--source-field", "lang")
    packed = ("--sequence-length", 32, "--packing", "best_fit", "--validation-share", "20%")
    run_whole(
        *("tokenize", "--input", corpus, "--tokenizer", tokenizer, *fields, *packed),
        *("--output", tmp_path / "out"),
    )
    part, divided, again = tmp_path / "out" / "train", tmp_path / "divided", tmp_path / "again"
    run_whole("convert", part, "--shards", 3, "--output", divided)
    run_whole("convert", divided, "--shards", 2, "--format", "parquet", "--output", again)
    for folder in (divided, again):
        assert run_whole("verify", folder, "--full", "--input", corpus).code == 0

    other = tmp_path / "other.jsonl"
    other.write_text(corpus.read_text().replace('"lang": "en"', '"lang": "fr"'))
    ran = run("verify", divided, "--full", "--input", other)
    assert ran.code == 1
    found = [line for line in ran.message.splitlines() if "arranged.corpus.sources" in line]
    assert found == [
        f"  __manifest: arranged.corpus.sources.{name} is {was}; the corpus gives {now}"
        for name, was, now in sources_that_differ(divided)
    ]
    other.write_text(corpus.read_text().replace('"body"', '"text"'))
    ran = run("verify", divided, "--full", "--input", other)
    assert ran.code == 1
    assert f"the corpus cannot be tokenized and arranged as it was for {divided}" in ran.message
    assert "text_field 'body' names no field; it has 'key', 'text', 'lang'" in ran.message
    assert ran.message.endswith("; name the corpus that was tokenized with --input")
    assert "bpe-beam-verify" not in ran.message


def sources_that_differ(folder: Path) -> list[tuple[str, object, object]]:
    """Return what differs where another language has the documents of `en`."""
    part = read_manifest(Storage(), str(folder)).arranged
    assert part
    assert part.corpus
    assert part.corpus.sources
    totals = asdict(part.corpus.sources["en"])
    return [
        *((f"en.{name}", value, "none") for name, value in totals.items()),
        *((f"fr.{name}", "none", value) for name, value in totals.items()),
    ]


def test_a_folder_that_lost_the_settings_of_reading_is_not_compared(
    corpus: Path, tokenizer: str, tmp_path: Path
) -> None:
    """As earlier versions wrote them: their documents would seem to be others."""
    out = tmp_path / "out"
    arguments = ("--input", corpus, "--max-rejects", 1, "--shuffle-seed", 1)
    run_whole("tokenize", *arguments, "--tokenizer", tokenizer, "--output", out)
    manifest = read_manifest(Storage(), str(out))
    lost = replace(manifest, settings=manifest.encoding, job_fingerprint=UNSET)
    (out / "__manifest").write_bytes(lost.to_bytes())
    (out / "__job").unlink()
    ran = run("verify", out, "--full", "--input", corpus)
    assert ran.code == 2
    assert ran.message.endswith("; leave it out, or verify the folder that tokenize wrote")
