"""ArrayRecord shards: an `.array_record` with one record a document, read by its number.

A record is the tf.train.Example that TFRecord shards have, too. The package array-record, an extra,
writes and reads the files; with the options `group_size:1,uncompressed` its versions 0.5.1 to 0.8.6
write the same bytes. It opens local files only, so a file on its way to or from a store is in a
temporary file. (A writer of our own took 10 % less processor time of a whole `tokenize` job, for
1,200 lines.)
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards import stored_shard
from bpe_beam.shards.formats.record_file import RecordFile, RecordReader, record_format
from bpe_beam.shards.formats.spool import mapped_rows, spool_errors
from bpe_beam.shards.formats.tfrecord import MAX_TOKENS, ExampleWriter
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.names import is_local, local_path

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    from array_record.python import array_record_module as array_record
except ImportError as error:
    raise UsageError(
        f"the format arrayrecord needs the package array-record ({error}): "
        "pip install 'bpe-beam[arrayrecord]'"
    ) from error

_WRITER_OPTIONS = "group_size:1,uncompressed"

_READER_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
"""Without threads, which a forked process would lack."""

_WINDOW = 4 << 20  # about the bytes of Examples that are decoded at a time

_OPEN_FILE_BYTES = 1 << 20
"""The size of an open file among the values in memory of a data set: so few are open at a time."""


class ArrayRecordWriter(ExampleWriter):
    """A `ShardWriter`."""

    suffixes = (".array_record",)

    def __enter__(self) -> Self:
        with self._spooling():
            folder = self.files.enter_context(tempfile.TemporaryDirectory())
        self._path = Path(folder, "shard")
        with self._spooling():
            self._records = array_record.ArrayRecordWriter(str(self._path), _WRITER_OPTIONS)
        self.files.callback(self._close)
        return super().__enter__()

    def write_records(self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> None:
        data, ends = _native.examples(ids, offsets)
        examples = data.data
        with self._spooling():
            for start, end in pairwise((0, *ends.tolist())):
                self._records.write(examples[start:end].tobytes())

    def finish(self, *others: HashingFile) -> None:
        with self._spooling():
            self._records.close()
        with self._path.open("rb") as spool:
            shutil.copyfileobj(spool, self.file(), _WINDOW)

    def _close(self) -> None:
        if self._records.is_open():
            self._records.close()

    @contextmanager
    def _spooling(self) -> Iterator[None]:
        with spool_errors(f"the records of {self.name}", "the bytes of the shard"):
            try:
                yield
            except RuntimeError as error:  # the package's error of a full disk
                raise OSError(str(error)) from error


_SUFFIX = ArrayRecordWriter.suffixes[0]


class _OpenFile:
    """A file as the package reads it; of a store, a copy in a temporary file."""

    def __init__(self, file: stored_shard.RangeFile | stored_shard.ShardFile) -> None:
        self._copy = None if is_local(file.url) else _local_copy(file)
        path = local_path(file.url) if self._copy is None else self._copy.name
        self._url = file.url
        self._lock = Lock()
        with self._errors("the index"):
            self._reader = array_record.ArrayRecordReader(str(path), _READER_OPTIONS)
            if not self._reader.ok():
                raise ValueError("it is no ArrayRecord file")
            self.count: int = self._reader.num_records()

    def examples(self, first: int, stop: int) -> Iterator[list[bytes]]:
        """Yield records, in lists of about _WINDOW bytes."""
        while first < stop:
            examples, size = [], 0
            with self._lock, self._errors(f"record {first} or one of those that follow"):
                self._reader.seek(first)
                while first < stop and size < _WINDOW:
                    examples.append(self._reader.read())
                    size += len(examples[-1])
                    first += 1
            yield examples

    @contextmanager
    def _errors(self, content: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, IndexError) as error:
            raise DataError(f"{self._url}: {content} cannot be read: {error}") from error


def _local_copy(
    file: stored_shard.RangeFile | stored_shard.ShardFile,
) -> tempfile._TemporaryFileWrapper[bytes]:
    with spool_errors(f"a copy of {file.url}", f"{file.size} bytes"):
        copy = tempfile.NamedTemporaryFile()  # noqa: SIM115  (closed with the reader)
        for start in range(0, file.size, _WINDOW):
            copy.write(file.read(start, min(_WINDOW, file.size - start)))
        copy.flush()
    return copy


class _Records(RecordFile):
    """A `RecordFile`. `bounds` reads the whole file, once; nothing else does.

    `open_file` returns the open file, which its caller may close meanwhile.
    """

    def __init__(self, url: str, open_file: Callable[[], _OpenFile]) -> None:
        self.url = url
        self._open_file = open_file
        self._count = open_file().count

    def __len__(self) -> int:
        return self._count

    def ids(self, first: int, stop: int) -> NDArray[np.uint32]:
        return np.concatenate(
            [np.empty(0, np.uint32), *(ids for ids, _ in self.documents(first, stop))]
        )

    def documents(
        self, first: int, stop: int
    ) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yield ids of documents, and int64[documents], the tokens of each, in batches."""
        for examples in self._open_file().examples(first, stop):
            ends = np.cumsum([len(example) for example in examples], dtype=np.int64)
            ids, lengths = _native.read_examples(b"".join(examples), ends)
            first += lengths.size
            if lengths.size < ends.size:
                raise DataError(
                    f"{self.url}: record {first}: it is no Example with one list input_ids, as "
                    "this format has it"
                )
            yield ids, lengths

    @cached_property
    def bounds(self) -> NDArray[np.int64]:  # type: ignore[override]
        """See `RecordFile`."""
        content = f"the lengths of the documents of {self.url}"
        return mapped_rows(self._read_bounds(), 1, content)[:, 0]

    def _read_bounds(self) -> Iterator[NDArray[np.int64]]:
        tokens = 0
        yield np.zeros(1, np.int64)
        for _, lengths in self.documents(0, len(self)):
            yield tokens + np.cumsum(lengths)
            tokens += int(lengths.sum())


def _open_records(file: stored_shard.RangeFile | stored_shard.ShardFile) -> _Records:
    opened = _OpenFile(file)
    return _Records(file.url, lambda: opened)


class ArrayRecordAccess(RecordReader):
    """A `ShardAccess` that reads the records that are asked for.

    What needs to know where documents begin in the ids reads the whole file, once.
    """

    _records: _Records

    def __init__(self, shard: stored_shard.StoredShard) -> None:
        self._shard = shard
        super().__init__(_Records(shard.file(_SUFFIX).url, self._recent_file))
        stored_shard.check_counts(self._records.url, len(self._records), shard.entry.tokens, shard)

    def _recent_file(self) -> _OpenFile:
        """Return the open file, which stays open while it is among the values in memory."""
        file: _OpenFile | None = self._shard.groups.get(self)
        if file is None:
            file = _OpenFile(self._shard.file(_SUFFIX))
            self._shard.groups.put(self, file, _OPEN_FILE_BYTES)
        return file

    def documents(
        self, start: int, stop: int, limit: int, dtype: stored_shard.IdType
    ) -> Sequence[stored_shard.Ids]:
        """See `ShardAccess.documents`; reads records of about _WINDOW bytes."""
        ids, lengths = next(self._records.documents(start, stop))
        count = max(int(np.searchsorted(np.cumsum(lengths), limit, side="right")), 1)
        documents = np.split(ids, np.cumsum(lengths)[:-1])[:count]
        return [document.astype(dtype) for document in documents]


FORMAT = record_format(
    "arrayrecord", ArrayRecordWriter, _open_records, MAX_TOKENS, access=ArrayRecordAccess
)
