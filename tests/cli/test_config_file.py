"""YAML files of settings: values as typed, and nothing unknown or doubled gets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_beam.cli.config_file import read_config
from bpe_beam.errors import UsageError
from bpe_beam.settings.field import Kind
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

KEYS: dict[str, Kind] = {
    "input": "many",
    "vocab_size": "one",
    "special_token": "repeat",
    "document_separator": "one",
    "max_rejects": "one",
    "source": "pairs",
    "weights": "pairs",
    "quiet": "switch",
    "storage_options": "mapping",
    "runner_options": "mapping",
}


def read(tmp_path: Path, text: str | bytes) -> dict[str, Any]:
    path = tmp_path / "c.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    config = read_config(str(path), "train", KEYS, Storage())
    return {key: value.value for key, value in config.items()}


def test_values_are_what_would_be_typed(tmp_path: Path) -> None:
    text = r"""
# a comment
job: train
vocab-size: 010
input: [data/*.jsonl, 'b c.txt']
special_token:
  - no
  - 1.50
  - 2020-01-01
document_separator: "\n\n"
max_rejects: 0.1%
quiet: true
storage_options: {s3: {anon: true, endpoint_url: "http://x"}}
runner_options:
  parallelism: 2
  experiments: [a, b]
"""
    assert read(tmp_path, text) == {
        "vocab_size": ["010"],
        "input": ["data/*.jsonl", "b c.txt"],
        "special_token": ["no", "1.50", "2020-01-01"],
        "document_separator": ["\n\n"],
        "max_rejects": ["0.1%"],
        "quiet": True,
        "storage_options": {"s3": {"anon": True, "endpoint_url": "http://x"}},
        "runner_options": {"parallelism": 2, "experiments": ["a", "b"]},
    }
    assert read(tmp_path, "") == {}
    assert read(tmp_path, r'{"special_token": ["\ud83d\udc4d"]}') == {"special_token": ["👍"]}
    assert read(tmp_path, "quiet: False") == {"quiet": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vocab_sise: 3", "line 1: vocab_sise is not a setting of train; did you mean vocab_size?"),
        ("\nruner_options: {}", "line 2: runer_options is not a setting of train"),
        ("input: a\ninput: b", "line 2: input is repeated"),
        ("vocab_size: 1\nvocab-size: 2", "line 2: vocab-size is repeated"),
        ("job: count", "line 1: job must be train, the job"),
        ("job: [train, count]", "must be train, the job"),
        ("input:", "line 1: input has no value"),
        ("input: [a, ~]", "input has no value"),
        ("input: {a: b}", "input must be a text, a number, or a list"),
        ("input: [[a]]", "input must be a text, a number, or a list"),
        ("quiet: yes please", "quiet must be true or false"),
        ("quiet: 1", "quiet must be true or false"),
        ("quiet: [true]", "quiet must be true or false"),
        ("runner_options: 3", "runner_options must be a mapping"),
        ("runner_options: {1: 2}", "runner_options: each name before a colon must be a text"),
        ("storage_options: &x {s3: *x}", "is not valid YAML"),
        ("runner_options: {[a]: 1}", "runner_options"),
        ("runner_options: {name: 2024-01-01}", "runner_options must have texts, numbers, lists"),
        ("runner_options: {a: 1, a: 2}", "line 1: a is repeated"),
        ("- a", "must be a mapping"),
        ("a: !!python/object:os.system {}", "a is not a setting"),
        ("runner_options: {a: !!python/object:os.system {}}", "runner_options cannot be read"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert "c.yaml" in str(error.value)


def test_pairs_are_a_mapping_or_a_list(tmp_path: Path) -> None:
    """Values stay as typed; a name may have several."""
    text = "source: {en: a/*, zh: [b/*, 'c=d'], no: 010}\nweights: [en=0.30, zh=2]\n"
    assert read(tmp_path, text) == {
        "source": ["en=a/*", "zh=b/*", "zh=c=d", "no=010"],
        "weights": ["en=0.30", "zh=2"],
    }
    assert read(tmp_path, "weights: en=0.3,zh=2") == {"weights": ["en=0.3,zh=2"]}
    for wrong, said in (
        ("source: {en: a, en: b}", "line 1: en is repeated"),
        ("source: {a=b: c}", "source: each name before a colon must be a text without ="),
        ("source: {[a]: c}", "source: each name before a colon must be a text"),
        ("source: {en: {a: b}}", "source.en must be a text, a number, or a list"),
        ("source: {en: }", "source.en has no value"),
        ("input: {en: a}", "input must be a text"),
    ):
        with pytest.raises(UsageError) as error:
            read(tmp_path, wrong)
        assert said in str(error.value)


def test_secrets_are_not_quoted(tmp_path: Path) -> None:
    for text in (
        "storage_options: {s3: {secret: hunter2}",
        "storage_options: {s3: {secret: !!int hunter2}}",
        "storage_options: {s3: {secret: 'hunter2}}",
        "storage_options: hunter2",
        "storage_options: {s3: {secret: *hunter2}}",
        "storage_options: {s3: {secret: !hunter2}}",
        "storage_options: {s3: {secret: !hunter2's}}",
        f"storage_options: {{s3: {{hunter2: {'1:' * 200}1.}}}}",
        "storage_options: {s3: {secret: !!bool hunter2}}",
        "storage_options: {s3: {secret: !!timestamp hunter2}}",
        "storage_options: {s3: {hunter2: !!int ''}}",
        "storage_options: {s3: {secret: !!binary hunter2==}}",
    ):
        with pytest.raises(UsageError) as error:
            read(tmp_path, text)
        assert error.value.__cause__ is None
        assert "hunter2" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config .*none\.yaml cannot be read: No such file"):
        read_config(str(tmp_path / "none.yaml"), "train", {}, Storage())
