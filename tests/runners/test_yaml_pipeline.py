"""`pipelines/tokenize.yaml`, run as its first lines say."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, run_whole
from engines import missing
from made_text import write
from read_back import read_shards

from bpe_beam import Tokenizer

pytestmark = pytest.mark.runners


def test_it_runs(tmp_path: Path) -> None:
    if importlib.util.find_spec("jinja2") is None:
        missing("Beam YAML is not installed: pip install -e '.[yaml]'")
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
    command = [
        *(sys.executable, "-m", "apache_beam.yaml.main", "--runner=FnApiRunner"),
        f"--yaml_pipeline_file={ROOT / 'pipelines/tokenize.yaml'}",
        f"--jinja_variables={json.dumps(variables)}",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert sorted(read_shards(out)) == sorted(tokenizer.encode(text) for text in texts if text)
    run_whole("verify", out)
