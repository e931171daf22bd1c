"""Keyword arguments become the settings that the same options make when they are typed."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bpe_beam
from bpe_beam.api.arguments import options_in_python, settings_of, values_of
from bpe_beam.cli.arguments import read_arguments
from bpe_beam.cli.arguments import settings_of as typed_settings
from bpe_beam.errors import UsageError
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.field import options_of
from bpe_beam.settings.train import TrainSettings

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        ({"vocab_size": 32000}, "--vocab-size 32000"),
        ({"vocab_size": "32k"}, "--vocab-size 32000"),
        ({"vocab_size": 9, "driver_memory": "1GB"}, "--vocab-size 9 --driver-memory 1000000000"),
        ({"vocab_size": 9, "temperature": 0.7}, "--vocab-size 9 --temperature 0.7"),
        ({"vocab_size": 9, "temperature": 1e-7}, "--vocab-size 9 --temperature 0.0000001"),
        ({"vocab_size": 9, "weights": {"a": 1, "b": 0.5}}, "--vocab-size 9 --weights a=1,b=0.5"),
        ({"vocab_size": 9, "weights": "a=1,b=0.5"}, "--vocab-size 9 --weights a=1,b=0.5"),
        ({"vocab_size": 9, "weights": [("a", 2)]}, "--vocab-size 9 --weights a=2"),
        ({"vocab_size": 9, "special_tokens": "<x>"}, "--vocab-size 9 --special-token <x>"),
        (
            {"vocab_size": 9, "special_tokens": (s for s in ("<x>", "<y>"))},
            "--vocab-size 9 --special-token <x> --special-token <y>",
        ),
        ({"vocab_size": 9, "byte_fallback": True}, "--vocab-size 9 --byte-fallback"),
        ({"vocab_size": 9, "continue_from": Path("a/b")}, "--vocab-size 9 --continue-from a/b"),
        ({"vocab_size": 9, "normalizer": None}, "--vocab-size 9"),
    ],
)
def test_values_mean_what_is_typed(arguments: dict[str, Any], typed: str) -> None:
    values = values_of("train", TrainSettings, {**arguments, "counts": "c"})
    found = settings_of(TrainSettings, {**values, "output": "o"})
    words = ["--counts", "c", "--output", "o", *typed.split()]
    assert found == typed_settings(read_arguments("train", words))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 1.5),
        ("vocab_size", np.float64(1.5)),
        ("vocab_size", True),
        ("vocab_size", [300]),
        ("byte_fallback", "yes"),
        ("special_tokens", 3.5j),
        ("weights", [3]),
        ("storage_options", 3),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        bpe_beam.train(["a"], **{"vocab_size": 300, name: value})


def test_files_need_only_their_names() -> None:
    values = values_of("train", TrainSettings, {"vocab_size": 9, "inputs": [Path("a"), "b"]})
    found = settings_of(TrainSettings, {**values, "output": "o"})
    assert found.input == InputSettings(inputs=("a", "b"))


def test_evaluate_has_the_options_of_reading_and_of_figures() -> None:
    parameters = inspect.signature(bpe_beam.evaluate).parameters
    help = inspect.getdoc(bpe_beam.evaluate) or ""
    names = {"pretokenizer", "parallel", "inputs", "text_field", "sources"}
    assert names | {"tokenizers", "texts_or_counts", "vocab_sizes", "storage_options"} <= {
        *parameters
    }
    for name in names:
        assert help.count(f"\n    {name}: ") == 1
    assert {"output", "format", "work", "samples", "runner", "counts"}.isdisjoint(parameters)


def test_the_signature_and_the_help_have_every_option_once() -> None:
    functions: tuple[Any, ...] = (
        (bpe_beam.train, TrainSettings, "vocab_size"),
        (bpe_beam.count, CountSettings, "normalizer"),
    )
    for function, settings, first in functions:
        options = options_in_python(settings)
        parameters = inspect.signature(function).parameters
        help = inspect.getdoc(function) or ""
        left = {each.name for each in options_of(settings)} - options.keys()
        assert left <= {
            *("output", "dry_run", "cluster", "chat_template", "model_max_length"),
            *("runner", "overwrite", "quiet", "debug", "summary_file"),
        }
        assert parameters.keys() == {"texts_or_paths", *options}
        for name in options.keys() - {"workers", "progress", "storage_options"}:
            assert help.count(f"\n    {name}: ") == 1
        assert help.count(f"Options::\n\n    {first}: ") == 1
        assert "--" not in help
        assert not re.search(r"(?<!\.)\.\.(?!\.)", help)
        assert "Repeat for more" not in help
        assert max(map(len, help.splitlines())) <= 100
