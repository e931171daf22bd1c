"""Shards that are one table of documents: their readers and check; `table_schema.py` has columns.

A file has rows in groups, and a group is read whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError, lacks_memory
from bpe_beam.shards.document_batches import check_range, groups_of_documents, ranges_between
from bpe_beam.shards.formats.interface import ShardFormat, ShardReader
from bpe_beam.shards.formats.record_file import IdCheck
from bpe_beam.shards.formats.table_schema import (
    IDS,
    LENGTH,
    SEQUENCE_LENGTHS,
    columns_of,
    label_fields,
    vocab_size_of,
)
from bpe_beam.shards.formats.table_writer import OpenWriter, TableWriter
from bpe_beam.shards.formats.trainer_columns import trainer_columns
from bpe_beam.shards.stored_shard import Ids, IdType, StoredShard, check_counts, starts_within
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import JsonObject

_BROKEN_FILE_ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    MemoryError,
)
"""Exceptions that pyarrow raises for a broken file."""

_UINT32 = np.dtype(np.uint32)

Arrays = tuple[NDArray[np.uint32], NDArray[np.int32]]
"""The ids of a group of rows, and the bounds of its documents in them."""


class TableFile(Protocol):
    """An open file of a format: its schema, and its number of groups of rows."""

    schema: pa.Schema
    groups: int

    def read(self, group: int, column: str) -> pa.Array:
        """Return a column of a group of rows."""


OpenTable = Callable[[pa.NativeFile], TableFile]


class _Table:
    """An open table, read by groups of rows. `columns` are its columns for trainers.

    Opening reads the lengths of all documents once and checks them.
    """

    def __init__(self, stored: pa.NativeFile, url: str, open_file: OpenTable) -> None:
        self.url = url
        with self._reading("the head or the footer"):
            self._file = open_file(stored)
            self.vocab_size = vocab_size_of(self._file.schema)
        self.columns = columns_of(self._file.schema)
        # The first row and the first token of each group, and the ends of the last group.
        self._rows, self._tokens = [0], [0]
        for group in range(self._file.groups):
            lengths = self._group_lengths(group)
            self._rows.append(self._rows[-1] + lengths.size)
            self._tokens.append(self._tokens[-1] + int(lengths.sum(dtype=np.int64)))
        self.token_count = self._tokens[-1]

    def __len__(self) -> int:
        return self._rows[-1]

    def tokens(self, start: int, stop: int, dtype: IdType = _UINT32) -> Ids:
        check_range("tokens", start, stop, self.token_count)
        ranges = ranges_between(self._tokens, start, stop)
        return _joined([self._arrays(group)[0][low:high] for group, low, high in ranges], dtype)

    def document(self, index: int, dtype: IdType = _UINT32) -> Ids:
        """See `ShardReader.document`. Cost: reading its group of rows, unless it is in memory."""
        check_range("documents", index, index + 1, len(self))
        ids, bounds, row = self._group_of(index)
        begin, end = bounds[row : row + 2].tolist()
        return ids[begin:end].astype(dtype)

    def _group_of(self, index: int) -> tuple[NDArray[np.uint32], NDArray[np.int32], int]:
        """Return the arrays of the group of a document, and the document's row in it."""
        group = bisect_right(self._rows, index) - 1
        return *self._arrays(group), index - self._rows[group]

    def _arrays(self, group: int) -> Arrays:
        raise NotImplementedError

    def _read_arrays(self, group: int) -> Arrays:
        with self._reading(f"group {group} of rows"):
            lists = _without_nulls(self._file.read(group, IDS))
            bounds = lists.offsets.to_numpy()
            bounds = bounds - bounds[0]
            if not np.array_equal(np.diff(bounds), self._group_lengths(group)):
                raise ValueError(f"the lists of {IDS} have other lengths than {LENGTH} says")
            ids = _without_nulls(lists.flatten()).to_numpy()
            if ids.size and ids.min() < 0:
                raise ValueError(f"an id is {int(ids.min())}; expected 0 or more")
        return ids.view(np.uint32), bounds

    def _group_lengths(self, group: int) -> NDArray[np.int32]:
        with self._reading(f"group {group} of rows"):
            lengths: NDArray[np.int32] = _without_nulls(self._file.read(group, LENGTH)).to_numpy()
            if lengths.size and lengths.min() < 0:
                raise ValueError(f"a length is {int(lengths.min())}; expected 0 or more")
        return lengths

    def _group_column(self, name: str, group: int) -> pa.Array:
        with self._reading(f"group {group} of rows"):
            column = self._file.read(group, name)
            column.validate(full=True)
        return column

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Make the errors of a broken file DataErrors that name it."""
        try:
            yield
        except _BROKEN_FILE_ERRORS as error:
            if lacks_memory(error):
                raise
            reason = str(error).strip().partition("\n")[0]
            raise DataError(f"{self.url}: {what} cannot be read: {reason}") from error


class TableReader(_Table):
    """A `LabelledReader`."""

    def __init__(
        self, storage: Storage, folder: str, name: str, *, suffix: str, open_file: OpenTable
    ) -> None:
        url = storage.join(folder, name + suffix)
        self._read: tuple[int, Arrays] | None = None
        with ExitStack() as opened:
            stored = opened.enter_context(storage.open(url))
            super().__init__(pa.PythonFile(stored, mode="r"), redact(url), open_file)
            self._opened = opened.pop_all()

    def __enter__(self) -> TableReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._read = None
        self._opened.close()

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        check_range("documents", start, stop, len(self))
        ranges = ranges_between(self._rows, start, stop)
        parts = [self._group_lengths(group)[low:high] for group, low, high in ranges]
        return _joined(parts, np.dtype(np.int32))

    def locate(self, token: int) -> tuple[int, int]:
        check_range("tokens", token, token + 1, self.token_count)
        group = bisect_right(self._tokens, token) - 1
        token -= self._tokens[group]
        bounds = self._arrays(group)[1]
        row = int(np.searchsorted(bounds, token, side="right")) - 1
        return self._rows[group] + row, token - int(bounds[row])

    def labels(self, start: int, stop: int) -> pa.RecordBatch:
        check_range("documents", start, stop, len(self))
        columns = {}
        for field in label_fields(self._file.schema):
            parts = [
                self._group_column(field.name, group)[low:high]
                for group, low, high in ranges_between(self._rows, start, stop)
            ]
            columns[field.name] = pa.concat_arrays([pa.array([], field.type), *parts])
        return pa.RecordBatch.from_pydict(columns)

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        """See `IdReader.id_batches`; checks the lengths of all lists."""
        for group in range(self._file.groups):
            yield self._arrays(group)[0]

    def wrong_columns(self) -> Iterator[str]:
        """Yield a sentence for the first wrong list of each column for trainers."""
        unchecked = list(self.columns)
        for group in range(self._file.groups if unchecked else 0):
            documents = None
            if SEQUENCE_LENGTHS in self._file.schema.names:
                documents = self._group_column(SEQUENCE_LENGTHS, group)
            lengths = self._group_lengths(group)
            try:
                expected = trainer_columns(unchecked, self._arrays(group)[0], lengths, documents)
            except ValueError as error:
                yield f"group {group} of rows: {error}, which {', '.join(unchecked)} need"
                return
            for name, values in zip(tuple(unchecked), expected, strict=True):
                stored = self._group_column(name, group)
                if not stored.equals(values):
                    row = next((at for at in range(lengths.size) if stored[at] != values[at]), 0)
                    yield (
                        f"row {self._rows[group] + row}: {name} is not what follows from the "
                        "other columns"
                    )
                    unchecked.remove(name)

    def _arrays(self, group: int) -> Arrays:
        """Return the arrays of a group; the arrays of the last call are cached."""
        if self._read is None or self._read[0] != group:
            self._read = None
            self._read = group, self._read_arrays(group)
        return self._read[1]


class TableAccess(_Table):
    """A `LabelledAccess`."""

    def __init__(
        self, shard: StoredShard, *, suffix: str, open_file: OpenTable, maps: bool
    ) -> None:
        file = shard.file(suffix)
        super().__init__(file.stream(), file.url, open_file)
        self._lock = Lock()  # pyarrow's readers have one position
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
        ids, group_bounds, row = self._group_of(start)
        bounds = group_bounds[row : row + stop - start + 1].astype(np.int64)
        _, count = next(groups_of_documents(bounds, limit))
        ends = bounds[: count + 1].tolist()
        return [ids[begin:end].astype(dtype) for begin, end in pairwise(ends)]

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        starts = [np.empty(0, np.int64)]
        for group, low, high in ranges_between(self._tokens, start, stop):
            starts.append(starts_within(self._arrays(group)[1], low, high) + self._tokens[group])
        return np.concatenate(starts)

    def labels(self, index: int) -> JsonObject:
        """See `LabelledAccess.labels`. Cost: reading its group's labels, unless in memory."""
        group = bisect_right(self._rows, index) - 1
        columns = self._label_columns(group)
        row = index - self._rows[group]
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

    def _arrays(self, group: int) -> Arrays:
        """Return the arrays of a group; the arrays of the last groups are cached."""
        key = self, group
        arrays: Arrays | None = self._groups.get(key)
        if arrays is None:
            with self._lock:
                arrays = self._groups.get(key)
                if arrays is None:
                    arrays = ids, bounds = self._read_arrays(group)
                    size = bounds.nbytes + (0 if self._free else ids.nbytes)
                    self._groups.put(key, arrays, size)
        return arrays


