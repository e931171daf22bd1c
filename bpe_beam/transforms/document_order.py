"""The order of documents that `ReadDocuments` read: a batch has its split and its first document.

A `PCollection` has no order, so each batch carries its place in the schema, through all steps that
keep the schema's metadata.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.corpus.batches import BATCH_SCHEMA

_KEY = b"bpe_beam.documents"

PLACE = "place"
"""A column of `ReadDocuments`, the position of a document in the corpus: of no use with its ids."""

_NUMBER_BITS = 40  # of the number of a document in its split


class BatchOrder(Struct, frozen=True, omit_defaults=True):
    """The place of a batch of documents in the corpus.

    Attributes:
        split: The number of its split in the plan.
        first: The number of its first document in the split, with a number of the plan above it:
            documents of several `ReadDocuments` have different numbers.
        rows: The number of its documents when it was read.
        places: The first and last values of its column `place` when it was read; None if all are
            null.
        text_files: The text files of the split, whose documents have positions as ids.
    """

    split: int
    first: int
    rows: int = 0
    places: tuple[int, int] | None = None
    text_files: tuple[str, ...] = ()

    def has_all_of(self, batch: Any) -> bool:
        """Return whether no documents of other batches were joined to a batch, as far as it shows.

        A filtered batch has too few rows to tell; then its column `place` tells, if it has one.
        """
        if batch.num_rows > self.rows:
            return False
        places = _places_of(batch)
        if places is None or self.places is None:
            return True
        return self.places[0] <= places[0] and places[1] <= self.places[1]


def first_of_split(split: int, plan_fingerprint: str, text_files: tuple[str, ...]) -> BatchOrder:
    """Return the place of the first batch of a split."""
    bits = 63 - _NUMBER_BITS
    first = int(plan_fingerprint[:16], 16) >> 64 - bits << _NUMBER_BITS
    return BatchOrder(split, first, text_files=text_files)


def with_order(batch: pa.RecordBatch, order: BatchOrder) -> pa.RecordBatch:
    """Return a batch with its place, its rows and their places in its schema's metadata."""
    value = msgspec.json.encode(replace(order, rows=len(batch), places=_places_of(batch)))
    return batch.replace_schema_metadata({**(batch.schema.metadata or {}), _KEY: value})


def order_of(batch: Any) -> BatchOrder | None:
    """Return the place of a batch or table; None if it has none."""
    value = (batch.schema.metadata or {}).get(_KEY)
    return None if value is None else json_structs.decode(value, BatchOrder)


def _places_of(batch: Any) -> tuple[int, int] | None:
    """Return the first and last values of the column `place`; None if none is known."""
    at = batch.schema.get_field_index(PLACE)
    if at < 0 or batch.schema.field(at).type != BATCH_SCHEMA.field(PLACE).type:
        return None
    import pyarrow.compute as pc  # slow to import

    bounds = pc.min_max(batch.column(at)).as_py()
    return None if bounds["min"] is None else (bounds["min"], bounds["max"])
