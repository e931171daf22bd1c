"""Beam's runner in process loses no element, however long its workers work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import data_plane

import bpe_beam.transforms  # noqa: F401 - what is tested comes with it

SECONDS = 3.0
"""A stream that is sent off once a second would be so, a few times."""


@beam.typehints.with_input_types(int)
@beam.typehints.with_output_types(tuple[int, int])
class Give(beam.DoFn):
    """Gives elements for a while, and tells how many they were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def process(self, element: int) -> Iterator[tuple[int, int]]:
        end = time.monotonic() + SECONDS
        emitted = 0
        while time.monotonic() < end:
            emitted += 1
            yield emitted % 7, 1
        (self.folder / f"emitted-{element}").write_text(str(emitted))


@beam.typehints.with_input_types(tuple[int, Iterable[int]])
@beam.typehints.with_output_types(int)
class Keep(beam.DoFn):
    """Tells how many came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def process(self, element: tuple[int, Iterable[int]]) -> Iterator[int]:
        kept = sum(element[1])
        (self.folder / f"kept-{element[0]}").write_text(str(kept))
        yield kept


def run(folder: Path) -> tuple[int, int]:
    """How many elements two threads gave, and how many of them came."""
    flags = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    with beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(flags)) as pipeline:
        tasks = pipeline | "Two" >> beam.Create([1, 2]) | "Spread" >> beam.Reshuffle()
        emitted = tasks | "Give" >> beam.ParDo(Give(folder))
        emitted | "Gather" >> beam.GroupByKey() | "Keep" >> beam.ParDo(Keep(folder))
    sums = [sum(int(p.read_text()) for p in folder.glob(f"{n}-*")) for n in ("emitted", "kept")]
    return sums[0], sums[1]


def test_no_element_is_lost(tmp_path: Path) -> None:
    emitted, kept = run(tmp_path)
    assert emitted > 0
    assert kept == emitted


def test_no_stream_is_sent_off_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = []
    begin = data_plane.TimeBasedBufferingClosableOutputStream.__init__

    def recorded(self: Any, *args: Any, **more: Any) -> None:
        clocks.append(self)
        begin(self, *args, **more)

    monkeypatch.setattr(data_plane.TimeBasedBufferingClosableOutputStream, "__init__", recorded)
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 0.05)
    emitted, kept = run(tmp_path)
    assert kept == emitted > 0
    assert not clocks
