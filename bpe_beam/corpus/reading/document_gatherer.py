"""Documents that are found one at a time, gathered to batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bpe_beam.corpus.batches import BATCH_SCHEMA, PLACE_BITS
from bpe_beam.corpus.slices import SliceRequest


class Gatherer:
    """Holds documents until there are enough for a batch.

    Args:
        request: Their slice.
    """

    def __init__(self, request: SliceRequest) -> None:
        self._request = request
        self._clear()

    def _clear(self) -> None:
        self._ids: list[str | None] = []
        self._sources: list[str] = []
        self._places: list[int | None] = []
        self._texts: list[bytes] = []
        self._size = 0

    def add(
        self, name: str | None, source: str, offset: int | None, text: bytes
    ) -> Iterator[pa.RecordBatch]:
        """Takes a document, whose text is UTF-8; yields a batch if it is full."""
        request = self._request
        self._ids.append(name)
        self._sources.append(source)
        self._places.append(None if offset is None else request.number << PLACE_BITS | offset)
        self._texts.append(text)
        self._size += len(text) + len(name or "") + len(source)
        if self._size >= request.batch_bytes or len(self._texts) >= request.max_rows:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields what is held, if there is something."""
        if self._texts:
            columns = [
                pa.array(self._ids, pa.large_string()),
                pa.array(self._sources, pa.large_string()),
                pa.array(self._places, pa.uint64()),
                pa.array(self._texts, pa.large_binary()).view(pa.large_string()),
            ]
            self._clear()
            yield pa.RecordBatch.from_arrays(columns, schema=BATCH_SCHEMA)
