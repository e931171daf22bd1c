"""Writing shards batch by batch: what the writers of all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.document_batches import DocumentBatch
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS, ShardFiles, ShardOrigin
from bpe_beam.shards.formats.spool import Spool
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self


class BatchWriter(ABC):
    """The base of `ShardWriter`s. A subclass writes checked batches to the shard's files.

    The files become visible in the order of `suffixes`. After an exception, one remains only if a
    later file could not be published: an attempt never removes a file that another attempt may
    have published.
    """

    suffixes: tuple[str, ...]  # the ends of the files' names
    # The types of stored ids, see `fitting_dtype`.
    dtypes: ClassVar[tuple[np.dtype[Any], ...]] = (np.dtype("<i4"),)

    def __init__(
        self,
        storage: Storage,
        folder: str,
        name: str,
        vocab_size: int,
        origin: ShardOrigin | None = None,
    ) -> None:
        self.name = name
        self.vocab_size = vocab_size
        self.dtype = self.dtype_for(vocab_size)
        self.documents = 0  # without the batch that is written, as `tokens`
        self.tokens = 0
        # The first file, and what a subclass opens over it; an exception gives them up.
        self.files = ExitStack()
        self._spools = ExitStack()
        self._storage = storage
        self._urls = [storage.join(folder, name + suffix) for suffix in self.suffixes]
        self._file: HashingFile | None = None
        self._open = False
        # False while a batch is half written: a caller that swallows the error gets no shard.
        self._whole = True
        self._result: ShardFiles | None = None

    @classmethod
    def dtype_for(cls, vocab_size: int) -> np.dtype[Any]:
        """Return the type of stored ids for a vocabulary: the narrowest, unless overridden."""
        return fitting_dtype(vocab_size, cls.dtypes)

    @abstractmethod
    def add(self, batch: DocumentBatch) -> None:
        """Write documents that were checked."""

    def finish(self, *others: HashingFile) -> None:
        """Write the end of the first file of a shard with tokens, and the other files.

        Nothing unless overridden: one file may need no end.
        """
        return

    def check(self, batch: DocumentBatch) -> None:
        """Refuse a batch that cannot be written, before any of it is."""
        ids, offsets, _ = batch
        if ids.dtype != np.uint32 or ids.ndim != 1:
            raise ValueError(f"ids must be uint32[tokens], got {ids.dtype} of shape {ids.shape}")
        if offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
            got = f"{offsets.dtype} of shape {offsets.shape}"
            raise ValueError(f"offsets must be int64[documents + 1], got {got}")
        if offsets[0] != 0 or offsets[-1] != ids.size or np.any(offsets[1:] < offsets[:-1]):
            raise ValueError(f"offsets must rise from 0 to the number of ids, {ids.size}")
        check_lengths(np.diff(offsets), self.name, self.documents, MAX_DOCUMENT_TOKENS)
        if ids.size and int(ids.max()) >= self.vocab_size:
            token = int(np.argmax(ids >= self.vocab_size))
            document = int(np.searchsorted(offsets, token, side="right")) - 1
            raise DataError(
                f"{self.name}: document {self.documents + document}, token "
                f"{token - int(offsets[document])}: id {int(ids[token])} is not in the vocabulary; "
                f"allowed are 0 to {self.vocab_size - 1}"
            )

    def file(self) -> HashingFile:
        """Return the first file; it is opened at the first call."""
        if self._file is None:
            self._file = HashingFile(self.files.enter_context(self._storage.create(self._urls[0])))
        return self._file

    def spool(self, content: str, size: str) -> Spool:
        """Return a new temporary file, which is closed with the writer; see `spool_errors`."""
        return self._spools.enter_context(Spool(f"{content} of {self.name}", size))

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open = False
        with self._spools:
            if exception[0] is not None:
                self.files.__exit__(*exception)
                return
            files: tuple[FileInfo, ...] = ()
            with suppress(_NoTokensError), self.files:
                if not self._whole:
                    raise DataError(f"{self.name}: writing a batch of documents failed before")
                if not self.tokens:
                    # A file with empty documents only never becomes visible.
                    raise _NoTokensError
                files = self._publish()
            self._result = ShardFiles(self.documents, self.tokens, files)

    def write_documents(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None = None,
    ) -> None:
        """See `ShardWriter.write_documents`."""
        if not self._open:
            raise ValueError("write_documents must be called in the writer's with block")
        batch = DocumentBatch(ids, offsets, labels)
        self.check(batch)
        self._whole = False
        self.add(batch)
        self.documents += offsets.size - 1
        self.tokens += ids.size
        self._whole = True

    def result(self) -> ShardFiles:
        """See `ShardWriter.result`."""
        if self._result is None:
            raise ValueError(f"{self.name} is not written: its with block has not ended well")
        return self._result

    def _publish(self) -> tuple[FileInfo, ...]:
        with ExitStack() as stack:
            # Closed in the opposite order, so that the last file becomes visible last.
            opened = [
                stack.enter_context(self._storage.create(url)) for url in reversed(self._urls[1:])
            ]
            opened.reverse()
            others = [HashingFile(file) for file in opened]
            self.finish(*others)
            for file in opened:
                file.flush()
            # Each file is complete under its attempt's name: only renames can fail now. A reader
            # that sees the last file sees all. If a rename fails, the earlier files stay: another
            # attempt at the same shard may have published them.
            self.files.pop_all().close()
        return tuple(
            FileInfo.written(self.name + suffix, file)
            for suffix, file in zip(self.suffixes, [self.file(), *others], strict=True)
        )


class _NoTokensError(Exception):
    """A shard without tokens is not to be written."""


def fitting_dtype(vocab_size: int, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type of stored ids: the first that holds every id of the vocabulary."""
    if not 1 <= vocab_size <= MAX_VOCAB_SIZE:
        raise UsageError(
            f"vocab_size must be 1 to {MAX_VOCAB_SIZE} for token shards, got {vocab_size}"
        )
    return next(dtype for dtype in dtypes if vocab_size - 1 <= np.iinfo(dtype).max)


def check_lengths(lengths: NDArray[np.int64], shard: str, first: int, maximum: int) -> None:
    """Refuse documents with more tokens than a format allows; `first` is the first document."""
    if lengths.max(initial=0) > maximum:
        document = int(np.argmax(lengths > maximum))
        raise DataError(
            f"{shard}: document {first + document} has {int(lengths[document])} tokens; the format "
            f"allows at most {maximum} a document: divide the document"
        )


def full_shard(shard: str, limit: str) -> DataError:
    """Return the error of a shard that has more than the limit of its format."""
    return DataError(
        f"{shard}: has more than {limit}",
        remedy="make {range_bytes} smaller, or {shard_tokens} where documents are arranged;"
        " divide input files that one worker must read as a whole; or tokenize to another "
        "format and convert that to more {shards}",
    )
