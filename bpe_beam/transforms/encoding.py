"""The encoding of `Tokenize` and its kin: its settings, and texts to ids."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa

from bpe_beam.errors import DataError, TextError
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding


def encoding_of(tokenizer: Tokenizer, **settings: Any) -> Encoding:
    """Return the encoding of a transform, by settings of `Encoding.of`, for its constructor.

    Warns the constructor's caller if the tokens of the tokenizer's post-processor are left out.
    """
    encoding = Encoding.of(tokenizer, **settings)
    if encoding.left_out is not None:
        remedy = "set add_special_tokens=True for these, or prepend and append"
        warnings.warn(f"{encoding.left_out}: {remedy}", stacklevel=3)
    return encoding


def encode_texts(
    encoding: Encoding, texts: pa.Array, tokenizer: Tokenizer | None = None
) -> pa.LargeListArray:
    """Return the ids of each text, by `tokenizer` or the encoding's tokenizer."""
    try:
        return encoding.encode(texts, tokenizer)
    except TextError as error:
        raise DataError(f"a document cannot be encoded: {error.reason}") from None
