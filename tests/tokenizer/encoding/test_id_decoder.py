"""Ids to bytes and text."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick


END = "<|end|>"


def test_there_and_back(tokenizer: Tokenizer, sample: str) -> None:
    for allowed in ((), "all"):
        ids = tokenizer.encode(sample, allowed_special=allowed)
        assert tokenizer.decode(ids) == sample
        assert tokenizer.decode_bytes(ids) == sample.encode()


def test_a_special_tokens_text_is_its_own(tokenizer: Tokenizer) -> None:
    """Not read as byte-level characters, though `语 x` and `<s>` could be mistaken for them."""
    for token, number in tokenizer.special_tokens.items():
        assert tokenizer.decode([number]) == token


def test_a_batch_has_the_bytes_of_every_token(tokenizer: Tokenizer) -> None:
    """Also of an added token that could be read as bytes."""
    document = json.loads(tokenizer.to_json())
    number = tokenizer.vocab_size
    document["added_tokens"].append(
        {**document["added_tokens"][0], "id": number, "content": "\u00e9\u00e8"}
    )
    with_bytes = Tokenizer.from_json(json.dumps(document))
    numbers = range(number + 1)
    found = with_bytes.decode_bytes_batch([[number] for number in numbers] * 8)
    assert found == [with_bytes.decode_bytes([number]) for number in numbers] * 8
    assert found[-1] == "\u00e9\u00e8".encode()


def test_skip_special_tokens(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(f"a{END}b", allowed_special="all")
    assert tokenizer.decode(ids) == f"a{END}b"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab"
    assert tokenizer.decode_bytes(ids, skip_special_tokens=True) == b"ab"


def test_broken_utf8(tokenizer: Tokenizer) -> None:
    number = tokenizer.token_to_id(byte_level.BYTE_TO_CHAR[0xC3])
    assert number is not None
    assert tokenizer.decode([number, *tokenizer.encode("a")]) == "\ufffda"
    assert tokenizer.decode_bytes([number]) == b"\xc3"


def test_arrays(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("the other")
    for array in (np.array(ids, np.uint16), pa.array(ids), iter(ids), tuple(ids)):
        assert tokenizer.decode(array) == "the other"


def test_unknown_ids(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    with pytest.raises(DataError, match=rf"^id {size} \(number 2 of .*: .* {size} tokens"):
        tokenizer.decode([0, size])
    with pytest.raises(DataError, match="id -1"):
        tokenizer.decode([-1])
    with pytest.raises(UsageError, match="ids must be integers"):
        tokenizer.decode([1.0])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="ids must be integers"):
        tokenizer.decode("12")


def rows_of(tokenizer: Tokenizer, sample: str) -> list[list[int]]:
    texts = ["", f"a{END}b", sample, "\u4e2d\u6587 \u00e9", "x" * 300]
    return [tokenizer.encode(text, allowed_special="all") for text in texts * 20]


def test_batches(tokenizer: Tokenizer, sample: str) -> None:
    """Each text is what it is alone, whatever has the ids."""
    rows = rows_of(tokenizer, sample)
    arrow = pa.array([[7], *rows, [7]], pa.large_list(pa.uint32()))[1:-1]
    batches = [
        rows,
        tuple(rows),
        [np.array(row, np.uint16) for row in rows],
        [iter(row) for row in rows],
        arrow,
        arrow.cast(pa.list_(pa.int64())),
        pa.chunked_array([arrow[:2], arrow[2:]]),
    ]
    for skip in (False, True):
        texts = [tokenizer.decode(row, skip_special_tokens=skip) for row in rows]
        data = [tokenizer.decode_bytes(row, skip_special_tokens=skip) for row in rows]
        for batch in batches[:3] + batches[4:]:
            found = tokenizer.decode_batch(batch, skip_special_tokens=skip)
            assert found == texts
            joined = tokenizer.decode_bytes_batch(batch, skip_special_tokens=skip)
            assert joined == data
    assert tokenizer.decode_batch(batches[3]) == list(map(tokenizer.decode, rows))
    assert tokenizer.decode_batch([]) == []
    square = np.array([rows[2][:4], rows[2][4:8]])
    assert tokenizer.decode_batch(square) == [tokenizer.decode(row) for row in square]


def test_lists_of_integers_are_read_natively(tokenizer: Tokenizer) -> None:
    """And whatever else an item may be, by Python."""
    found = _native.ids_of_lists([[1, 2**32 - 1], [], [0]])
    assert found is not None
    ids, offsets = found
    assert (ids.dtype, ids.tolist()) == (np.uint32, [1, 2**32 - 1, 0])
    assert (offsets.dtype, offsets.tolist()) == (np.int64, [0, 2, 2, 3])
    assert [part.tolist() for part in _native.ids_of_lists([]) or ()] == [[], [0]]
    for other in ([-1], [2**32], [2**70], [True], [1.0], [np.int64(1)], (1,), np.array([1])):
        assert _native.ids_of_lists([[1], other]) is None
    for one in ([True], (1,), [np.int64(1)]):
        assert tokenizer.decode_batch([[1], one]) == [tokenizer.decode([1])] * 2


def test_batches_with_broken_utf8(tokenizer: Tokenizer) -> None:
    number = tokenizer.token_to_id(byte_level.BYTE_TO_CHAR[0xC3])
    assert number is not None
    rows = [tokenizer.encode("a"), [number], [number, number]]
    assert tokenizer.decode_batch(rows) == ["a", "\ufffd", "\ufffd\ufffd"]
    assert tokenizer.decode_bytes_batch(rows) == [b"a", b"\xc3", b"\xc3\xc3"]
    # Two halves of a character in two texts are no character.
    halves = [[tokenizer.token_to_id(byte_level.BYTE_TO_CHAR[byte])] for byte in (0xC3, 0xA9)]
    assert tokenizer.decode_batch(halves) == ["\ufffd", "\ufffd"]


def test_batches_with_unknown_ids(tokenizer: Tokenizer) -> None:
    size = tokenizer.vocab_size
    many = [[0] * size, [0, size]]
    for batch in ([[0], [0, size]], pa.array(many), many, [np.array([0]), [0, size]]):
        with pytest.raises(DataError, match=rf"^text 1: id {size} \(number 2 of"):
            tokenizer.decode_batch(batch)
    with pytest.raises(DataError, match=r"^text 0: id -1 "):
        tokenizer.decode_bytes_batch([[-1]])
    with pytest.raises(UsageError, match="text 1: ids must be integers"):
        tokenizer.decode_batch([[1], [1.0]])
    with pytest.raises(UsageError, match="text 1: ids must be integers"):
        tokenizer.decode_batch(pa.array([[1], None]))
    with pytest.raises(UsageError, match="text 0: ids must be integers"):
        tokenizer.decode_batch([[[1, 2], [3, 4]]])
    with pytest.raises(UsageError, match="ids must be the ids of many texts"):
        tokenizer.decode_batch([1, 2])


def test_arrow_batches_of_what_is_no_integer(tokenizer: Tokenizer) -> None:
    """Whether or not a batch before them was decoded natively."""
    assert tokenizer.decode_batch([[0] * tokenizer.vocab_size])
    for row in ["1"], [1.0]:
        with pytest.raises(UsageError, match="text 0: ids must be integers"):
            tokenizer.decode_batch(pa.array([row]))
    assert tokenizer.decode_batch(pa.array([], pa.list_(pa.int64()))) == []


def test_batches_with_an_id_far_above_the_others(tokenizer: Tokenizer) -> None:
    document = json.loads(tokenizer.to_json())
    far = 2**31 - 1
    document["added_tokens"].append({**document["added_tokens"][0], "id": far, "content": "<far>"})
    distant = Tokenizer.from_json(json.dumps(document))
    rows = [tokenizer.encode("the other") * tokenizer.vocab_size, [far, far]]
    texts = ["the other" * tokenizer.vocab_size, "<far><far>"]
    assert distant.decode_batch(rows) == texts
    assert distant.decode_batch(rows, skip_special_tokens=True) == [texts[0], ""]
