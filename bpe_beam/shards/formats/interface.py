"""The definition of a format of token shards: its files, a writer, a reader and a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from bpe_beam.shards.shard_rows import Shard
    from bpe_beam.shards.stored_shard import ShardAccess, StoredShard

MAX_DOCUMENT_TOKENS = 2**31 - 1  # maximum tokens of a document in a shard: lengths are int32


class ShardFiles(Struct, frozen=True):
    """One shard as it was written.

    `documents` counts empty ones, too; `files`, in the order of the format's suffixes, are empty if
    the shard has no token.
    """

    documents: int
    tokens: int
    files: tuple[FileInfo, ...]


class ShardOrigin(Struct, frozen=True):
    """The origin of the tokens of a shard, for formats that store it."""

    fingerprint: str  # the SHA-256 of the folder's `tokenizer.json`
    prepend: tuple[tuple[str, int], ...]  # the tokens before each document, each with its id
    append: tuple[tuple[str, int], ...]  # the tokens after each document, likewise
    # The maximum tokens of a row that is a sequence of documents; None: rows are documents.
    sequence_length: int | None = None
    # Whether rows are temporary documents that are still to be divided, each with the hash
    # that decides.
    hashes: bool = False
    # The columns for trainers that tables get, of TRAINER_COLUMNS and in their order.
    columns: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The noun for its rows, in the plural."""
        return "documents" if self.sequence_length is None else "sequences"


class ShardWriter(Protocol):
    """Writes one shard as a stream; a context manager.

    When the `with` block ends without an exception, the files become visible, each as a whole. When
    it ends with one, no reader takes the remaining files for a shard. A shard without tokens has no
    files. Equal documents give equal bytes.
    """

    def __enter__(self) -> ShardWriter: ...

    def __exit__(self, *exception: Any) -> None: ...

    def write_documents(
        self,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        labels: pa.RecordBatch | None = None,
    ) -> None:
        """Append documents.

        Args:
            ids: uint32[tokens], the ids of all documents one after the other.
            offsets: int64[documents + 1], the start of each document in `ids` and the end of the
                last; from 0 to `len(ids)`, never falling.
            labels: The columns `id`, `source` and `text` of BATCH_SCHEMA, a row a document, or
                `text_bytes`, int64, the size of the text, in place of it; of sequences
                `seq_lengths`, list<int32>, the tokens of each document in them. None if
                unknown. Most formats have no place for them.

        Raises:
            DataError: A document is too long, an id is not in the vocabulary, or storage fails.
            ValueError: The arrays do not belong together.
        """

    def result(self) -> ShardFiles:
        """Return what was written, after a `with` block that ended without an exception."""


class ShardReader(Protocol):
    """Reads one shard; `len` is its number of documents. A context manager."""

    token_count: int  # the number of ids in the shard

    def __enter__(self) -> ShardReader: ...

    def __exit__(self, *exception: Any) -> None: ...

    def __len__(self) -> int: ...

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        """Return int32[stop - start]: the numbers of tokens of documents.

        Args:
            start, stop: The first document, from 0, and the document after the last.

        Raises:
            DataError: A length is negative or cannot be read.
            IndexError: The range is not within the shard.
        """

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        """Return uint32[stop - start]: ids of the shard.

        Args:
            start, stop: The first token of the shard, from 0, and the token after the last.

        Raises:
            DataError: An id is negative or cannot be read.
            IndexError: The range is not within the shard.
        """

    def document(self, index: int) -> NDArray[np.uint32]:
        """Return uint32[tokens]: the ids of one document."""


class LabelledReader(ShardReader, Protocol):
    """Reads a shard of a format that stores labels."""

    columns: tuple[str, ...]  # the columns for trainers that it has

    def labels(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the labels of documents, a row each.

        Args:
            start, stop: The first document, from 0, and the document after the last.

        Raises:
            DataError: The labels cannot be read.
            IndexError: The range is not within the shard.
        """


class ShardCheck(Protocol):
    """Checks the bytes of one shard's files, while they are read for their hashes."""

    def add(self, suffix: str, block: bytes) -> None:
        """Check the next bytes of a file; files come in the format's order.

        Args:
            suffix: The end of the file's name.
            block: The bytes.
        """

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """Yield a sentence for each problem; `reader` is None if the shard cannot be opened."""


class ShardLimit(Struct, frozen=True):
    """The maximum size of a shard: its tokens, and `document_weight` for each document."""

    tokens: int
    document_weight: int = 0


class ShardFormat(Struct, frozen=True):
    """A format of token shards."""

    name: str  # what `--format` and manifests call it; also the name of its module
    # The ends of the names of a shard's files, in the order in which they become visible: one
    # or several.
    suffixes: tuple[str, ...]
    # Opens a writer: storage, URL of an existing folder, the shard's name without a suffix,
    # the size of the vocabulary, 1 to MAX_VOCAB_SIZE, and the origin of the tokens, a
    # ShardOrigin, or None if it is unknown.
    writer: Callable[..., ShardWriter]
    # Opens a reader and checks the layout: storage, URL of the folder, the shard's name.
    # Raises DataError if a file is missing or breaks the layout.
    reader: Callable[[Storage, str, str], ShardReader]
    # Opens a finished shard for reading at any position, without reading all of it.
    access: Callable[[StoredShard], ShardAccess]
    # Makes a check of a shard: its name, and the size of the vocabulary.
    check: Callable[[str, int], ShardCheck]
    max_document_tokens: int = MAX_DOCUMENT_TOKENS  # the maximum tokens that a document may have
    # Whether its readers recognize a document by its first token, so that the setting
    # `prepend` is required.
    needs_prepend: bool = False
    # Whether writers store labels and the origin of the tokens; readers are `LabelledReader`s
    # then.
    labelled: bool = False
    megatron_pairs: bool = False  # whether the shards are pairs that Megatron-LM reads
    # The maximum tokens that a shard may have; None: any number. Where documents have more,
    # another shard is begun.
    max_shard_tokens: int | None = None
    document_weight: int = 0  # what each document adds to the tokens that `max_shard_tokens` limits
    # Returns the content of a folder's `index.json`, which readers of the format need, from
    # the shards of its manifest. None if they need none.
    index: Callable[[Sequence[Shard]], bytes] | None = None


def limit_of(formats: Iterable[ShardFormat]) -> ShardLimit | None:
    """Return the limit of shards that are to fit each of some formats; None if all may be large."""
    limits = [
        (each.max_shard_tokens, each.document_weight)
        for each in formats
        if each.max_shard_tokens is not None
    ]
    if not limits:
        return None
    tokens, weights = zip(*limits, strict=True)
    return ShardLimit(min(tokens), max(weights))