class TableCheck(IdCheck):
    """A `ShardCheck` of the ids, the vocabulary size in the metadata, and the trainers' columns."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        if not isinstance(reader, TableReader):
            return
        wrong_ids = list(super().problems(reader))
        yield from wrong_ids
        if not wrong_ids and reader.vocab_size != self.vocab_size:
            yield (
                f"{self.file}: the metadata say that the vocabulary has {reader.vocab_size} ids; "
                f"expected {self.vocab_size}"
            )
        for problem in reader.wrong_columns():
            yield f"{self.file}: {problem}"


def table_format(
    name: str, suffix: str, open_writer: OpenWriter, open_reader: OpenTable, *, maps: bool = False
) -> ShardFormat:
    """Return the format of shards that are files of one kind."""
    return ShardFormat(
        name=name,
        suffixes=(suffix,),
        writer=partial(TableWriter, suffix=suffix, open_file=open_writer),
        reader=partial(TableReader, suffix=suffix, open_file=open_reader),
        check=partial(TableCheck, suffix=suffix),
        labelled=True,
        access=partial(TableAccess, suffix=suffix, open_file=open_reader, maps=maps),
    )


def _without_nulls(array: pa.Array) -> pa.Array:
    array.validate(full=True)
    if array.null_count:
        raise ValueError("there is a null")
    return array


def _joined(parts: list[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a new array of all parts."""
    return np.concatenate([np.empty(0, dtype), *parts], dtype=dtype, casting="unsafe")
