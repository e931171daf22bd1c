"""Shards that are one table of documents: what columnar formats share.

A row is a document:

    input_ids  list<int32>  its ids
    length     int32        their number
    id         string       the document's id; null if it has none, or nobody knows it
    source     string       its source; null if nobody knows it
    text_bytes int64        its text before encoding, in bytes of UTF-8; null if nobody knows it

Of sequences (see `ShardOrigin.sequence_length`) there is one column in place of the last three:

    seq_lengths  list<int32>  the tokens of each document, or part of one, in the sequence; the
                              tokens behind them are padding; null if nobody knows them

Of temporary documents that are still to be divided (see `ShardOrigin.hashes`) there are two more:

    id_hash      uint64       the hash of a document's id; without one, that of its text
    text_hash    uint64       the hash of its text

Behind them are the columns for trainers that were asked for, see `trainer_columns.py`.

The schema's metadata has a JSON object under the key `bpe_beam`: `document` is `row`, where a
document begins and ends; `prepend` and `append` are the token that is put before and after each
document and its id, or a list of several, or null; `tokenizer` has the `fingerprint` and the
`vocab_size`; `sequence_length` is there for sequences only, `hashes`, true, with hashes only. The
fingerprint, `prepend` and `append` are absent if nobody knows them.

Rows are in groups of limited size, which depend on the documents alone: equal documents give equal
bytes. int32 holds the ids of any vocabulary.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, BinaryIO, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import DataError, lacks_memory
from bpe_beam.shards.formats import TRAINER_COLUMNS
from bpe_beam.shards.formats.id_stream import (
    check_range,
)
from bpe_beam.shards.formats.interface import (
    MAX_DOCUMENT_TOKENS,
    ShardFormat,
    ShardOrigin,
    ShardReader,
)
from bpe_beam.shards.formats.one_file_writer import OneFileWriter
from bpe_beam.shards.formats.trainer_columns import (
    bytes_of_token,
    column_fields,
    trainer_columns,
)
from bpe_beam.shards.stored_shard import Ids, IdType, StoredShard, check_counts
from bpe_beam.storage import Storage, redact

IDS, LENGTH = "input_ids", "length"
TEXT_BYTES = "text_bytes"
SEQUENCE_LENGTHS = "seq_lengths"
ID_HASH = "id_hash"
TEXT_HASH = "text_hash"

_ROW = [(IDS, pa.list_(pa.int32())), (LENGTH, pa.int32())]
SCHEMA = pa.schema([*_ROW, ("id", pa.string()), ("source", pa.string()), (TEXT_BYTES, pa.int64())])
HASHED_SCHEMA = pa.schema([*SCHEMA, (ID_HASH, pa.uint64()), (TEXT_HASH, pa.uint64())])
SEQUENCES_SCHEMA = pa.schema([*_ROW, (SEQUENCE_LENGTHS, pa.list_(pa.int32()))])

METADATA_KEY = b"bpe_beam"

ROW_BYTES = 24
"""What a row counts in a group, beside its ids, its document's id and source."""

_INT32 = np.dtype(np.int32)

_BROKEN = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, MemoryError)
"""The errors of pyarrow for a broken file."""


class TableFile(Protocol):
    """An open file of a format.

    Attributes:
        schema: Its columns and their metadata.
        groups: The number of its groups of rows.
    """

    schema: pa.Schema
    groups: int

    def read(self, group: int, column: str) -> pa.Array:
        """Return a column of a group of rows."""


