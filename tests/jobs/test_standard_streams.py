"""JSON goes to a path or to stdout, in the order of its keys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_beam.jobs.standard_streams import write_json

pytestmark = pytest.mark.quick

VALUE = {"job": "tokenize", "speed": None, "documents": 1234567, "made": ["a.bin", "ü"]}


def test_json_is_written_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "summary ü.json"
    write_json(VALUE, str(path), {})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == VALUE
    assert list(json.loads(text)) == list(VALUE)
    assert text.endswith("}\n")


def test_a_dash_is_stdout() -> None:
    module = "bpe_beam.jobs.standard_streams"
    code = f"from {module} import write_json as w; print('x'); w({{'ü': 1}}, '-', {{}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=600
    )
    assert done.stdout.decode() == 'x\n{\n  "ü": 1\n}\n'
