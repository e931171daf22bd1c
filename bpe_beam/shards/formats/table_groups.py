"""The groups of rows of an open table of documents."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError, lacks_memory
from bpe_beam.shards.formats.table_schema import IDS, LENGTH, columns_of, vocab_size_of

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


class TableFile(Protocol):
    """An open file of a format: its schema, and its number of groups of rows."""

    schema: pa.Schema
    groups: int

    def read(self, group: int, column: str) -> pa.Array:
        """Return a column of a group of rows."""


class TableRows:
    """An open table, read by groups of rows. `columns` are its columns for trainers."""

    def __init__(
        self,
        stored: BinaryIO | pa.NativeFile,
        url: str,
        open_file: Callable[[BinaryIO | pa.NativeFile], TableFile],
    ) -> None:
        self.url = url
        with self._reading("the head or the footer"):
            self._file = open_file(stored)
            self.vocab_size = vocab_size_of(self._file.schema)
        self.columns = columns_of(self._file.schema)
        rows, tokens = [0], [0]
        for group in range(self._file.groups):
            lengths = self._group_lengths(group)
            rows.append(rows[-1] + lengths.size)
            tokens.append(tokens[-1] + int(lengths.sum(dtype=np.int64)))
        # The first row and the first token of each group, and the ends of the last group.
        self._rows, self._tokens = np.array(rows), np.array(tokens)
        self.token_count = tokens[-1]

    def __len__(self) -> int:
        return int(self._rows[-1])

    def _slices(
        self,
        starts: NDArray[np.int64],
        start: int,
        stop: int,
        read: Callable[[int], Any],
    ) -> Iterator[Any]:
        """Yield the slices of all groups that are between two positions; `read` takes a group."""
        group = int(np.searchsorted(starts, start, side="right")) - 1
        while start < stop:
            first, end = int(starts[group]), int(starts[group + 1])
            if start < end:
                yield read(group)[start - first : min(stop, end) - first]
                start = min(stop, end)
            group += 1

    def _group_lengths(self, group: int) -> NDArray[np.int32]:
        with self._reading(f"group {group} of rows"):
            lengths: NDArray[np.int32] = without_nulls(self._file.read(group, LENGTH)).to_numpy()
            if lengths.size and lengths.min() < 0:
                raise ValueError(f"a length is {int(lengths.min())}; expected 0 or more")
        return lengths

    def _group_column(self, name: str, group: int) -> pa.Array:
        with self._reading(f"group {group} of rows"):
            column = self._file.read(group, name)
            column.validate(full=True)
        return column

    def _read_lists(self, group: int) -> pa.ListArray:
        with self._reading(f"group {group} of rows"):
            lists = without_nulls(self._file.read(group, IDS))
            offsets = lists.offsets.to_numpy()
            lists = pa.ListArray.from_arrays(
                pa.array(offsets - offsets[0]), without_nulls(lists.flatten())
            )
            lengths = self._group_lengths(group)
            if not np.array_equal(np.diff(lists.offsets.to_numpy()), lengths):
                raise ValueError(f"the lists of {IDS} have other lengths than {LENGTH} says")
            ids = lists.values.to_numpy()
            if ids.size and ids.min() < 0:
                raise ValueError(f"an id is {int(ids.min())}; expected 0 or more")
        return lists

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Make the errors of a broken file DataErrors that name it."""
        try:
            yield
        except _BROKEN_FILE_ERRORS as error:
            if lacks_memory(error):
                raise
            reason = str(error).strip().partition("\n")[0]
            raise DataError(f"{self.url}: {what} cannot be read: {reason}") from error


def native_file(stored: BinaryIO | pa.NativeFile) -> pa.NativeFile:
    """Return an open file as pyarrow reads it."""
    return stored if isinstance(stored, pa.NativeFile) else pa.PythonFile(stored, mode="r")


def without_nulls(array: pa.Array) -> pa.Array:
    array.validate(full=True)
    if array.null_count:
        raise ValueError("there is a null")
    return array


def joined(parts: Iterator[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    arrays: Sequence[NDArray[Any]] = list(parts)
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, dtype), *arrays])
