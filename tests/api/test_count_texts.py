"""Texts are counted on threads in few batches at a time, with the counts of one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from made_text import documents

import bpe_beam
from bpe_beam.api import count_texts, text_batches
from bpe_beam.counts.word_table import WordRules

TEXTS = [*documents(200, seed=3), "x" * 3000, "é" * 999]


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_batches, "BATCH_CHARACTERS", 500)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize("texts", [TEXTS, [t.encode() for t in TEXTS], pa.array(TEXTS)])
@pytest.mark.parametrize("tie_break", ["lowest_id", "first_seen"])
def test_threads_and_small_tables_count_the_same(
    texts: Any, tie_break: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bpe_beam.count(TEXTS, tie_break=tie_break, workers=1)
    monkeypatch.setattr(count_texts, "TABLE_BYTES", 1)
    counts = bpe_beam.count(texts, tie_break=tie_break, workers=3)
    assert counts.tables[None].equals(expected.tables[None])
    assert counts.manifest == expected.manifest


@pytest.mark.usefixtures("_small_batches")
def test_worker_processes_count_the_same() -> None:
    pattern = {"pretokenizer": r"regex:\w+|\s+|[^\w\s]"}
    expected = bpe_beam.count(TEXTS, workers=1, **pattern)
    for texts in (TEXTS, pa.array(TEXTS)):
        counts = bpe_beam.count(texts, workers=2, **pattern)
        assert counts.tables[None].equals(expected.tables[None])
        assert counts.manifest == expected.manifest


@pytest.mark.usefixtures("_small_batches")
def test_a_generator_runs_in_the_calling_thread_and_is_not_read_ahead() -> None:
    taken: list[int] = []
    counted: list[int] = []
    most_ahead = 0

    def texts() -> Iterator[str]:
        nonlocal most_ahead
        assert threading.current_thread() is caller
        for number in range(60):
            taken.append(number)
            most_ahead = max(most_ahead, len(taken) - sum(counted))
            yield "word " * 100

    class Stage:
        def advance(self, done: int, **counters: int) -> None:
            counted.append(done)

    caller = threading.current_thread()
    rules = WordRules()
    found = count_texts.count_texts(rules, {None: texts()}, 2, Stage())
    assert found.manifest.documents == sum(counted) == 60
    assert most_ahead <= 2 * 2 + 3
