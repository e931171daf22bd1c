"""Samples of a corpus: what is read in the time, and from where."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from made_text import documents, write

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.engines.local import scattered
from bpe_beam.jobs import corpus_input, corpus_sample
from bpe_beam.jobs.corpus_sample import Sample, read_sample
from bpe_beam.settings.common import InputSettings
from bpe_beam.storage import Storage

STORAGE = Storage()


class Kept:
    """Keeps the documents of each split, and the order in which splits gave batches."""

    def __init__(self) -> None:
        self.texts: dict[int, list[str]] = defaultdict(list)
        self.ended: dict[int, int] = {}
        self.visits: list[int] = []

    def begin(self, split: Split) -> OneSplit:
        return OneSplit(self, split.index)


class OneSplit:
    def __init__(self, kept: Kept, split: int) -> None:
        self._kept, self._split = kept, split

    def add(self, batch: pa.RecordBatch) -> None:
        self._kept.visits.append(self._split)
        self._kept.texts[self._split] += batch.column("text").to_pylist()

    def end(self, stored: int) -> None:
        assert self._split not in self._kept.ended
        self._kept.ended[self._split] = stored


@pytest.fixture
def corpus(tmp_path: Path) -> tuple[InputSettings, Plan]:
    for number in range(3):
        write(tmp_path / f"{number}.jsonl", documents(300, number))
    settings = InputSettings(inputs=(f"{tmp_path}/*.jsonl",), range_bytes=10_000)
    plan = corpus_input.plan_of(STORAGE, settings, outputs=[f"{tmp_path.parent}/none"])
    assert len(plan.splits) > 5
    return settings, plan


def sample_of(
    corpus: tuple[InputSettings, Plan], kept: Kept, *, threads: int = 1, seconds: float = 60
) -> Sample:
    settings, plan = corpus
    return read_sample(
        STORAGE,
        plan,
        settings,
        kept.begin,
        threads=threads,
        seconds=seconds,
        only_text=True,
        batch_bytes=1000,
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("most_open", [1, 4, 100])
def test_a_corpus_that_is_read_in_the_time(
    corpus: tuple[InputSettings, Plan],
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    most_open: int,
) -> None:
    monkeypatch.setattr(corpus_sample, "_MOST_OPEN", most_open)
    monkeypatch.setattr(corpus_sample, "_MOST_OPEN_OF_THREAD", 1)
    kept = Kept()
    sample = sample_of(corpus, kept, threads=threads)
    assert sample.documents == sum(map(len, kept.texts.values()))
    assert sample.stored == sum(kept.ended.values())
    assert kept.ended.keys() == {split.index for split in corpus[1].splits}
    assert sample.first is not None
    found = [text for split in sorted(kept.texts) for text in kept.texts[split]]
    assert found == [text for number in range(3) for text in documents(300, number)]
    assert sample.share == 1
    assert sample.summary()["documents"] == 900


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A clock that ticks each time somebody looks at it."""
    ticks = itertools.count()
    monkeypatch.setattr(corpus_sample, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    return lambda: next(ticks)


@pytest.mark.parametrize("most_open", [4, 100])
def test_a_sample_is_from_everywhere(
    corpus: tuple[InputSettings, Plan],
    clock: Callable[[], int],
    monkeypatch: pytest.MonkeyPatch,
    most_open: int,
) -> None:
    """Each open split gives one batch in turn; another one is begun where one has ended."""
    monkeypatch.setattr(corpus_sample, "_MOST_OPEN", most_open)
    splits = len(corpus[1].splits)
    first = min(splits, most_open)
    kept = Kept()
    sample = sample_of(corpus, kept, seconds=2 * first + 3)
    order = scattered(splits)[:first]
    assert kept.visits[:first] == kept.visits[first : 2 * first] == order
    assert kept.ended.keys() == set(kept.visits)
    sizes = list(kept.ended.values())
    assert max(sizes) < 2 * min(sizes)
    assert 0 < sample.share < 1
    documents_read = sum(map(len, kept.texts.values()))
    assert sample.summary()["documents"] == round(documents_read / sample.share)


def test_seconds_of_splits() -> None:
    """Two workers need as long for three equal splits as for four; they read 10 bytes a second."""
    for sizes, workers, seconds in (
        ([100, 100, 100], 1, 30),
        ([100, 100, 100], 2, 20),
        ([100, 100, 100, 100], 2, 20),
        ([100, 50], 4, 10),
    ):
        splits = [SimpleNamespace(size=size) for size in sizes]
        plan = SimpleNamespace(splits=splits, size=sum(sizes))
        sample = Sample(plan, seconds=5.0, stored=50)
        assert sample.seconds_of_all(workers) == pytest.approx(seconds)
