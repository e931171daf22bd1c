"""A file beside the output is prepared before the work; JSON keeps the order of its keys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from bpe_beam.jobs.output import write_json

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
    module = "bpe_beam.jobs.output"
    code = f"from {module} import write_json as w; print('x'); w({{'ü': 1}}, '-', {{}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, timeout=600
    )
    assert done.stdout.decode() == 'x\n{\n  "ü": 1\n}\n'


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("a b\n")
    return path


def test_the_folder_of_a_summary_is_made(text: Path, tmp_path: Path) -> None:
    summary = tmp_path / "new" / "summary.json"
    output = ("--output", tmp_path / "counts")
    assert run("count", "--input", text, *output, "--summary-file", summary).code == 0
    assert json.loads(summary.read_text())["documents"] == 1


@pytest.mark.parametrize("job", ["count", "plan", "blend"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    job: str, text: Path, tmp_path: Path
) -> None:
    counts = tmp_path / "counts"
    option, *rest = {
        "count": ("--summary-file", "--input", text, "--output", counts),
        "plan": ("--output", "--input", text),
        "blend": ("--sequences", text),
    }[job]
    ran = run(job, *rest, option, tmp_path)
    assert ran.code == 2
    assert f"{option} must be a file, got the folder" in ran.message
    ran = run(job, *rest, option, text / "summary.json")
    assert ran.code == 1
    assert f"cannot make folder {text}" in ran.message
    assert not counts.exists()
