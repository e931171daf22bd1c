"""The registry of input formats: names without imports, and one module a format."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from command_line import heavy_modules_of

from bpe_beam.corpus import formats
from bpe_beam.corpus.file_types import format_of
from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES, INPUT_FORMATS
from bpe_beam.corpus.formats.interface import InputFormat, input_format
from bpe_beam.corpus.read_settings import ReadSettings

FOLDER = Path(formats.__file__).parent


def test_a_module_a_format() -> None:
    found = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "interface"}
    assert found == set(INPUT_FORMATS)
    assert set(INPUT_FORMAT_CHOICES) == {"auto", *INPUT_FORMATS}


@pytest.mark.parametrize("name", INPUT_FORMATS)
def test_a_format_is_called_after_its_module(name: str) -> None:
    module = importlib.import_module(f"bpe_beam.corpus.formats.{name}")
    assert isinstance(module.FORMAT, InputFormat)
    assert module.FORMAT.name == name
    assert input_format(name) is module.FORMAT
    assert ReadSettings(input_format=name).input_format == name


@pytest.mark.parametrize("name", INPUT_FORMATS)
def test_endings_tell_the_format(name: str) -> None:
    format_ = input_format(name)
    for ending in format_.endings:
        assert format_of(f"A{ending.upper()}", b"", "none", "auto") == name
        if not format_.columnar:
            assert format_of(f"a{ending}.zst", b"", "zstd", "auto") == name


@pytest.mark.parametrize(
    ("name", "head"), [("parquet", b"PAR1"), ("arrow", b"ARROW1"), ("warc", b"WARC/1.")]
)
def test_first_bytes_tell_the_format_whatever_the_name(name: str, head: bytes) -> None:
    assert format_of("a.txt", head, "none", "auto") == name


def test_no_two_formats_share_an_ending() -> None:
    endings = [ending for name in INPUT_FORMATS for ending in input_format(name).endings]
    assert len(set(endings)) == len(endings)


def test_a_name_that_is_no_format() -> None:
    with pytest.raises(ValueError, match=r"format must be one of text, .* got 'tape'"):
        input_format("tape")


def test_names_cost_no_imports() -> None:
    """Of Beam, Arrow and numpy."""
    assert not heavy_modules_of(
        "from bpe_beam.corpus.formats import INPUT_FORMATS; assert INPUT_FORMATS"
    )


def test_no_other_module_knows_a_format_by_name() -> None:
    """But for those of shards and of reports, some of which have the same name."""
    package = FOLDER.parents[1]
    folders = {FOLDER, package / "shards" / "formats"}
    reports = {"jobs/evaluate/__init__.py", "settings/evaluate.py"}
    knowing = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if folders.isdisjoint(path.parents)
        for name in INPUT_FORMATS
        if name not in ("text", "arrow") and f'"{name}"' in path.read_text("utf-8")
    }
    assert knowing <= reports
