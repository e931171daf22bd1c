"""Building the package from its sources: what an archive and a wheel hold, what a user sees who has
no compiler, and what Beam's workers do with `--setup_file`. It takes setuptools and nanobind as the
test extra has them; only the workers' environment is made anew.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
# What a working folder gathers and a clone does not have, beside hidden folders.
GATHERED = ("__pycache__", "build", "dist", "bpe-beam-quickstart")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as a fresh clone has it: nothing hidden, compiled or generated."""
    target = tmp_path_factory.mktemp("clone")
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name == ".ci"
            or (name not in GATHERED and not name.endswith(".egg-info") and name[0] != ".")
        ]
        there = target / Path(folder).relative_to(ROOT)
        there.mkdir(exist_ok=True)
        for name in files:
            if Path(name).suffix not in (".so", ".pyc"):
                (there / name).write_bytes(Path(folder, name).read_bytes())
    return target


def build(what: str, folder: Path, target: Path) -> Path:
    """Builds an archive or a wheel through the hooks that pip calls; returns the file."""
    call = f"from setuptools import build_meta; print(build_meta.build_{what}({str(target)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", call],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


def test_a_wheel_of_an_archive_holds_all_that_is_needed(clone: Path, tmp_path: Path) -> None:
    archive = build("sdist", clone, tmp_path)
    with tarfile.open(archive) as files:
        files.extractall(tmp_path)
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", ".ci/once", ".ci/run"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
    assert (unpacked / "tests" / Path(__file__).name).exists()

    wheel = build("wheel", unpacked, tmp_path)

    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    sources = {path.relative_to(clone) for path in clone.glob("bpe_beam/**/*") if path.is_file()}
    assert {str(path) for path in sources} <= names
    assert "bpe_beam/py.typed" in names
    assert "bpe_beam/native/count/word_table.hpp" in names
    assert "bpe_beam/native/text/unicode_classes.cpp" in names
    compiled = [name for name in names if name.endswith((".so", ".pyd"))]
    assert len(compiled) == 1
    assert compiled[0].startswith("bpe_beam/_native.")
    metadata = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"bpe_beam", metadata}

    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    # Isolated from the working folder and from what PYTHONPATH names: only the wheel is there.
    check = (
        f"import sys; sys.path.insert(0, {str(site)!r}); from bpe_beam import Tokenizer, _native; "
        "t = Tokenizer.from_learned(['a', 'b', 'ab'], [('a', 'b')]); "
        "print(_native.__file__, t.encode('abab'))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", check],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
    assert done.stdout.endswith("[2, 2]\n")


