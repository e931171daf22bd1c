"""Checks of documents and ranges that the writers and readers of all formats share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError


def check_documents(
    ids: NDArray[Any],
    offsets: NDArray[Any],
    *,
    vocab_size: int,
    max_tokens: int,
    shard: str,
    first: int,
) -> None:
    """Refuse a batch that cannot be written, before any of it is.

    Args:
        ids: uint32[tokens], the ids of all documents one after the other.
        offsets: int64[documents + 1], the start of each document in `ids` and the end of the last;
            from 0 to `len(ids)`, never falling.
        vocab_size: One more than the greatest id allowed.
        max_tokens: The most tokens of a document that the format allows.
        shard: The shard's name, for errors.
        first: The number of the batch's first document in the shard, for errors.

    Raises:
        DataError: A document is too long or an id is not in the vocabulary; names both.
        ValueError: The arrays are of other types or do not belong together.
    """
    if ids.dtype != np.uint32 or ids.ndim != 1:
        raise ValueError(f"ids must be uint32[tokens], got {ids.dtype} of shape {ids.shape}")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError(
            f"offsets must be int64[documents + 1], got {offsets.dtype} of shape {offsets.shape}"
        )
    if offsets[0] != 0 or offsets[-1] != ids.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"offsets must rise from 0 to the number of ids, {ids.size}")
    lengths = np.diff(offsets)
    if lengths.size and int(lengths.max()) > max_tokens:
        document = int(np.argmax(lengths > max_tokens))
        raise DataError(
            f"{shard}: document {first + document} has {int(lengths[document])} tokens; the "
            f"format allows at most {max_tokens} a document: divide the document"
        )
    if ids.size and int(ids.max()) >= vocab_size:
        token = int(np.argmax(ids >= vocab_size))
        document = int(np.searchsorted(offsets, token, side="right")) - 1
        raise DataError(
            f"{shard}: document {first + document}, token {token - int(offsets[document])}: id "
            f"{int(ids[token])} is not in the vocabulary; allowed are 0 to {vocab_size - 1}"
        )


def check_range(what: str, start: int, stop: int, count: int) -> None:
    """Refuse a range that is not within a shard.

    Args:
        what: What is counted: "documents" or "tokens".
        start: The first one, from 0.
        stop: The one behind the last.
        count: The number of them in the shard.

    Raises:
        IndexError: [start, stop) is not within [0, count).
    """
    if not 0 <= start <= stop <= count:
        raise IndexError(f"{what} must be a range within 0 to {count}, got {start} to {stop}")
