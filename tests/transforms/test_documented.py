"""The examples of docs/transforms.md, run one after another as a reader would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, run
from made_text import write

import bpe_beam
from bpe_beam import transforms
from bpe_beam.transforms import beam_yaml

PAGE = (ROOT / "docs/transforms.md").read_text("utf-8")
MERGES = "[('w', 'e'), ('l', 'o'), ('n', 'e'), ('s', 't'), ('Ġ', 'lo')]\n"
PAIRS = "{'left': 'w', 'right': 'e', 'count': 40}\n"

# All examples in one process, since each imports Beam: each as a main module, with its output.
RUN_EXAMPLES = """
import contextlib, io, json, sys
printed = []
for example in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(example, "example.py", "exec"), {"__name__": "__main__"})
    printed.append(output.getvalue())
json.dump(printed, sys.stdout)
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Where the examples ran, and what each printed."""
    folder = tmp_path_factory.mktemp("transforms")
    write(folder / "corpus/a.jsonl", ["one", "two"])
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (folder / "run_examples.py").write_text(RUN_EXAMPLES)
    done = subprocess.run(
        [sys.executable, "run_examples.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(bpe_beam.__file__).parents[1])},
        input=json.dumps(examples),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    return folder, printed


@pytest.mark.slow
def test_what_the_examples_print(shown: tuple[Path, list[str]]) -> None:
    folder, printed = shown
    imports, dead, read, read_all, learned, counts, pairs, tokenized, *silent, columns = printed
    assert imports == ""
    assert sorted(dead.splitlines()) == [
        "({'id': 2, 'body': None}, \"the field 'body' of a document must be text, got null\")",
        "{'id': 1, 'tokens': [75, 78, 86]}",
    ]
    for each in (read, read_all):
        assert sorted(each.split()) == ["one", "two"]
    assert learned == MERGES
    assert counts == ""
    assert run("verify", folder / "counts").code == 0
    assert pairs == PAIRS
    # lo w, ne we st, each with the token of the end
    assert sorted(tokenized.splitlines()) == ["[258, 87, 0]", "[259, 257, 260, 0]"]
    assert columns.splitlines() == [
        "{'id': 1, 'text': [258, 257, 82]}",
        "{'id': 2, 'text': [259, 257, 82]}",
    ]
    assert silent == [""] * 2
    for name in ("tokens", "learned-tokens", "packed/train", "packed/validation"):
        assert run("verify", folder / name).code == 0


def test_every_transform_and_setting_stands_there() -> None:
    for name in transforms.__all__:
        assert f"`{name}" in PAGE
    table = PAGE[PAGE.index("## Beam YAML") :]
    for name, kind in vars(beam_yaml).items():
        if name.startswith("_") or getattr(kind, "__module__", "") != beam_yaml.__name__:
            continue
        parameters = getattr(beam_yaml, name).__init__.__annotations__.keys() - {"return"}
        (row,) = re.findall(rf"^\| `{name}` \| (.*?) \|", table, re.MULTILINE)
        assert set(re.findall(r"`(\w+)`", row)) == parameters
