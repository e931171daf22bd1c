"""Ids to bytes and text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer import byte_level
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
