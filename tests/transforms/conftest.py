"""Pipelines on the in-process runner, and their elements."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
import reference_bpe
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from kept_elements import Keep, kept_in
from sentences import sentences

from bpe_beam import Tokenizer
from bpe_beam.transforms.metrics import add_metrics
from bpe_beam.workers.task_results import MetricSums

Run = Callable[..., tuple[list[Any], dict[str, int]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs `build(pipeline)` and returns its elements and our counters."""

    def run(
        build: Callable[[beam.Pipeline], beam.PCollection], workers: int = 2
    ) -> tuple[list[Any], dict[str, int]]:
        folder = tmp_path / "kept"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        mode = "multi_threading" if workers > 1 else "in_memory"
        options = PipelineOptions(
            [f"--direct_num_workers={workers}", f"--direct_running_mode={mode}"]
        )
        pipeline = beam.Pipeline(runner=FnApiRunner(), options=options)
        build(pipeline) | "Keep" >> beam.ParDo(Keep(folder))
        result = pipeline.run()
        result.wait_until_finish()
        kept = [each.element for each in kept_in(folder)]
        measured = MetricSums()
        add_metrics(measured, result.metrics())
        return kept, measured.counters

    return run


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Return a tokenizer of the words of `sentences`, with two special tokens."""
    special = ["<|end|>", "<|begin|>"]
    counts: dict[str, int] = {}
    for word in " ".join(sentences(50)).split():
        counts[f"Ġ{word}"] = counts.get(f"Ġ{word}", 0) + 1
    vocab, merges = reference_bpe.learn_bpe(
        list(counts.items()), vocab_size=300, special_tokens=special
    )
    return Tokenizer.from_learned(vocab, merges, special)


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "corpus.jsonl"
    rows = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(sentences(200))]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.fixture
def coders_of() -> Callable[[Callable[[beam.Pipeline], Any]], list[str]]:
    """Return `_coders_of`."""
    return _coders_of


def _coders_of(build: Callable[[beam.Pipeline], Any]) -> list[str]:
    """Return the URNs of the coders of all collections of a pipeline but Beam's own sources."""
    pipeline = beam.Pipeline(runner=FnApiRunner())
    build(pipeline)
    proto = pipeline.to_runner_api()
    components = proto.components
    urns: list[str] = []
    for transform in components.transforms.values():
        if transform.subtransforms or transform.spec.urn == common_urns.primitives.IMPULSE.urn:
            continue
        for output in transform.outputs.values():
            urns += _urns(components, components.pcollections[output].coder_id)
    return urns


def _urns(components: Any, coder_id: str) -> Sequence[str]:
    coder = components.coders[coder_id]
    inner = [urn for each in coder.component_coder_ids for urn in _urns(components, each)]
    name = coder.spec.urn
    if coder.spec.payload:
        name += " " + repr(coder.spec.payload[:200])
    return [name, *inner]
