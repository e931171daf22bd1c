"""Keyed documents to counts, a weighted tokenizer and shards, on each runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from command_line import run_whole
from engines import Engine
from made_text import documents

from bpe_beam.transforms import (
    BpeRecipe,
    CountWords,
    LearnMerges,
    ReadCounts,
    Tokenize,
    WriteCounts,
    WriteTokens,
)
from bpe_beam.transforms.shuffles import CreateElements

pytestmark = pytest.mark.runners

TEXTS = {name: documents(40, seed=seed) for seed, name in enumerate(("de", "en", "zh"))}


def test_the_folder_and_the_tokenizer_of_the_command(tmp_path: Path, engine: Engine) -> None:
    corpus, counts = tmp_path / "corpus.jsonl", tmp_path / "counts"
    keyed = [(name, text) for name, texts in TEXTS.items() for text in texts]
    rows = (json.dumps({"lang": name, "text": text}) for name, text in keyed)
    corpus.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    fields = ("--input", corpus, "--source-field", "lang")
    run_whole("count", *fields, "--output", tmp_path / "expected")
    options = engine.beam_flags
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        (
            pipeline
            | "Documents" >> CreateElements(keyed, tuple[str, str])
            | "Count" >> CountWords(by_source=True)
            | "Write" >> WriteCounts(counts)
        )
    expected = {path.name: path.read_bytes() for path in (tmp_path / "expected").glob("*.parquet")}
    assert {path.name: path.read_bytes() for path in counts.glob("*.parquet")} == expected
    run_whole("verify", counts)
    learned = tmp_path / "learned"
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        tokenizers = (
            pipeline
            | "Read" >> ReadCounts(counts)
            | "Learn" >> LearnMerges(BpeRecipe(320), weights={"de": 2, "zh": 0.5})
        )
        _ = tokenizers | "Save" >> beam.io.WriteToText(str(learned), shard_name_template="")
        _write(pipeline, keyed, beam.pvalue.AsSingleton(tokenizers), tmp_path / "tokens")
    flags = ("--weights", "de=2,zh=0.5", "--vocab-size", "320")
    run_whole("train", "--counts", tmp_path / "expected", *flags, "--output", tmp_path / "tok")
    tokenizer = (tmp_path / "tok/tokenizer.json").read_text("utf-8")
    assert learned.read_text("utf-8").strip() == tokenizer.strip()
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        _write(pipeline, keyed, tmp_path / "tok/tokenizer.json", tmp_path / "known")
    names = sorted(path.name for path in (tmp_path / "known").iterdir())
    assert sorted(path.name for path in (tmp_path / "tokens").iterdir()) == names
    for name in names:
        assert (tmp_path / "tokens" / name).read_bytes() == (tmp_path / "known" / name).read_bytes()


def _write(pipeline: beam.Pipeline, keyed: list[Any], tokenizer: Any, folder: Path) -> None:
    """Tokenize documents with a tokenizer of the same pipeline, or of a file."""
    _ = (
        pipeline
        | "Documents" >> CreateElements(keyed, tuple[str, str])
        | "Tokenize" >> Tokenize(tokenizer)
        | "Write" >> WriteTokens(folder, tokenizer, shards=2)
    )
