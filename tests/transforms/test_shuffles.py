"""Coders, long values in chunks, and the timed flush: all that shuffles need of Beam."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import data_plane

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.word_table import WordRules
from bpe_beam.engines.beam import StepsTransform
from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs.count import count_splits
from bpe_beam.storage import Storage
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.transforms import (
    CountWords,
    LearnMerges,
    ReadDocuments,
    Tokenize,
    WriteTokens,
    shuffles,
)
from bpe_beam.transforms.shuffles import (
    CHUNK_BYTES,
    SpreadTasks,
    _join_chunks,
    from_chunks,
    to_chunks,
)
from bpe_beam.workers.count_split import CountTask

LONG = bytes(random.Random(0).randbytes(2 * CHUNK_BYTES + 5))


@pytest.mark.quick
@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES])
def test_a_chunk_has_at_most_its_size(size: int) -> None:
    chunks = list(to_chunks(LONG[:size]))
    assert len(chunks) == max(1, -(-size // CHUNK_BYTES))
    assert max(len(data) for *_, data in chunks) <= CHUNK_BYTES
    assert list(from_chunks(chunks, "word")) == [LONG[:size]]


@pytest.mark.quick
def test_chunks_come_in_any_order_and_mixed() -> None:
    other = LONG[::-1]
    chunks = [*to_chunks(LONG), *to_chunks(b"short"), *to_chunks(LONG), *to_chunks(other)]
    for seed in range(20):
        random.Random(seed).shuffle(chunks)
        assert sorted(from_chunks(chunks, "word")) == sorted([LONG, LONG, other, b"short"])


@pytest.mark.quick
def test_a_missing_chunk_is_an_error() -> None:
    with pytest.raises(DataError, match="was split"):
        list(from_chunks(list(to_chunks(LONG))[1:], "word"))


@pytest.mark.quick
def test_tasks_that_lack_a_chunk_are_refused() -> None:
    task = "long" * CHUNK_BYTES
    spread = SpreadTasks(["short \udcff", task])
    long = [chunk for number, chunk in spread.chunks if number == 1]
    assert len(long) == 4
    assert list(_join_chunks((1, reversed(long)))) == [task]
    assert list(_join_chunks((0, [spread.chunks[0][1]]))) == ["short \udcff"]
    for wrong in (long[1:], long[:-1], [*long, long[2]], [*long, *long]):
        with pytest.raises(DataError, match=r"the runner (lost one|delivered a task twice)"):
            list(_join_chunks((1, wrong)))


def test_no_collection_falls_back_to_pickling(coders_of, tokenizer, corpus, tmp_path) -> None:
    def build(p: beam.Pipeline) -> None:
        documents = p | ReadDocuments([corpus])
        documents | CountWords() | LearnMerges(BpeRecipe(vocab_size=300))
        documents | "Batches" >> Tokenize(tokenizer) | WriteTokens(str(tmp_path / "t"), tokenizer)
        p | beam.Create(["a"]) | "Single" >> Tokenize(tokenizer)

    urns = coders_of(build)
    pickled = [urn for urn in urns if "pickled_python" in urn]
    ours = ("RecordBatchCoder", "TokensCoder")
    assert all(any(name in urn for name in ours) for urn in pickled), pickled
    assert any("RecordBatchCoder" in urn for urn in urns)
    for coder in (shuffles.RecordBatchCoder(), shuffles.TokensCoder()):
        assert coder.is_deterministic()


def test_coders_give_back_what_they_took() -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["a", "é"], "place": [1, 2]})
    coder = shuffles.RecordBatchCoder()
    assert coder.decode(coder.encode(batch)).equals(batch)
    assert coder.encode(batch.slice(1)) == coder.encode(batch.slice(1))
    assert coder.decode(coder.encode(batch.slice(1))).to_pydict() == {"text": ["é"], "place": [2]}
    tokens = pa.array([1, 2**32 - 1, 0], pa.uint32())
    tokens_coder = shuffles.TokensCoder()
    for ids in (tokens, tokens.slice(1), tokens.slice(0, 0)):
        assert tokens_coder.decode(tokens_coder.encode(ids)).equals(ids)


def test_places_of_blocks_travel_without_pickling(
    coders_of: Callable[[Callable[[beam.Pipeline], Any]], list[str]],
) -> None:
    task = CountTask(
        folder=TaskFolder(Storage(), "memory://nowhere", "0"),
        reading=ReadSettings(sources=(("a", "*"),)),
        rules=WordRules(),
    )
    known = [(0, ("a", "0f", 5, 7))]
    steps = StepsTransform(lambda engine: count_splits(engine, task, [], known, [0]), "2GB")
    urns = coders_of(lambda p: p | steps)
    assert urns
    assert not [urn for urn in urns if "pickled" in urn.lower() or "FastPrimitives" in urn]


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


@pytest.mark.slow
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
