"""Runs every line of docs/coming-from-tokenizers.md, theirs and ours, in the page's order."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import made_text
import pages
import pytest

PAGE = Path(__file__).parents[1] / "docs/coming-from-tokenizers.md"
LINES = made_text.documents(300, seed=2)
"""What the page calls `lines`."""

OF_DATASETS = ("datasets", "dataset.")
"""The blocks with these words need the package `datasets`."""


def blocks() -> list[str]:
    """The Python blocks of the page."""
    return [block for _, block in pages.blocks(PAGE.read_text("utf-8"))]


def write_files(folder: Path) -> None:
    """Write the files that the page reads."""
    (folder / "data").mkdir()
    for number, name in enumerate("ab"):
        text = "".join(f"{line}\n" for line in made_text.documents(300, seed=number))
        (folder / "data" / f"{name}.txt").write_text(text, "utf-8")
        (folder / "data" / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))


def test_every_line_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"lines": LINES}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for number, block in enumerate(blocks()):
            if not any(word in block for word in OF_DATASETS):
                exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    assert names["larger"].vocab_size == 400


def test_few_blocks_need_another_package() -> None:
    needing = [block for block in blocks() if any(word in block for word in OF_DATASETS)]
    assert (len(needing), len(blocks())) == (2, 30)


@pytest.mark.trainers
def test_every_line_runs_in_a_notebook_with_datasets(tmp_path: Path) -> None:
    write_files(tmp_path)
    import nbformat
    from nbclient import NotebookClient

    cells = [f"lines = {LINES!r}", *blocks(), "ours", "print(repr(ours))"]
    cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown, printed = (cell.outputs for cell in notebook.cells[-2:])
    assert "<caption>bpe_beam.Tokenizer</caption>" in shown[0]["data"]["text/html"]
    assert printed[0]["text"].startswith("<Tokenizer: ")
