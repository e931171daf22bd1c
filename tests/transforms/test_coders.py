"""Coders of what crosses a shuffle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.word_table import WordRules
from bpe_beam.engines.beam import StepsTransform
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
from bpe_beam.workers.count_split import CountTask


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
