"""Reading tables of documents at any position."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Lock
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.shards.formats.id_stream import (
    check_range,
)
from bpe_beam.shards.formats.table_groups import TableFile, TableRows, joined
from bpe_beam.shards.formats.table_schema import label_fields
from bpe_beam.shards.stored_shard import Ids, IdType, StoredShard, check_counts
from bpe_beam.storage.json_file import JsonObject


class TableAccess(TableRows):
    """A `ShardAccess`. Opening reads the lengths of all documents; row groups are read whole."""

    def __init__(
        self,
        shard: StoredShard,
        *,
        suffix: str,
        open_file: Callable[[BinaryIO | pa.NativeFile], TableFile],
        maps: bool,
    ) -> None:
        file = shard.file(suffix)
        super().__init__(file.stream(), file.url, open_file)
        self._lock = Lock()
        self._groups = shard.groups
        self._free = maps and file.mapped
        check_counts(self.url, len(self), self.token_count, shard)
        if self.vocab_size != shard.vocab_size:
            raise DataError(
                f"{self.url}: has {self.vocab_size} ids in the vocabulary; the manifest says "
                f"{shard.vocab_size}"
            )

    def documents(self, start: int, stop: int, limit: int, dtype: IdType) -> list[Ids]:
        """See `ShardAccess.documents`; documents of one group of rows only."""
        ids, bounds, first = self._group_of(start)
        last = min(stop - first, len(bounds) - 1)
        row = start - first
        last = int(np.searchsorted(bounds[: last + 1], bounds[row] + limit, side="right")) - 1
        ends = bounds[row : max(last, row + 1) + 1].tolist()
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def document(self, index: int, dtype: IdType) -> Ids:
        """See `ShardAccess.document`. Cost: reading its group of rows, unless it is in memory."""
        ids, bounds, first = self._group_of(index)
        begin, end = bounds[index - first : index - first + 2].tolist()
        return ids[begin:end].astype(dtype)

    def tokens(self, start: int, stop: int, dtype: IdType) -> Ids:
        """See `ShardAccess.tokens`."""
        check_range("tokens", start, stop, self.token_count)
        parts = self._slices(self._tokens, start, stop, lambda group: self._arrays(group)[0])
        return joined(parts, dtype).astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`."""
        starts = [np.empty(0, np.int64)]
        group = int(np.searchsorted(self._tokens, start, side="right")) - 1
        while start < stop:
            first, end = int(self._tokens[group]), int(self._tokens[group + 1])
            if start < end:
                bounds = self._arrays(group)[1].astype(np.int64) + first
                low, high = np.searchsorted(bounds[:-1], (start, min(stop, end)))
                part = bounds[low : high + 1]
                starts.append(part[:-1][part[:-1] < part[1:]])
                start = min(stop, end)
            group += 1
        return np.concatenate(starts)

    def labels(self, index: int) -> JsonObject:
        """See `LabelledAccess.labels`. Cost: reading its group's labels, unless in memory."""
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        columns = self._label_columns(group)
        row = index - int(self._rows[group])
        return {name: column[row].as_py() for name, column in columns.items()}

    def _label_columns(self, group: int) -> dict[str, pa.Array]:
        """Return the labels of a group of rows."""
        key = self, group, "labels"
        columns: dict[str, pa.Array] | None = self._groups.get(key)
        if columns is None:
            with self._lock:
                names = [field.name for field in label_fields(self._file.schema)]
                columns = {name: self._group_column(name, group) for name in names}
            size = 0 if self._free else sum(column.nbytes for column in columns.values())
            self._groups.put(key, columns, size)
        return columns

    def _group_of(self, index: int) -> tuple[NDArray[np.uint32], NDArray[np.int32], int]:
        """Return the group of a document: its ids, bounds and first document."""
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        ids, bounds = self._arrays(group)
        return ids, bounds, int(self._rows[group])

    def _arrays(self, group: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return the ids of a group of rows, and the bounds of its documents in them."""
        key = self, group
        arrays: tuple[NDArray[np.uint32], NDArray[np.int32]] | None = self._groups.get(key)
        if arrays is not None:
            return arrays
        with self._lock:  # pyarrow's readers have one position
            arrays = self._groups.get(key)
            if arrays is None:
                lists = self._read_lists(group)
                ids, bounds = lists.values.to_numpy().view(np.uint32), lists.offsets.to_numpy()
                arrays = ids, bounds
                self._groups.put(key, arrays, bounds.nbytes + (0 if self._free else ids.nbytes))
        return arrays
