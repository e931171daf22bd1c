"""`Tokenize` in a user's pipeline."""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
import pytest
from sentences import sentences

from bpe_beam.errors import UsageError
from bpe_beam.transforms import (
    Tokenize,
)


def test_each_element_becomes_its_ids(run, tokenizer) -> None:
    texts = sentences(20)
    kept, counters = run(lambda p: p | beam.Create(texts) | Tokenize(tokenizer))
    assert sorted(ids.to_pylist() for ids in kept) == sorted(map(tokenizer.encode, texts))
    assert counters["documents_tokenized"] == 20
    assert counters["tokens_made"] == sum(len(tokenizer.encode(text)) for text in texts)


def test_batches_keep_their_other_columns(run, tokenizer) -> None:
    batch = pa.RecordBatch.from_pydict({"id": ["x", "y"], "text": ["the cat", ""], "n": [1, 2]})
    elements = beam.Create([batch]).with_output_types(pa.RecordBatch)
    (kept,), _ = run(lambda p: p | elements | Tokenize(tokenizer, append="<|end|>"))
    end = tokenizer.token_to_id("<|end|>")
    assert kept.to_pydict() == {
        "id": ["x", "y"],
        "tokens": [[*tokenizer.encode("the cat"), end], [end]],
        "n": [1, 2],
    }


def test_each_option_of_tokenize_shows(run, tokenizer) -> None:
    text = "the<|end|>cat"
    end, begin = tokenizer.token_to_id("<|end|>"), tokenizer.token_to_id("<|begin|>")
    plain = tokenizer.encode(text)
    for options, expected in [
        ({}, plain),
        ({"append": "<|end|>"}, [*plain, end]),
        ({"prepend": "<|begin|>"}, [begin, *plain]),
        ({"prepend": "<|begin|>", "append": "<|end|>"}, [begin, *plain, end]),
        ({"allowed_special": "all"}, tokenizer.encode(text, allowed_special="all")),
        ({"allowed_special": ["<|begin|>"]}, plain),
        ({"allowed_special": ["<|end|>"]}, tokenizer.encode(text, allowed_special="all")),
    ]:
        (ids,), _ = run(lambda p, o=options: p | beam.Create([text]) | Tokenize(tokenizer, **o), 1)
        assert ids.to_pylist() == expected, options


def test_a_token_that_is_not_there_is_refused(tokenizer) -> None:
    for options in ({"append": "<none>"}, {"prepend": "<none>"}, {"allowed_special": ["<none>"]}):
        with pytest.raises(UsageError, match="<none>"):
            Tokenize(tokenizer, **options)


def test_a_path_is_no_tokenizer() -> None:
    with pytest.raises(UsageError, match=r"must be a Tokenizer, got str: Tokenizer.from_file"):
        Tokenize("tokenizer.json")


def test_batches_that_nobody_announced(run, tokenizer) -> None:
    """Of an untyped step, whose output Beam takes for anything: they pass a shuffle."""

    def batch(text: str):
        return pa.record_batch([pa.array([text])], ["text"])

    (kept,), _ = run(
        lambda p: p | beam.Create(["a"]) | beam.Map(batch) | Tokenize(tokenizer) | beam.Reshuffle()
    )
    assert kept.to_pydict() == {"tokens": [tokenizer.encode("a")]}
