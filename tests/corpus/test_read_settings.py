"""Paths to fields, and what of the settings is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_beam.corpus.read_settings import MAX_PATH_DEPTH, OTHER_SOURCE, ReadSettings, field_path
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick


def test_paths() -> None:
    for field, names in (
        ("text", ("text",)),
        ("meta.body", ("meta", "body")),
        (r"meta\.body", ("meta.body",)),
        (r"a\\.b", ("a\\", "b")),
        (r"a\\\.b", ("a\\.b",)),
        (" .é", (" ", "é")),
        (".".join("a" * MAX_PATH_DEPTH), ("a",) * MAX_PATH_DEPTH),
    ):
        assert field_path(field) == names


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (".", "must have no empty name between dots"),
        ("a..b", "must have no empty name between dots"),
        ("a.", "must have no empty name between dots"),
        ("a\\", "must have no lone backslash"),
        (r"a\n", "must have no lone backslash"),
        (".".join("a" * (MAX_PATH_DEPTH + 1)), "must lead through at most 16 names, got 17"),
    ],
)
@pytest.mark.parametrize("option", ["text", "id", "source"])
def test_paths_that_lead_nowhere(field: str, message: str, option: str) -> None:
    reading: dict[str, Any] = {f"{option}_field": field}
    with pytest.raises(UsageError, match=message) as caught:
        ReadSettings(**reading)
    assert str(caught.value).startswith(f"{option}_field must ")
    assert repr(field) in str(caught.value)


def test_the_source_of_a_file() -> None:
    assert ReadSettings().source_of("a/b") == "a/b"
    assert ReadSettings(source_field="x").source_of("a/b") == OTHER_SOURCE
    patterns = ReadSettings(sources=(("one", "a/*"), ("two", "*")))
    assert [patterns.source_of(name) for name in ("a/b/c", "b")] == ["one", "two"]
    assert ReadSettings(sources=(("one", "a/*"),)).source_of("b") == OTHER_SOURCE


def test_fields_of_some_files() -> None:
    settings = ReadSettings(
        text_field=(("*", "body"), ("py", "content"), ("code", "source"), ("web/*.json", "html")),
        id_field=(("code", "key"),),
        sources=(("py", "*.py.jsonl"),),
    )
    for file, text in {
        "a.py.jsonl": "content",
        "code/x.py.jsonl": "content",
        "code/x.jsonl": "source",
        "deep/code/x.jsonl": "source",
        "code.jsonl.gz": "source",
        "web/a.json": "html",
        "recode/x.jsonl": "body",
        "py/x.jsonl": "body",
    }.items():
        assert settings.of_file(file).text_field == text, file
        assert settings.text_field_of(file) == text
    assert settings.of_file("code/x.jsonl").paths == (("source",), ("key",), ())
    assert settings.of_file("x.jsonl").paths == (("body",), ("id",), ())
    assert ReadSettings(source_field=(("a", "lang"),)).of_file("b").source_field is None
    settings.check_names(["a.py.jsonl", "code/x.jsonl", "web/a.json"])
    with pytest.raises(UsageError, match=r"text_field must name a source.*got 'web/\*.json'"):
        settings.check_names(["a.py.jsonl", "code/x.jsonl"])
    plain = ReadSettings(text_field="a=b")
    assert plain.of_file("x") is plain
