"""The table "Adding things" of CONTRIBUTING.md is true: files exist, registries are complete."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bpe_beam
from bpe_beam.tokenizer.components import (
    decoders,
    models,
    normalizers,
    postprocessors,
    pretokenizers,
)
from bpe_beam.tokenizer.components.component import Component
from bpe_beam.tokenizer.files import tokenizer_json

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
CHECKED = ("a pre-tokenizer", "a normalizer", "a decoder, a post-processor", "a model")


def rows() -> dict[str, str]:
    """The rows of the table, by what is added."""
    table = CONTRIBUTING.read_text("utf-8").split("## Adding things")[1]
    found = re.findall(r"^\| (an? [^|]+?) \| (.+) \|$", table, re.MULTILINE)
    return dict(found)


def components(module: ModuleType) -> set[Any]:
    """The public components that a module defines."""
    return {
        value
        for name, value in inspect.getmembers(module, inspect.isclass)
        if value.__module__ == module.__name__
        and not name.startswith("_")
        and issubclass(value, Component)
    }


@pytest.mark.parametrize("row", CHECKED)
def test_the_files_of_a_row_exist(row: str) -> None:
    paths = re.findall(r"`([a-z_0-9]+/[a-z_0-9/]*(?:\.[a-z]+)?)`", rows()[row])
    assert paths
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


@pytest.mark.parametrize(
    ("module", "family"),
    [
        (normalizers, "normalizer"),
        (pretokenizers, "pre_tokenizer"),
        (decoders, "decoder"),
        (postprocessors, "post_processor"),
    ],
)
def test_every_component_is_read_and_written(module: ModuleType, family: str) -> None:
    assert set(typing.get_args(tokenizer_json.FAMILIES[family])) == components(module)


def test_every_model_is_read_and_written() -> None:
    assert set(typing.get_args(models.Model)) == components(models)
    assert set(tokenizer_json._KEYS) == components(models)


def test_names_are_those_of_registries() -> None:
    for name in normalizers.NORMALIZERS:
        normalizers.normalizer_from_name(name)
    for name in pretokenizers.PRETOKENIZERS:
        pretokenizers.pretokenizer_from_name(name, byte_level=False)
