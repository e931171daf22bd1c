"""What a fresh process imports: work that does not need a heavy module starts without it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.tokenizer.byte_level import BYTE_TO_CHAR

pytestmark = pytest.mark.quick

HEAVY = {
    *("apache_beam", "fsspec", "numpy", "numpy.ma", "pyarrow", "pyarrow.compute"),
    *("pyarrow.parquet", "random", "regex"),
}


def heavy_modules_after(code: str, *arguments: object) -> set[str]:
    """The heavy modules that a fresh process has imported when it has run some code."""
    report = f"\nimport json, sys\nprint()\nprint(json.dumps([*{{*sys.modules}} & {HEAVY!r}]))"
    command = [sys.executable, "-c", code + report, *map(str, arguments)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def byte_level_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    Tokenizer.from_learned([*BYTE_TO_CHAR, "he"], [("h", "e")]).save(str(path))
    return path


def test_loading_and_encoding_import_nothing_heavy(byte_level_file: Path) -> None:
    code = (
        "import sys\n"
        "from bpe_beam import Tokenizer\n"
        "tokenizer = Tokenizer.from_file(sys.argv[1])\n"
        "assert tokenizer.decode(tokenizer.encode('hello')) == 'hello'\n"
    )
    assert heavy_modules_after(code, byte_level_file) == set()


def test_public_names_are_imported_when_they_are_used() -> None:
    code = (
        "import bpe_beam\n"
        "assert {*bpe_beam.__all__} <= {*dir(bpe_beam)}\n"
        "assert all(name in bpe_beam.__doc__ for name in bpe_beam.__all__)\n"
    )
    assert heavy_modules_after(code) == set()
    for name in bpe_beam.__all__:
        assert getattr(bpe_beam, name).__doc__
    with pytest.raises(AttributeError, match="trian"):
        bpe_beam.trian  # noqa: B018


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "--version",
        "encode --help",
        "encode --tokenizer FILE hello",
        "decode --tokenizer FILE 39",
        "inspect FILE",
    ],
)
def test_small_jobs_import_nothing_heavy(byte_level_file: Path, arguments: str) -> None:
    words = [str(byte_level_file) if word == "FILE" else word for word in arguments.split()]
    code = (
        "import sys\n"
        "from bpe_beam.cli.main import main\n"
        "try:\n"
        "    assert main(sys.argv[1:]) == 0\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
    )
    # `random` comes with Python's own reader of package metadata.
    assert heavy_modules_after(code, *words) <= {"random"}


@pytest.mark.parametrize(
    "arguments",
    [
        "count --input TEXT --output out",
        "train --input TEXT --vocab-size 300 --output out",
        "train --input TEXT --vocab-size 300 --merge-rounds distributed --output out",
        "tokenize --input TEXT --tokenizer FILE --output out",
    ],
)
def test_jobs_without_a_runner_import_what_they_need(
    byte_level_file: Path, tmp_path: Path, arguments: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("low lower lowest\n" * 50)
    files = {"FILE": str(byte_level_file), "TEXT": str(text), "out": str(tmp_path / "out")}
    code = "import sys\nfrom bpe_beam.cli.main import main\nassert main(sys.argv[1:]) == 0\n"
    words = [files.get(word, word) for word in arguments.split()]
    # The counts of words and of tokens are Parquet.
    needed = {"numpy", "pyarrow", "pyarrow.parquet", "random"}
    if "distributed" in words or words[0] == "tokenize":
        needed.add("numpy.ma")
    if importlib.util.find_spec("pandas"):  # pyarrow imports it, and with it what it needs
        needed |= {"numpy.ma", "pyarrow.compute"}
    assert heavy_modules_after(code, *words, "--quiet") <= needed


def test_heavy_modules_are_seen() -> None:
    assert "numpy" in heavy_modules_after("import numpy")
