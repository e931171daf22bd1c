"""The columns of tables that trainers ask for, with `--columns`.

They follow from the other columns, and each is a list, of one
value a token but for `seq_start_id`:

    attention_mask  int8   1, and 0 on padding
    labels          int32  the ids, each for what a model makes of the tokens before it; IGNORED on
                           padding and on the first token of each document
    position_ids    int32  the position in the document; from 0 on padding, too
    loss_mask       int8   whether the next token is of the same document, for losses at the token
                           from which the next one is predicted; 0 on padding, too
    seq_start_id    int32  where each document of a sequence begins
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import require
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.formats import DOCUMENT_COLUMNS, TRAINER_COLUMNS, shard_format

IGNORED = -100  # the label of tokens that no loss counts, as in torch and transformers

_TYPES = {
    "attention_mask": pa.int8(),
    "labels": pa.int32(),
    "position_ids": pa.int32(),
    "loss_mask": pa.int8(),
    "seq_start_id": pa.int32(),
}


def require_columns(columns: Sequence[str], format_name: str, *, sequences: bool) -> None:
    """Refuse columns for which shards have no place."""
    require(
        not columns or shard_format(format_name).labelled,
        f"must not be given for shards of {format_name}, which have none",
        "columns",
        remedy="write parquet or arrow",
    )
    others = [name for name in columns if name not in DOCUMENT_COLUMNS]
    require(
        sequences or not others,
        f"must be {' or '.join(DOCUMENT_COLUMNS)} where rows are documents, got "
        f"{', '.join(others)}",
        "columns",
        remedy="make sequences with {sequence_length} of tokenize",
    )


def column_fields(columns: Sequence[str]) -> list[pa.Field]:
    """Return the fields of a schema, in the order of TRAINER_COLUMNS."""
    return [pa.field(name, pa.list_(_TYPES[name])) for name in TRAINER_COLUMNS if name in columns]


def bytes_of_token(columns: Sequence[str]) -> int:
    """Return the bytes that columns have for each token of a row."""
    return sum(_TYPES[name].bit_width // 8 for name in columns if name != "seq_start_id")


def trainer_columns(
    columns: Sequence[str],
    ids: NDArray[np.uint32],
    lengths: NDArray[np.int32],
    documents: pa.ListArray | None,
) -> list[pa.Array]:
    """Return columns of rows.

    `ids` is uint32[tokens], the ids of all rows; `lengths` int32[rows], the number of each row's
    ids.
    """
    rows = _Rows(ids, lengths, documents)
    return [
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, _TYPES[name]))
        for name in columns
        for offsets, values in [getattr(rows, name)()]
    ]


Lists = tuple[NDArray[np.int64], NDArray[np.integer]]
"""Where the lists of rows begin and end, and their values."""


class _Rows:
    """Rows of a table; a method for each column, see `trainer_columns`."""

    def __init__(
        self,
        ids: NDArray[np.uint32],
        lengths: NDArray[np.int32],
        documents: pa.ListArray | None,
    ) -> None:
        if documents is None:
            counts, sizes = np.ones(lengths.size, np.int64), lengths.astype(np.int64)
        elif documents.null_count:
            raise ValueError("it is unknown where documents begin in a sequence")
        else:
            counts = np.diff(documents.offsets.to_numpy()).astype(np.int64)
            sizes = documents.flatten().to_numpy().astype(np.int64)
        self._ids = ids
        self._bounds = bounds_of(lengths)
        self._documents = bounds_of(counts)
        before = bounds_of(sizes)
        # Tokens before each row, as far as documents have them.
        used_before = before[self._documents]
        self._used = np.diff(used_before)
        if (sizes.size and sizes.min() < 0) or (self._used > lengths).any():
            raise ValueError("the documents of a sequence have more tokens than it has")
        self._in_row = before[:-1] - np.repeat(used_before[:-1], counts)
        begins = self._in_row + np.repeat(self._bounds[:-1], counts)
        self._begins, self._sizes = begins[sizes > 0], sizes[sizes > 0]
        self._lengths = lengths

    def attention_mask(self) -> Lists:
        values = np.zeros(self._ids.size, np.int8)
        values[self._of_documents()] = 1
        return self._bounds, values

    def labels(self) -> Lists:
        values = np.full(self._ids.size, IGNORED, np.int32)
        known = self._of_documents()
        values[known] = self._ids[known]
        values[self._begins] = IGNORED
        return self._bounds, values

    def position_ids(self) -> Lists:
        padding = (self._bounds[:-1] + self._used)[self._used < self._lengths]
        starts = np.sort(np.concatenate((self._begins, padding)))
        ends = np.append(starts[1:], self._ids.size)
        values = np.arange(self._ids.size) - np.repeat(starts, ends - starts)
        return self._bounds, values.astype(np.int32)

    def loss_mask(self) -> Lists:
        bounds, values = self.attention_mask()
        values[self._begins + self._sizes - 1] = 0
        return bounds, values

    def seq_start_id(self) -> Lists:
        return self._documents, self._in_row.astype(np.int32)

    def _of_documents(self) -> NDArray[np.bool_]:
        """Return bool[tokens]: which tokens are of documents, not padding."""
        ends = np.repeat(self._bounds[:-1] + self._used, self._lengths)
        return np.arange(self._ids.size) < ends
