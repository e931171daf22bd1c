"""The ids of many texts in each form: the same ids as one text at a time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError

TEXTS = ["the cat the cat", "", "größe", "a b c d e f g h", "the"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    options: dict[str, Any] = {"special_tokens": ["<s>", "</s>", "<pad>"], "min_frequency": 1}
    return bpe_beam.train(TEXTS, vocab_size=270, template="<s> $A </s>", **options)


@pytest.mark.parametrize("special", [False, True])
def test_every_output_has_the_ids_of_one_text_at_a_time(
    tokenizer: Tokenizer, special: bool
) -> None:
    expected = [tokenizer.encode(text, add_special_tokens=special) for text in TEXTS]
    for texts in (TEXTS, pa.array(["x", *TEXTS])[1:]):
        options: dict[str, Any] = {"add_special_tokens": special}
        assert tokenizer.encode_batch(texts, output="lists", **options) == expected
        assert tokenizer.encode_batch(texts, **options) == expected
        arrays = tokenizer.encode_batch(texts, output="numpy", **options)
        assert [array.tolist() for array in arrays] == expected
        assert {array.dtype for array in arrays} == {np.dtype(np.uint32)}
        arrow = tokenizer.encode_batch(texts, output="arrow", **options)
        assert arrow.to_pylist() == expected
    for ids in (expected, arrays, arrow):
        found = tokenizer.decode_batch(ids, skip_special_tokens=True, output="lists")
        assert found == TEXTS == tokenizer.decode_batch(ids, skip_special_tokens=True)
        array = tokenizer.decode_batch(ids, skip_special_tokens=True, output="numpy")
        assert array.dtype == object
        assert array.shape == (len(TEXTS),)
        assert array.tolist() == TEXTS
        in_bytes = [text.encode() for text in TEXTS]
        assert tokenizer.decode_bytes_batch(ids, skip_special_tokens=True) == in_bytes
        binary = tokenizer.decode_bytes_batch(ids, skip_special_tokens=True, output="arrow")
        assert (binary.type, binary.to_pylist()) == (pa.large_binary(), in_bytes)


def test_the_default_is_what_others_take(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_batch(["the cat", "the cat"])
    assert {type(token_id) for row in ids for token_id in row} == {int}
    assert json.loads(json.dumps(ids)) == ids
    assert np.array(ids).tolist() == ids


def test_datasets_map_takes_the_default(tokenizer: Tokenizer) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"text": TEXTS})
    ids = rows.map(lambda batch: {"ids": tokenizer.encode_batch(batch["text"])}, batched=True)
    assert ids["ids"][:] == [tokenizer.encode(text) for text in TEXTS]
    texts = ids.map(lambda batch: {"again": tokenizer.decode_batch(batch["ids"])}, batched=True)
    assert texts["again"][:] == TEXTS


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("max_length", [None, 2, 3, 5, 100])
def test_rows_are_padded_and_lose_their_ends(
    tokenizer: Tokenizer, special: bool, max_length: int | None
) -> None:
    pad_id = tokenizer.token_to_id("<pad>")
    assert pad_id is not None
    rows, mask = tokenizer.encode_padded(
        TEXTS, pad_id=pad_id, max_length=max_length, add_special_tokens=special
    )
    expected = []
    for text in TEXTS:
        ids, frame = tokenizer.encode(text), [*tokenizer.encode("", add_special_tokens=special)]
        if max_length is not None:
            ids = ids[: max_length - len(frame)]
        expected.append([*frame[:1], *ids, *frame[1:]])
    assert rows.dtype == np.uint32
    assert rows.shape == mask.shape == (len(TEXTS), max(map(len, expected)))
    for row, own, ids in zip(rows, mask, expected, strict=True):
        assert row[own].tolist() == ids
        assert own[: len(ids)].all()
        assert set(row[~own].tolist()) <= {pad_id}


def test_no_texts_make_an_empty_matrix(tokenizer: Tokenizer) -> None:
    rows, mask = tokenizer.encode_padded([], pad_id=0)
    assert rows.shape == mask.shape == (0, 0)
    assert tokenizer.encode_batch([], output="numpy") == []
    assert tokenizer.decode_batch([], output="numpy").dtype == object


def test_wrong_arguments_are_named(tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="output must be one of lists, arrow, numpy"):
        tokenizer.encode_batch(TEXTS, output="torch")
    with pytest.raises(UsageError, match="output must be one of lists, arrow, numpy"):
        tokenizer.decode_batch([[-1]], output="torch")
    with pytest.raises(UsageError, match="max_length must be at least 2, got 1"):
        tokenizer.encode_padded(TEXTS, pad_id=0, max_length=1, add_special_tokens=True)
    for length, got in ((0, "0$"), (1.0, "1.0, which is not a whole number"), ("9", "'9', which")):
        with pytest.raises(UsageError, match=f"max_length must be at least 1, got {got}"):
            tokenizer.encode_padded(TEXTS, pad_id=0, max_length=length)
    rows, _ = tokenizer.encode_padded(TEXTS, pad_id=0, max_length=10**30)
    assert len(rows) == len(TEXTS)
    for pad_id in (-1, None, True, 2**32):
        with pytest.raises(UsageError, match="pad_id must be an id"):
            tokenizer.encode_padded(TEXTS, pad_id=pad_id)
