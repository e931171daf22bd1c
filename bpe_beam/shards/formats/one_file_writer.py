"""Writing shards that are one file each: what such formats share."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.id_stream import check_batch, fitting_dtype
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self


class OneFileWriter(ABC):
    """The base of such `ShardWriter`s. A subclass writes the documents to the file.

    Attributes:
        name: The shard's name.
        vocab_size: One more than the greatest id.
        documents: The number of documents before the batch that is written.
        files: What is closed at the end, or given up after an exception: the file, and what a
            subclass opens over it.
    """

    def __init__(
        self, storage: Storage, folder: str, name: str, vocab_size: int, *, suffix: str
    ) -> None:
        fitting_dtype(vocab_size, (np.dtype(np.int32),))
        self.name = name
        self.documents = 0
        self.files = ExitStack()
        self._storage = storage
        self._file_name = name + suffix
        self._url = storage.join(folder, self._file_name)
        self.vocab_size = vocab_size
        self._file: HashingFile | None = None
        self._tokens = 0
        self._open = False
        # False while a batch is half written: a caller that swallows the error gets no shard.
        self._whole = True
        self._result: ShardFiles | None = None

    @abstractmethod
    def add(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None,
    ) -> None:
        """Write documents that were checked."""

    def finish(self) -> None:
        """Write the end of a shard with tokens; nothing unless overridden."""
        return

    def file(self) -> HashingFile:
        """Return the open file; it is opened at the first call."""
        if self._file is None:
            self._file = HashingFile(self.files.enter_context(self._storage.create(self._url)))
        return self._file

    def __enter__(self) -> Self:
        self._open = True
        return self

    def write_documents(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None = None,
    ) -> None:
        """See `ShardWriter.write_documents`."""
        if not self._open:
            raise ValueError("write_documents must be called in the writer's with block")
        check_batch(ids, offsets, self.name, self.documents, self.vocab_size)
        self._whole = False
        self.add(ids, offsets, labels)
        self.documents += offsets.size - 1
        self._tokens += ids.size
        self._whole = True

    def result(self) -> ShardFiles:
        """See `ShardWriter.result`."""
        if self._result is None:
            raise ValueError(f"{self.name} is not written: its with block has not ended well")
        return self._result

    def __exit__(self, *exception: Any) -> None:
        self._open = False
        if exception[0] is not None:
            self.files.__exit__(*exception)
            return
        if not self._tokens:
            # What was written of empty documents never becomes visible.
            with contextlib.suppress(_NoTokensError), self.files:
                raise _NoTokensError
            self._result = ShardFiles(self.documents, 0, ())
            return
        with self.files:
            if not self._whole:
                raise DataError(f"{self.name}: writing a batch of documents failed before")
            self.finish()
        info = FileInfo.written(self._file_name, self.file())
        self._result = ShardFiles(self.documents, self._tokens, (info,))


class _NoTokensError(Exception):
    """A shard without tokens is not to be written."""
