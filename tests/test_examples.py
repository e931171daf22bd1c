"""The projects of `examples/`: the commands of their pages, and their first batches."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import made_text
import megatron_core
import numpy as np
import pytest
import trainer_readers

import bpe_beam
from bpe_beam import Tokenizer

pytestmark = pytest.mark.trainers

EXAMPLES = Path(__file__).parents[1] / "examples"
PROJECTS = {
    "megatron-lm": "tokens-megatron",
    "nanotron": "tokens-datatrove",
    "olmo-core": "tokens-dolma",
    "torchtitan": "tokens-flat",
    "modded-nanogpt": "tokens-llmc",
    "maxtext": "tokens-arrayrecord",
    "transformers": "tokens-parquet",
}
TEXTS = [text for text in made_text.documents(600, seed=3) if text]
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the commands of all pages were run."""
    folder = tmp_path_factory.mktemp("examples")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    (folder / "data").mkdir()
    (folder / "data/a.jsonl").write_text(lines)
    command = folder / "bin/bpe-beam"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bpe_beam "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-euo", "pipefail", "-c"]
    done = set()
    for project in PROJECTS:
        page = (EXAMPLES / project / "README.md").read_text("utf-8")
        commands = re.findall(r"^```sh\n(bpe-beam .*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert len(commands) == 1
        for line in re.findall(r"^bpe-beam (?:.*\\\n)*.*\n", commands[0], re.MULTILINE):
            if line not in done:  # all train the same tokenizer
                subprocess.run(
                    [*shell, line],
                    cwd=folder,
                    env={**os.environ, "PATH": path},
                    check=True,
                    capture_output=True,
                )
                done.add(line)
    return folder


@pytest.fixture(scope="module")
def documents(folder: Path) -> list[list[int]]:
    """Return the documents, each with the end token."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer/tokenizer.json"))
    end = tokenizer.token_to_id(END)
    assert end == 0
    return [[*tokenizer.encode(text), end] for text in TEXTS]


def first_batch(folder: Path, project: str, tokens: str = "") -> Any:
    """Return the first batch of a project, by its own script."""
    spec = importlib.util.spec_from_file_location("first", EXAMPLES / project / "first_batch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    readers: Any = {
        "megatron-lm": megatron_core.importable,
        "nanotron": trainer_readers.datatrove,
        "olmo-core": trainer_readers.olmo_core,
    }
    with readers.get(project, nullcontext)():
        spec.loader.exec_module(module)
        return module.first_batch(str(folder / (tokens or PROJECTS[project])))


def stream(documents: list[list[int]], count: int) -> list[int]:
    """Return the first ids of all documents one after the other."""
    return [token for document in documents for token in document][:count]


def test_each_project_is_in_the_table() -> None:
    table = (EXAMPLES / "README.md").read_text("utf-8")
    assert {path.parent.name for path in EXAMPLES.glob("*/README.md")} == PROJECTS.keys()
    assert all(f"({name}/README.md)" in table for name in PROJECTS)


def test_megatron(folder: Path, documents: list[list[int]]) -> None:
    assert [ids.tolist() for ids in first_batch(folder, "megatron-lm")] == documents[:4]


def test_nanotron(folder: Path, documents: list[list[int]]) -> None:
    batch = first_batch(folder, "nanotron")
    assert batch["input_ids"].ravel().tolist() == stream(documents, 4 * 65)
    positions = [position for document in documents for position in range(len(document))]
    expected = np.array(positions[: 4 * 65]).reshape(4, 65)
    # A window begins with 0, also within a document.
    for found, wanted in zip(batch["positions"], expected, strict=True):
        end = int(np.argmax(wanted == 0))
        assert found.tolist() == [*range(end), *wanted[end:]]


def test_olmo_core(folder: Path, documents: list[list[int]]) -> None:
    sequences, found = first_batch(folder, "olmo-core")
    assert sequences.ravel().tolist() == stream(documents, 4 * 64)
    assert [ids.tolist() for ids in found] == documents[:4]


@pytest.fixture(scope="module")
def mixed(folder: Path) -> list[list[int]]:
    """Return the documents of a mixture, which is in the formats of two projects."""
    sources = {"a": folder / "tokens-megatron", "b": folder / "tokens-dolma"}
    mixture: dict[str, Any] = {"tokens": 3_000, "share": {"a": 0.7, "b": 0.3}, "seed": 1}
    for format_name in ("datatrove", "flat"):
        output = folder / f"mixed-{format_name}"
        bpe_beam.mix(sources, output=output, format=format_name, shard_tokens=700, **mixture)
    data = bpe_beam.shards.open(sources, mixture=mixture)
    return [ids.tolist() for ids in data]


def test_nanotron_reads_a_mixture(folder: Path, mixed: list[list[int]]) -> None:
    batch = first_batch(folder, "nanotron", "mixed-datatrove")
    assert len(list((folder / "mixed-datatrove").glob("*.ds"))) > 1
    assert batch["input_ids"][0].tolist() == stream(mixed, 65)


@pytest.mark.parametrize("tokens", ["tokens-flat", "mixed-flat"])
def test_torchtitan(folder: Path, mixed: list[list[int]], tokens: str) -> None:
    batch = first_batch(folder, "torchtitan", tokens)
    data = bpe_beam.shards.open(str(folder / tokens))
    assert tokens == "tokens-flat" or [ids.tolist() for ids in data] == mixed
    view = data.sequences(65, stride=64)
    known = {tuple(ids.tolist()) for ids in view}
    assert batch["input"].shape == batch["labels"].shape == (4, 64)
    assert batch["input"].dtype == np.int64
    for inputs, labels in zip(batch["input"].tolist(), batch["labels"].tolist(), strict=True):
        assert inputs[1:] == labels[:-1]
        assert (*inputs, labels[-1]) in known


def test_modded_nanogpt(folder: Path, documents: list[list[int]]) -> None:
    inputs, targets, starts = first_batch(folder, "modded-nanogpt")
    manifest = json.loads((folder / "tokens-llmc/__manifest").read_bytes())
    before = manifest["shards"][0]["documents"]
    begun = [[0, *document[:-1]] for document in documents[before:]]
    expected = stream(begun, 4 * 64 + 1)
    assert inputs.ravel().tolist() == expected[:-1]
    assert targets.ravel().tolist() == expected[1:]
    assert len(starts) == expected[:-1].count(0)


def test_maxtext(folder: Path, documents: list[list[int]]) -> None:
    batch = first_batch(folder, "maxtext")
    assert batch.tolist() == [(ids + [0] * 64)[:64] for ids in documents[:4]]


def test_transformers(
    folder: Path,
    documents: list[list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    batch = first_batch(folder, "transformers")
    for number, ids in enumerate(documents[:4]):
        length = len(ids)
        assert batch["input_ids"][number, :length].tolist() == ids
        assert batch["labels"][number, :length].tolist() == ids
        assert batch["attention_mask"][number].sum() == length
        assert (batch["labels"][number, length:] == -100).all()