@pytest.mark.parametrize("compiler", ["/no/such/compiler", "false"])
def test_a_missing_compiler_is_named(clone: Path, tmp_path: Path, compiler: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "setup.py",
            "build_ext",
            "--build-temp",
            tmp_path,
            "--build-lib",
            tmp_path,
        ],
        cwd=clone,
        env={**os.environ, "CC": compiler, "CXX": compiler},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode != 0
    assert "bpe_beam._native could not be compiled" in done.stderr
    assert compiler in done.stderr
    assert "needs a C++20 compiler" in done.stderr
    assert "apt-get install g++" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def staged(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Beam packs on a machine without nanobind with `--setup_file ./setup.py`."""
    target = tmp_path_factory.mktemp("staged")
    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "nanobind.py").write_text("raise ModuleNotFoundError('hidden', name='nanobind')")
    call = (
        "from apache_beam.runners.portability.stager import Stager; "
        f"print(Stager._build_setup_package('./setup.py', {str(target)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", call],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(hidden)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


@pytest.mark.scheduled
def test_workers_build_what_beam_packs(staged: Path, tmp_path: Path) -> None:
    # Of the worker image, what counts here: Beam with what it needs, a compiler, setuptools and
    # wheel, no nanobind. Its boot program installs with these very arguments.
    python = tmp_path / "worker/bin/python"
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    beam = f"apache-beam=={importlib.metadata.version('apache-beam')}"
    workflow = staged.rename(tmp_path / "workflow.tar.gz")
    check = (
        "import importlib.util as u; assert u.find_spec('nanobind') is None; "
        "import bpe_beam.transforms; from bpe_beam import Tokenizer; "
        "print(Tokenizer.from_learned(['a', 'b', 'ab'], [('a', 'b')]).encode('abab'))"
    )
    for command in (
        [sys.executable, "-m", "venv", tmp_path / "worker"],
        [*pip, "-q", beam, "setuptools>=77", "wheel"],
        [*pip, "--no-cache-dir", workflow, "--no-build-isolation"],
        [python, "-I", "-c", check],
    ):
        done = subprocess.run(
            [*map(str, command)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "[2, 2]\n"


def test_what_is_fetched_is_what_is_asked_for() -> None:
    required = f'requires = ["setuptools>=77", "{_nanobind()}"]'
    assert required in (ROOT / "pyproject.toml").read_text()


def test_without_nanobind_and_without_an_index_it_says_so(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "nanobind.py").write_text("raise ModuleNotFoundError('hidden', name='nanobind')")
    shutil.rmtree(clone / "build", ignore_errors=True)  # what an earlier test has fetched
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-temp", tmp_path],
        cwd=clone,
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode != 0
    assert "nanobind is missing" in done.stderr
    assert "No matching distribution found" in done.stderr


def _nanobind() -> str:
    found = re.search(r'^NANOBIND = "(.*)"$', (ROOT / "setup.py").read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_ci_compiles_the_same_text_once(tmp_path: Path) -> None:
    """Though each environment has the headers in a folder of its own, whose name they may tell."""
    (tmp_path / "objects").mkdir()
    source = tmp_path / "source.cpp"
    source.write_text('#include "header.hpp"\nconst char* text() { return where(); }\n')

    def objects(folder: str, result: str, flag: str) -> int:
        include = tmp_path / folder
        include.mkdir(exist_ok=True)
        (include / "header.hpp").write_text(
            f"inline const char* where() {{ return __FILE__ {result}; }}\n"
        )
        # CI's own compiler begins with this very script.
        words = shlex.split(os.environ.get("CXX", "c++"))
        compiler = [word for word in words if Path(word).name != "once"]
        command = [str(ROOT / ".ci/once"), *compiler, flag]
        subprocess.run(
            [*command, f"-I{include}", "-c", source, "-o", tmp_path / "source.o"],
            env={**os.environ, "CI_OBJECTS": str(tmp_path / "objects")},
            check=True,
        )
        return len(list((tmp_path / "objects").glob("*.lock")))

    assert objects("one", "", "-O1") == 1
    assert objects("two", "", "-O1") == 1
    assert objects("two", "", "-O2") == 2
    assert objects("two", '"changed"', "-O2") == 3


def test_the_version_is_the_tag(tmp_path: Path) -> None:
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def version() -> str:
        return subprocess.check_output(
            [sys.executable, "setup.py", "-q", "--version"], cwd=tmp_path, text=True
        ).splitlines()[-1]

    def git(*arguments: str) -> None:
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert version() == "0.0.0.dev0"
    git("tag", "v1.2.3")
    assert version() == "1.2.3"
    git("commit", "-q", "--allow-empty", "-m", "two")
    assert re.fullmatch(r"1\.2\.4\.dev1\+g[0-9a-f]+", version())
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: bpe-beam\nVersion: 4.5.6\n")
    assert version() == "4.5.6"


def test_units_that_include_a_changed_file_are_compiled_again(clone: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n'
        'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then : > "$2"; fi; shift; done\n'
    )
    compiler.chmod(0o755)

    def compiled() -> set[str]:
        log.write_text("")
        folders = ["--build-temp", str(tmp_path), "--build-lib", str(tmp_path)]
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", *folders],
            cwd=clone,
            env={**os.environ, "CC": str(compiler), "CXX": str(compiler)},
            check=True,
            timeout=600,
        )
        return {Path(name).name for name in re.findall(r"\S+\.cpp", log.read_text())}

    native = clone / "bpe_beam/native"
    assert compiled() == {path.name for path in native.rglob("*.cpp")}
    assert compiled() == set()
    later = time.time() + 60
    os.utime(native / "shards/stored_ids.hpp", (later, later))
    assert compiled() == {"bind_shards.cpp"}
