"""Words that readers stumble over do not come back, and modules and functions stay short.

This counts words, and says nothing about style: CONTRIBUTING.md has the rules of prose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent
ROOT = Path(__file__).parent.parent
GENERATED = "do not edit."

MAXIMUM = {
    r"\b\w*_found\b|\bfound_\w*\b|\bfound\b": 150,
    r"\b(?:behind|beside|that of|those of|nobody)\b": 15,
    r"dict\[str, Any\]": 60,
    r"object\.__setattr__": 0,
}
"""How often each pattern may occur in the package and in the pages of docs/."""


def sources() -> Iterator[Path]:
    """Yield the files that people read, without generated tables."""
    for pattern in ("*.py", "*.pyi", "*.hpp", "*.cpp"):
        for path in sorted(PACKAGE.rglob(pattern)):
            if GENERATED not in path.read_text("utf-8")[:2_000]:
                yield path


@pytest.mark.parametrize("pattern", MAXIMUM)
def test_listed_words_do_not_come_back(pattern: str) -> None:
    pages = [] if "found" in pattern else [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    occurrences = {
        str(path.relative_to(ROOT)): count
        for path in [*sources(), *pages]
        if (count := len(re.findall(pattern, path.read_text("utf-8"), re.IGNORECASE)))
    }
    assert sum(occurrences.values()) <= MAXIMUM[pattern], occurrences


def test_modules_have_at_most_600_lines() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert not {str(path): length for path, length in lengths.items() if length > 600}


def test_few_functions_have_more_than_60_lines() -> None:
    long = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= 60
    ]
    assert len(long) <= 5, long