class GroupWriter(Protocol):
    """Writes a file group by group. A context manager, which ends a file of at least one group.

    Attributes:
        group_bytes: The most bytes of a group, unless it is one row: four a token, ROW_BYTES a row,
            and those of its id, its source and columns for trainers. A writer has at most one group
            in memory, and a reader one.
    """

    group_bytes: ClassVar[int]

    def __enter__(self) -> GroupWriter: ...

    def __exit__(self, *exception: Any) -> None: ...

    def add(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> None:
        """Add rows to the group.

        Args:
            lengths: int32[n], the number of each row's ids.
        """

    def end_group(self) -> None:
        """Write the group, which has rows, and begin the next one."""


OpenWriter = Callable[[pa.PythonFile, pa.Schema], GroupWriter]


class TableWriter(OneFileWriter):
    """A `ShardWriter`, with the labels of documents."""

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        vocab_size: int,
        origin: ShardOrigin | None = None,
        *,
        suffix: str,
        open_file: OpenWriter,
    ) -> None:
        super().__init__(storage, folder, name, vocab_size, suffix=suffix)
        schema = SCHEMA
        if origin is not None and origin.hashes:
            schema = HASHED_SCHEMA
        elif origin is not None and origin.sequence_length is not None:
            schema = SEQUENCES_SCHEMA
        columns = () if origin is None else origin.columns
        self._columns = tuple(name for name in TRAINER_COLUMNS if name in columns)
        self._labels = _label_fields(schema)
        fields = [*schema, *column_fields(self._columns)]
        self._schema = pa.schema(fields, _metadata(vocab_size, origin))
        self._open_file = open_file
        self._table: GroupWriter | None = None
        self._group_bytes = 0

    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """See `OneFileWriter.add`."""
        rows = offsets.size - 1
        columns = [_label(labels, field, rows) for field in self._labels]
        sizes = (4 + bytes_of_token(self._columns)) * np.diff(offsets) + ROW_BYTES
        for column in columns:
            sizes += _label_bytes(column)
        if "seq_start_id" in self._columns:
            sizes += _label_bytes(columns[0])
        ends = np.concatenate(([0], np.cumsum(sizes)))
        start = 0
        while start < rows:
            room = self._opened().group_bytes - self._group_bytes
            stop = int(np.searchsorted(ends, ends[start] + room, side="right")) - 1
            if stop <= start and self._group_bytes:
                self._end_group()
                continue
            stop = max(stop, start + 1)
            self._group_bytes += int(ends[stop] - ends[start])
            of_group = ids[offsets[start] : offsets[stop]]
            lengths = np.diff(offsets[start : stop + 1]).astype(_INT32)
            parts = [column.slice(start, stop - start) for column in columns]
            self._opened().add(
                of_group, lengths, [*parts, *self._derived(of_group, lengths, parts)]
            )
            start = stop

    def _derived(
        self, ids: NDArray[np.uint32], lengths: NDArray[np.int32], labels: list[pa.Array]
    ) -> list[pa.Array]:
        """Return the columns for trainers."""
        if not self._columns:
            return []
        documents = labels[0] if self._labels[0].name == SEQUENCE_LENGTHS else None
        try:
            return trainer_columns(self._columns, ids, lengths, documents)
        except ValueError as error:
            raise DataError(
                f"cannot be made for {self.name}: {error}",
                ("columns",),
                "tokenize with {format} parquet or arrow, which store where documents begin",
            ) from error

    def finish(self) -> None:
        """See `OneFileWriter.finish`."""
        self._end_group()

    def _end_group(self) -> None:
        self._opened().end_group()
        self._group_bytes = 0

    def _opened(self) -> GroupWriter:
        if self._table is None:
            sink = pa.PythonFile(self.file(), mode="w")
            self._table = self.files.enter_context(self._open_file(sink, self._schema))
        return self._table


