"""Which files a folder or a glob means, whatever characters their names hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()
ODD = "a[1] *?"


def _corpus(root: Path) -> Path:
    for name in (
        "a.jsonl", "deep/er/b.txt", "_SUCCESS", ".hidden", "deep/_temporary/c.txt",
        "deep/.git/d.txt",
    ):  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    return root


def _names(*inputs: str, **settings: Any) -> list[str]:
    return [file.name for file in make_plan(STORAGE, list(inputs), **settings).files]


@pytest.mark.parametrize("folder", ["plain", ODD])
@pytest.mark.parametrize("ending", ["", "/"])
def test_a_folder_means_its_files(tmp_path: Path, folder: str, ending: str) -> None:
    root = _corpus(tmp_path / folder)
    assert _names(f"{root}{ending}") == ["a.jsonl", "deep/er/b.txt"]


@pytest.mark.parametrize("folder", ["plain", ODD])
def test_a_relative_folder_means_its_files(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_corpus(tmp_path / folder))
    for name in (".", "./", f"../{folder}", "deep/.."):
        assert _names(name) == ["a.jsonl", "deep/er/b.txt"], name
    assert _names("deep") == ["b.txt"]


def test_a_relative_glob_in_a_folder_with_the_characters_of_globs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_corpus(tmp_path / ODD))
    assert _names("*.jsonl") == ["a.jsonl"]
    assert _names("deep/**/b.txt") == ["b.txt"]


def test_an_excluded_folder_leaves_out_its_files(tmp_path: Path) -> None:
    root = _corpus(tmp_path / "corpus")
    assert _names(str(root), exclude=[f"{root}/deep"]) == ["a.jsonl"]


def test_a_folder_without_files_to_read(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(UsageError, match=r"is a folder without files to read.*begin with \. or _"):
        make_plan(STORAGE, [str(tmp_path)])


@pytest.mark.parametrize(
    "data",
    [
        '[{"text": "a"}]',
        '[\n {"text": "a"}]',
        "\ufeff[ {}]",
        '["a", "b"]',
        '{\n  "text": "a"}',
        "{\r\n}",
    ],
)
def test_a_json_file_that_is_not_json_lines(tmp_path: Path, data: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(data, encoding="utf-8", newline="")
    with pytest.raises(UsageError, match=r"is an array, or an object over several lines.*jq -c"):
        make_plan(STORAGE, [str(path)])
    assert _names(str(path), input_format="text") == ["a.json"]


@pytest.mark.parametrize("data", ["", "\n", "{}", '{"text": "a"}\n', "[1, 2]\n", "  {} \n"])
def test_json_lines_may_begin_with_anything_else(tmp_path: Path, data: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(data)
    assert _names(str(path)) == ["a.jsonl"]
