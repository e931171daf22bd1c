"""Reading tables of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.shards.formats.id_stream import (
    check_range,
)
from bpe_beam.shards.formats.table_groups import TableFile, TableRows, joined
from bpe_beam.shards.formats.table_schema import SEQUENCE_LENGTHS, label_fields
from bpe_beam.shards.formats.trainer_columns import (
    trainer_columns,
)
from bpe_beam.storage import Storage, redact


class TableReader(TableRows):
    """A `ShardReader`.

    Opening reads the lengths of all documents once and checks them; a group of rows is read whole.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        *,
        suffix: str,
        open_file: Callable[[BinaryIO | pa.NativeFile], TableFile],
    ) -> None:
        url = storage.join(folder, name + suffix)
        self._read: tuple[int, pa.ListArray] | None = None
        with ExitStack() as opened:
            self._stored = storage.open(url)
            opened.callback(self._stored.close)
            super().__init__(self._stored, redact(url), open_file)
            opened.pop_all()

    def __enter__(self) -> TableReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._read = None
        self._stored.close()

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """See `ShardReader.lengths`."""
        check_range("documents", start, stop, len(self))
        return joined(self._slices(self._rows, start, stop, self._group_lengths), np.int32)

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`."""
        check_range("tokens", start, stop, self.token_count)
        return joined(self._slices(self._tokens, start, stop, self._group_ids), np.uint32)

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`. Cost: reading its group of rows, unless it was read last."""
        check_range("documents", index, index + 1, len(self))
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        row = index - int(self._rows[group])
        start, stop = self._group_lists(group).offsets.to_numpy()[row : row + 2]
        return self._group_ids(group)[start:stop]

    def locate(self, token: int) -> tuple[int, int]:
        """See `IdReader.locate`."""
        check_range("tokens", token, token + 1, self.token_count)
        group = int(np.searchsorted(self._tokens, token, side="right")) - 1
        token -= int(self._tokens[group])
        bounds = self._group_lists(group).offsets.to_numpy()
        row = int(np.searchsorted(bounds, token, side="right")) - 1
        return int(self._rows[group]) + row, token - int(bounds[row])

    def labels(self, start: int, stop: int) -> pa.RecordBatch:
        """See `LabelledReader.labels`."""
        check_range("documents", start, stop, len(self))
        columns = {}
        for field in label_fields(self._file.schema):
            read = partial(self._group_column, field.name)
            parts = list(self._slices(self._rows, start, stop, read))
            columns[field.name] = pa.concat_arrays([pa.array([], field.type), *parts])
        return pa.RecordBatch.from_pydict(columns)

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        """See `IdReader.id_batches`; checks the lengths of all lists."""
        for group in range(self._file.groups):
            yield self._group_ids(group)

    def wrong_columns(self) -> Iterator[str]:
        """Yield a sentence for the first wrong list of each column for trainers."""
        unchecked = list(self.columns)
        for group in range(self._file.groups if unchecked else 0):
            lists = self._group_lists(group)
            documents = None
            if SEQUENCE_LENGTHS in self._file.schema.names:
                documents = self._group_column(SEQUENCE_LENGTHS, group)
            try:
                expected = trainer_columns(
                    unchecked, self._group_ids(group), self._group_lengths(group), documents
                )
            except ValueError as error:
                yield f"group {group} of rows: {error}, which {', '.join(unchecked)} need"
                return
            for name, values in zip(tuple(unchecked), expected, strict=True):
                stored = self._group_column(name, group)
                if not stored.equals(values):
                    row = next((at for at in range(len(lists)) if stored[at] != values[at]), 0)
                    yield (
                        f"row {int(self._rows[group]) + row}: {name} is not what follows from the "
                        "other columns"
                    )
                    unchecked.remove(name)

    def _group_ids(self, group: int) -> NDArray[np.uint32]:
        ids: NDArray[np.int32] = self._group_lists(group).values.to_numpy()
        return ids.view(np.uint32)

    def _group_lists(self, group: int) -> pa.ListArray:
        """Return the lists of ids of a group."""
        if self._read is None or self._read[0] != group:
            self._read = None
            self._read = group, self._read_lists(group)
        return self._read[1]
