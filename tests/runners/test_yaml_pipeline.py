"""Beam YAML: `pipelines/tokenize.yaml`, run as its first lines say, and counts folders."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, run_whole
from counted_sources import manifest, parts
from engines import missing
from made_text import documents, write
from read_back import read_shards

from bpe_beam import Tokenizer

pytestmark = pytest.mark.runners

PAGE = (ROOT / "docs/transforms.md").read_text("utf-8")

Run = Callable[..., None]


@pytest.fixture
def run_yaml(tmp_path: Path) -> Run:
    """Return a function that runs a pipeline in `tmp_path`."""
    if importlib.util.find_spec("jinja2") is None:
        missing("Beam YAML is not installed: pip install -e '.[yaml]'")

    def run_yaml(pipeline: Path, variables: dict[str, str] | None = None) -> None:
        command = [
            *(sys.executable, "-m", "apache_beam.yaml.main", "--runner=FnApiRunner"),
            f"--yaml_pipeline_file={pipeline}",
            f"--jinja_variables={json.dumps(variables or {})}",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600
        )
        assert done.returncode == 0, done.stderr

    return run_yaml


def test_it_runs(run_yaml: Run, tmp_path: Path) -> None:
    texts = ["ab", "", "ba", "abab"]
    corpus = write(tmp_path / "a.jsonl", texts)
    tokenizer = Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    out = tmp_path / "tokens"
    variables = {
        "input": str(corpus),
        "tokenizer": str(tmp_path / "tokenizer.json"),
        "output": str(out),
    }
    run_yaml(ROOT / "pipelines/tokenize.yaml", variables)
    assert sorted(read_shards(out)) == sorted(tokenizer.encode(text) for text in texts if text)
    run_whole("verify", out)


READ_COUNTS = """
pipeline:
  type: chain
  transforms:
    - type: ReadCounts
      config: {folder: expected}
    - type: LearnMerges
      config:
        recipe: {vocab_size: 300}
        temperature: 0.5
    - type: WriteToText
      config: {path: tempered}
providers:
  - type: python
    config: {}
    transforms:
      ReadCounts: bpe_beam.transforms.beam_yaml.ReadCounts
      LearnMerges: bpe_beam.transforms.beam_yaml.LearnMerges
"""


def test_counts_and_tokenizers_of_the_command(run_yaml: Run, tmp_path: Path) -> None:
    """The example of docs/transforms.md, and a pipeline that reads a counts folder."""
    for seed, language in enumerate(("en", "de")):
        write(tmp_path / "corpus" / language / "a.jsonl", documents(40, seed=seed))
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "example.yaml").write_text(example)
    run_yaml(tmp_path / "example.yaml")
    sources = ("--source", "en=en/*", "--source", "de=de/*")
    expected = tmp_path / "expected"
    run_whole("count", "--input", f"{tmp_path}/corpus/**/*.jsonl", *sources, "--output", expected)
    assert parts(tmp_path / "counts") == parts(expected)
    assert {**manifest(expected), "inputs": []} == manifest(tmp_path / "counts")
    (tmp_path / "read.yaml").write_text(READ_COUNTS)
    run_yaml(tmp_path / "read.yaml")
    special = ("--special-token", "<|endoftext|>")
    for name, flags in (
        ("tokenizer.json", ("--vocab-size=280", "--weights=en=0.5,de=2", *special)),
        ("tempered", ("--vocab-size=300", "--temperature=0.5")),
    ):
        out = tmp_path / f"{name}.expected"
        run_whole("train", "--counts", expected, *flags, "--output", out)
        written = (tmp_path / f"{name}-00000-of-00001").read_bytes()
        assert written == (out / "tokenizer.json").read_bytes() + b"\n"
