"""Texts, files and counts are recognised as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_beam.api.inputs import number_of_texts, paths_of, sources_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ("a.txt", ("a.txt",)),
        ("data/*.jsonl", ("data/*.jsonl",)),
        (Path("a.txt"), ("a.txt",)),
        ([Path("a"), Path("b")], ("a", "b")),
        (["no such file", "b"], None),
        (["a/b or c*"], None),
        (["\0"], None),
        (["x" * 5000], None),
        (["see https://example.org for more"], None),
        ([], None),
        (iter([__file__]), None),
        ({"a": ["b"]}, None),
    ],
)
def test_paths_and_texts(texts: Any, expected: tuple[str, ...] | None) -> None:
    assert paths_of(texts) == expected


def test_sources_are_the_names_of_a_mapping() -> None:
    assert sources_of(["a"]) == {None: ["a"]}
    assert sources_of({"en": ["a"]}) == {"en": ["a"]}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["a", "b"], 2), ((b"a",), 1), ([["a", "b"]], None), (iter("ab"), None), ([], 0)],
)
def test_the_number_of_texts_is_known_before_they_are_read(texts: Any, expected: Any) -> None:
    assert number_of_texts({None: texts}) == expected
