"""Coders of what crosses a shuffle."""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa

from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.transforms import (
    CountWords,
    LearnMerges,
    ReadDocuments,
    Tokenize,
    WriteTokens,
    coders,
)


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
    for coder in (coders.RecordBatchCoder(), coders.TokensCoder()):
        assert coder.is_deterministic()


def test_coders_give_back_what_they_took() -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["a", "é"], "place": [1, 2]})
    coder = coders.RecordBatchCoder()
    assert coder.decode(coder.encode(batch)).equals(batch)
    assert coder.encode(batch.slice(1)) == coder.encode(batch.slice(1))
    assert coder.decode(coder.encode(batch.slice(1))).to_pydict() == {"text": ["é"], "place": [2]}
    tokens = pa.array([1, 2**32 - 1, 0], pa.uint32())
    tokens_coder = coders.TokensCoder()
    for ids in (tokens, tokens.slice(1), tokens.slice(0, 0)):
        assert tokens_coder.decode(tokens_coder.encode(ids)).equals(ids)
