"""Writing shards that are one file each: what such formats share."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats.batch_writer import BatchWriter, fitting_dtype
from bpe_beam.shards.formats.interface import ShardFiles
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile

if TYPE_CHECKING:
    pass


class OneFileWriter(BatchWriter):
    """The base of such `ShardWriter`s. A subclass writes the documents to the file.

    `files` has the file and what a subclass opens over it; an exception gives them up.
    """

    def __init__(
        self, storage: Storage, folder: str, name: str, vocab_size: int, *, suffix: str
    ) -> None:
        super().__init__(name, vocab_size)
        fitting_dtype(vocab_size, (np.dtype(np.int32),))
        self.files = ExitStack()
        self._storage = storage
        self._file_name = name + suffix
        self._url = storage.join(folder, self._file_name)
        self._file: HashingFile | None = None

    def finish(self) -> None:
        """Write the end of a shard with tokens; nothing unless overridden."""
        return

    def file(self) -> HashingFile:
        """Return the open file; it is opened at the first call."""
        if self._file is None:
            self._file = HashingFile(self.files.enter_context(self._storage.create(self._url)))
        return self._file

    def end(self, *exception: Any) -> ShardFiles | None:
        """See `BatchWriter.end`."""
        if exception[0] is not None:
            self.files.__exit__(*exception)
            return None
        if not self.tokens:
            # A file with empty documents only never becomes visible.
            with contextlib.suppress(_NoTokensError), self.files:
                raise _NoTokensError
            return ShardFiles(self.documents, 0, ())
        with self.files:
            self.check_whole()
            self.finish()
        info = FileInfo.written(self._file_name, self.file())
        return ShardFiles(self.documents, self.tokens, (info,))


class _NoTokensError(Exception):
    """A shard without tokens is not to be written."""
