"""What a fresh process imports: work that does not need a heavy module starts without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.byte_level import BYTE_TO_CHAR
from bpe_beam.unused_packages import UNUSED_MODULES

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


JOBS = (
    "count --input TEXT --output counts",
    "train --input TEXT --vocab-size 300 --output trained",
    "train --counts counts --vocab-size 300 --merge-rounds distributed --output rounds",
    "tokenize --input TEXT --tokenizer FILE --output tokens",
    "tokenize --input TEXT --tokenizer FILE --output packed --sequence-length 8 --shuffle-seed 1",
    "tokenize --input TEXT --tokenizer FILE --output both --format parquet --format arrow",
    "convert tokens --format parquet --output converted",
    "verify tokens --full --input TEXT",
    "evaluate --tokenizer FILE --input TEXT --output report.json",
    "counts show counts",
    "inspect counts",
    "inspect tokens",
    "plan --input TEXT",
    "count --input TEXT --output estimated --dry-run",
)
SLOW = {"bz2", "lzma", "shutil", "tarfile", "tempfile", "zstandard"}
"""Modules that jobs of small JSON Lines do not use, and that took a twentieth of their time."""
if sys.version_info < (3, 14):  # where `traceback` imports it
    SLOW.add("dataclasses")
INSTALLED = {"pandas", "polars", "torch", "IPython"}
NEEDED = {
    *("bpe_beam", "cython_runtime", "dateutil", "msgspec", "numpy", "pyarrow", "regex", "six"),
    *("typing_extensions", "zstandard"),
}


def modules_after(arguments: list[str], folder: Path) -> set[str]:
    """The modules that a command has imported."""
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from bpe_beam.cli import main, process\n"
        "def run(arguments):\n"
        "    code = main.main(arguments)\n"
        "    Path('modules.json').write_text(json.dumps([*sys.modules]))\n"
        "    return code\n"
        "process.run_and_exit(run, sys.argv[1:])\n"
    )
    paths = os.pathsep.join([*filter(None, sys.path), str(folder / "installed")])
    command = [sys.executable, "-c", code, *arguments, "--quiet"]
    environment = {**os.environ, "PYTHONPATH": paths}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
    return set(json.loads((folder / "modules.json").read_text()))


@pytest.mark.slow
def test_jobs_import_no_package_that_they_do_not_use(byte_level_file: Path, tmp_path: Path) -> None:
    for name in INSTALLED:
        package = tmp_path / "installed" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("__version__ = '99.0'\n")
    (tmp_path / "text.jsonl").write_text('{"text": "low lower lowest"}\n' * 50)
    files = {"FILE": str(byte_level_file), "TEXT": "text.jsonl"}
    for job in JOBS:
        modules = modules_after([files.get(word, word) for word in job.split()], tmp_path)
        packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
        assert {name for name in packages if not name.startswith("_")} <= NEEDED, job
        assert "numpy" in modules, job
        assert not modules & UNUSED_MODULES, job
        if job in JOBS[:4]:
            # Counts of words and of tokens are Parquet.
            assert modules & HEAVY <= {*NEEDED, "numpy.ma", "pyarrow.parquet", "random"}, job


@pytest.mark.parametrize(
    ("job", "own"),
    [
        ("count --input text.jsonl --output counts", 117),
        ("train --input text.jsonl --vocab-size 300 --output trained", 146),
        ("tokenize --input text.jsonl --tokenizer FILE --output tokens", 141),
    ],
)
def test_jobs_of_json_lines_import_their_own_modules(
    byte_level_file: Path, tmp_path: Path, job: str, own: int
) -> None:
    (tmp_path / "text.jsonl").write_text('{"text": "low lower lowest"}\n' * 50)
    modules = modules_after(job.replace("FILE", str(byte_level_file)).split(), tmp_path)
    formats = {name for name in modules if name.startswith("bpe_beam.corpus.formats.")}
    assert formats <= {f"bpe_beam.corpus.formats.{name}" for name in ("interface", "jsonl", "text")}
    assert sum(name.split(".")[0] == "bpe_beam" for name in modules) <= own
    assert not modules & {"bpe_beam.cli.completion", "bpe_beam.settings.convert", *SLOW}


def test_heavy_modules_are_seen() -> None:
    assert "numpy" in heavy_modules_after("import numpy")
