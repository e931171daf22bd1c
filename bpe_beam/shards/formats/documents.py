"""Documents as every format's writer and reader takes them, and what is refused of them."""

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
    """Refuses a batch that cannot be written, before any of it is.

    Args:
        ids: the ids of all documents one after the other; must be uint32 [tokens].
        offsets: where each document begins in `ids`; must be int64 [documents + 1], from 0 to
            `len(ids)`, never falling.
        vocab_size: one more than the greatest id allowed.
        max_tokens: the longest document that the format can hold.
        shard: the shard's name, for the message.
        first: the number of the batch's first document in the shard, for the message.

    Raises:
        DataError: if a document is too long or an id is not in the vocabulary; names both.
        ValueError: if the arrays are of other types or do not belong together.
    """
    if ids.dtype != np.uint32 or ids.ndim != 1:
        raise ValueError(f"ids must be uint32 [tokens], not {ids.dtype} {ids.shape}")
    if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError(f"offsets must be int64 [n + 1], not {offsets.dtype} {offsets.shape}")
    if offsets[0] != 0 or offsets[-1] != ids.size or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"offsets must rise from 0 to the number of ids, {ids.size}")
    lengths = np.diff(offsets)
    if lengths.size and int(lengths.max()) > max_tokens:
        document = int(np.argmax(lengths > max_tokens))
        raise DataError(
            f"{shard}: document {first + document} has {int(lengths[document])} tokens; the "
            f"format holds at most {max_tokens} a document: cut the document"
        )
    if ids.size and int(ids.max()) >= vocab_size:
        token = int(np.argmax(ids >= vocab_size))
        document = int(np.searchsorted(offsets, token, side="right")) - 1
        raise DataError(
            f"{shard}: document {first + document}, token {token - int(offsets[document])}: id "
            f"{int(ids[token])} is not in the vocabulary; allowed are 0 to {vocab_size - 1}"
        )


def check_range(what: str, start: int, stop: int, count: int) -> None:
    """Raises IndexError unless [start, stop) lies within the `count` of a shard."""
    if not 0 <= start <= stop <= count:
        raise IndexError(f"{what} {start} to {stop} are not within the {count} of the shard")
