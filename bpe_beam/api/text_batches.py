"""Texts from Python in batches of about a million characters, as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer import text_input

Batch: TypeAlias = "list[Any] | pa.Array"

BATCH_CHARACTERS = 1 << 20
MAX_TEXTS = 1 << 14

_TEXTS = (str, bytes)
_ARROW = (pa.Array, pa.ChunkedArray)


def batches_of(texts: Iterable[Any]) -> Iterator[Batch]:
    """Yield texts in order, as lists of str and bytes, or as Arrow's large_string."""
    if isinstance(texts, _ARROW):
        yield from _of_arrow(texts, 0)
        return
    batch: list[Any] = []
    number = characters = 0
    for text in texts:
        if isinstance(text, _TEXTS):
            batch.append(text)
            characters += len(text)
            number += 1
        elif isinstance(text, (list, tuple, *_ARROW)):
            if batch:
                yield batch
                batch, characters = [], 0
            inner = _of_arrow(text, number) if isinstance(text, _ARROW) else batches_of(text)
            for nested in inner:
                number += len(nested)
                yield nested
        else:
            raise _wrong_type(text, number)
        if characters >= BATCH_CHARACTERS or len(batch) >= MAX_TEXTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _of_arrow(texts: pa.Array | pa.ChunkedArray, number: int) -> Iterator[pa.Array]:
    """Yield slices of Arrow strings; the first text has this number."""
    import numpy as np

    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        if chunk.null_count:
            null = number + chunk.is_null().index(True).as_py()
            raise DataError(f"text {null} is null")
        data, offsets = text_input.to_batch(chunk)
        whole = pa.LargeStringArray.from_buffers(
            len(chunk), pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)
        )
        begin = 0
        while begin < len(whole):
            room = offsets[begin] + BATCH_CHARACTERS
            end = max(begin + 1, int(np.searchsorted(offsets, room, side="right")) - 1)
            yield whole.slice(begin, end - begin)
            begin = end
        number += len(chunk)


def _wrong_type(text: object, number: int) -> UsageError:
    hint = ""
    if isinstance(text, dict):
        hint = "give the texts of rows, such as (row['text'] for row in rows)"
    kind = type(text).__name__
    return UsageError(f"text {number} must be str or bytes, got {kind}", remedy=hint)