class _GroupsOfRows:
    """An open table: where its groups of rows begin, and reading them.

    Attributes:
        token_count: The number of ids.
        vocab_size: One more than the greatest id allowed, as the metadata say.
        columns: The columns for trainers that it has.
    """

    def __init__(
        self,
        stored: BinaryIO | pa.NativeFile,
        url: str,
        open_file: Callable[[BinaryIO | pa.NativeFile], TableFile],
    ) -> None:
        self.url = url
        with self._reading("the head or the footer"):
            self._file = open_file(stored)
            self.vocab_size = _vocab_size_of(self._file.schema)
        self.columns = _columns_of(self._file.schema)
        rows, tokens = [0], [0]
        for group in range(self._file.groups):
            lengths = self._group_lengths(group)
            rows.append(rows[-1] + lengths.size)
            tokens.append(tokens[-1] + int(lengths.sum(dtype=np.int64)))
        # The first row, and the first token, of each group, and the ends of the last.
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
        """Yield the parts of a range that groups have, each read by its group's number."""
        group = int(np.searchsorted(starts, start, side="right")) - 1
        while start < stop:
            first, end = int(starts[group]), int(starts[group + 1])
            if start < end:
                yield read(group)[start - first : min(stop, end) - first]
                start = min(stop, end)
            group += 1

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

    def _read_lists(self, group: int) -> pa.ListArray:
        with self._reading(f"group {group} of rows"):
            lists = _without_nulls(self._file.read(group, IDS))
            offsets = lists.offsets.to_numpy()
            lists = pa.ListArray.from_arrays(
                pa.array(offsets - offsets[0]), _without_nulls(lists.flatten())
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
        except _BROKEN as error:
            if lacks_memory(error):
                raise
            reason = str(error).strip().partition("\n")[0]
            raise DataError(f"{self.url}: {what} cannot be read: {reason}") from error


class TableReader(_GroupsOfRows):
    """A `ShardReader`.

    Opening reads the lengths of all documents once and checks them; a group of rows is read whole.

    Attributes:
        token_count: See `ShardReader`.
        vocab_size: One more than the greatest id allowed, as the metadata say.
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
        return _joined(self._slices(self._rows, start, stop, self._group_lengths), np.int32)

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """See `ShardReader.tokens`."""
        check_range("tokens", start, stop, self.token_count)
        return _joined(self._slices(self._tokens, start, stop, self._group_ids), np.uint32)

    def document(self, index: int) -> NDArray[np.uint32]:
        """See `ShardReader.document`. Cost: reading its group of rows, unless it was read last."""
        check_range("documents", index, index + 1, len(self))
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        row = index - int(self._rows[group])
        start, stop = self._group_lists(group).offsets.to_numpy()[row : row + 2]
        return self._group_ids(group)[start:stop]

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""
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
        for field in _label_fields(self._file.schema):
            read = partial(self._group_column, field.name)
            parts = list(self._slices(self._rows, start, stop, read))
            columns[field.name] = pa.concat_arrays([pa.array([], field.type), *parts])
        return pa.RecordBatch.from_pydict(columns)

    def groups(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids of each group of rows; check that the lengths are those of the lists."""
        for group in range(self._file.groups):
            yield self._group_ids(group)

    def wrong_columns(self) -> Iterator[str]:
        """Yield a sentence for the first wrong list of each column for trainers."""
        left = list(self.columns)
        for group in range(self._file.groups if left else 0):
            lists = self._group_lists(group)
            documents = None
            if SEQUENCE_LENGTHS in self._file.schema.names:
                documents = self._group_column(SEQUENCE_LENGTHS, group)
            try:
                expected = trainer_columns(
                    left, self._group_ids(group), self._group_lengths(group), documents
                )
            except ValueError as error:
                yield f"group {group} of rows: {error}, which {', '.join(left)} need"
                return
            for name, values in zip(tuple(left), expected, strict=True):
                found = self._group_column(name, group)
                if not found.equals(values):
                    row = next((at for at in range(len(lists)) if found[at] != values[at]), 0)
                    yield (
                        f"row {int(self._rows[group]) + row}: {name} is not what follows from the "
                        "other columns"
                    )
                    left.remove(name)

    def _group_ids(self, group: int) -> NDArray[np.uint32]:
        ids: NDArray[np.int32] = self._group_lists(group).values.to_numpy()
        return ids.view(np.uint32)

    def _group_lists(self, group: int) -> pa.ListArray:
        """Return the lists of ids of a group, from the start of their values to the end."""
        if self._read is None or self._read[0] != group:
            self._read = None
            self._read = group, self._read_lists(group)
        return self._read[1]


class TableAccess(_GroupsOfRows):
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
        self.has_sequences = SEQUENCE_LENGTHS in self._file.schema.names
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
        return _joined(parts, dtype).astype(dtype)

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `ShardAccess.starts`."""
        found = [np.empty(0, np.int64)]
        group = int(np.searchsorted(self._tokens, start, side="right")) - 1
        while start < stop:
            first, end = int(self._tokens[group]), int(self._tokens[group + 1])
            if start < end:
                bounds = self._arrays(group)[1].astype(np.int64) + first
                low, high = np.searchsorted(bounds[:-1], (start, min(stop, end)))
                part = bounds[low : high + 1]
                found.append(part[:-1][part[:-1] < part[1:]])
                start = min(stop, end)
            group += 1
        return np.concatenate(found)

    def labels(self, index: int) -> dict[str, Any]:
        """See `LabelledAccess.labels`. Cost: reading its group's labels, unless in memory."""
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        columns = self._label_columns(group)
        row = index - int(self._rows[group])
        return {name: column[row].as_py() for name, column in columns.items()}

    def _label_columns(self, group: int) -> dict[str, pa.Array]:
        """Return the labels of a group of rows."""
        key = self, group, "labels"
        found: dict[str, pa.Array] | None = self._groups.get(key)
        if found is None:
            with self._lock:
                names = [field.name for field in _label_fields(self._file.schema)]
                found = {name: self._group_column(name, group) for name in names}
            size = 0 if self._free else sum(column.nbytes for column in found.values())
            self._groups.put(key, found, size)
        return found

    def _group_of(self, index: int) -> tuple[NDArray[np.uint32], NDArray[np.int32], int]:
        """Return the group of a document: its ids, bounds and first document."""
        group = int(np.searchsorted(self._rows, index, side="right")) - 1
        ids, bounds = self._arrays(group)
        return ids, bounds, int(self._rows[group])

    def _arrays(self, group: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return the ids of a group of rows, and where its documents are in them."""
        key = self, group
        found: tuple[NDArray[np.uint32], NDArray[np.int32]] | None = self._groups.get(key)
        if found is not None:
            return found
        with self._lock:  # pyarrow's readers have one position
            found = self._groups.get(key)
            if found is None:
                lists = self._read_lists(group)
                ids, bounds = lists.values.to_numpy().view(np.uint32), lists.offsets.to_numpy()
                found = ids, bounds
                self._groups.put(key, found, bounds.nbytes + (0 if self._free else ids.nbytes))
        return found


class TableCheck:
    """A `ShardCheck` of the ids, and of what the metadata say of the vocabulary."""

    def __init__(self, name: str, vocab_size: int, *, suffix: str) -> None:
        self._file = name + suffix
        self._vocab_size = vocab_size

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`: a block alone has no ids."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        if not isinstance(reader, TableReader):
            return
        first, count, before = None, 0, 0
        for ids in reader.groups():
            bad = np.flatnonzero(ids >= self._vocab_size)
            if bad.size and first is None:
                first = before + int(bad[0]), int(ids[bad[0]])
            count += bad.size
            before += ids.size
        if first is not None:
            document, token = reader.locate(first[0])
            yield (
                f"{self._file}: document {document}, token {token}: the id is {first[1]}; expected "
                f"0 to {self._vocab_size - 1}; {count} such ids in this shard"
            )
        elif reader.vocab_size != self._vocab_size:
            yield (
                f"{self._file}: the metadata say that the vocabulary has {reader.vocab_size} ids; "
                f"expected {self._vocab_size}"
            )
        for problem in reader.wrong_columns():
            yield f"{self._file}: {problem}"


def table_format(
    name: str,
    suffix: str,
    open_writer: OpenWriter,
    open_reader: Callable[[BinaryIO | pa.NativeFile], TableFile],
    *,
    maps: bool = False,
) -> ShardFormat:
    """Return the format of shards that are files of one kind."""
    writer = partial(TableWriter, suffix=suffix, open_file=open_writer)
    return ShardFormat(
        name=name,
        suffixes=(suffix,),
        max_document_tokens=MAX_DOCUMENT_TOKENS,
        writer=writer,
        reader=partial(TableReader, suffix=suffix, open_file=open_reader),
        check=partial(TableCheck, suffix=suffix),
        labelled_writer=writer,
        access=partial(TableAccess, suffix=suffix, open_file=open_reader, maps=maps),
    )


def native_file(stored: BinaryIO | pa.NativeFile) -> pa.NativeFile:
    """Return an open file as pyarrow reads it."""
    return stored if isinstance(stored, pa.NativeFile) else pa.PythonFile(stored, mode="r")


def _metadata(vocab_size: int, origin: ShardOrigin | None) -> dict[bytes, str]:
    values: dict[str, Any] = {"document": "row", "tokenizer": {"vocab_size": vocab_size}}
    if origin is not None:
        values["tokenizer"]["fingerprint"] = origin.fingerprint
        for name, frame in (("prepend", origin.prepend), ("append", origin.append)):
            tokens = [{"token": token, "id": token_id} for token, token_id in frame]
            values[name] = tokens if len(tokens) > 1 else tokens[0] if tokens else None
        if origin.sequence_length is not None:
            values["sequence_length"] = origin.sequence_length
        if origin.hashes:
            values["hashes"] = True
    return {METADATA_KEY: json.dumps(values, ensure_ascii=False, sort_keys=True)}


def _vocab_size_of(schema: pa.Schema) -> int:
    """Return the size of the vocabulary in the metadata of a schema, which must be a shard's."""
    metadata = schema.metadata or {}
    values = json.loads(metadata.get(METADATA_KEY, b"{}"))
    hashed = isinstance(values, dict) and values.get("hashes") is True
    columns = column_fields(_columns_of(schema))
    schemas = [
        pa.schema([*each, *columns])
        for each in ((HASHED_SCHEMA,) if hashed else (SCHEMA, SEQUENCES_SCHEMA))
    ]
    if schema.remove_metadata() not in schemas:
        found, expected = (
            ", ".join(f"{field.name}: {field.type}" for field in each)
            for each in (schema, schemas[0])
        )
        raise ValueError(f"the columns are {found}; expected {expected}")
    if METADATA_KEY not in metadata:
        raise ValueError(f"the schema's metadata lack {METADATA_KEY.decode()!r}")
    if values["document"] != "row":
        raise ValueError(f"a document is a {values['document']!r}; expected a row")
    return int(values["tokenizer"]["vocab_size"])


def _label_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns that are labels of the rows."""
    return [field for field in schema if field.name not in (IDS, LENGTH, *TRAINER_COLUMNS)]


def _columns_of(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns for trainers."""
    return tuple(name for name in TRAINER_COLUMNS if name in schema.names)


def _label(labels: pa.RecordBatch | None, field: pa.Field, rows: int) -> pa.Array:
    """Return a column of labels; nulls if nobody knows them."""
    names = [] if labels is None else labels.schema.names
    if labels is not None and labels.num_rows != rows:
        raise ValueError(f"labels must have {rows} rows, got {labels.num_rows}")
    if labels is not None and field.name in names:
        return _of_type(labels.column(field.name), field.type)
    if labels is not None and field.name == TEXT_BYTES and "text" in names:
        return pa.array(_value_sizes(labels.column("text")))
    return pa.nulls(rows, field.type)


def _label_bytes(column: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each label; 0 of numbers, which ROW_BYTES counts."""
    if pa.types.is_integer(column.type):
        return np.zeros(len(column), np.int64)
    return _value_sizes(column) * (4 if pa.types.is_list(column.type) else 1)


# Without pyarrow.compute, whose import takes as long as a small job: these are for writing.


def _value_sizes(column: pa.Array) -> NDArray[np.int64]:
    """Return the size of each string, in bytes, or list, in values; 0 of nulls."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    sizes = np.diff(_ends(column)).astype(np.int64)
    if column.null_count:
        sizes[[not value.is_valid for value in column]] = 0
    return sizes


def _of_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as another type, which is string or the type that it has, or close to it."""
    if column.type == kind:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), kind)
    if not pa.types.is_large_string(column.type) or not pa.types.is_string(kind):
        return column.cast(kind)
    ends = _ends(column)
    if column.null_count or ends[-1] - ends[0] > np.iinfo(np.int32).max:
        return column.cast(kind)
    data = column.buffers()[2] or pa.py_buffer(b"")
    data = data.slice(int(ends[0]), int(ends[-1] - ends[0]))
    offsets = pa.py_buffer((ends - ends[0]).astype(np.int32))
    return pa.Array.from_buffers(kind, len(column), [None, offsets, data])


def _ends(column: pa.Array) -> NDArray[Any]:
    """Return where the values of a column begin, and the end of the last; it is not empty."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_list(column.type)
    ends = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
    return ends[column.offset : column.offset + len(column) + 1]


def _without_nulls(array: pa.Array) -> pa.Array:
    array.validate(full=True)
    if array.null_count:
        raise ValueError("there is a null")
    return array


def _joined(parts: Iterator[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    found: Sequence[NDArray[Any]] = list(parts)
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype), *found])
