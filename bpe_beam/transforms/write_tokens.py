"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so a hash of a document's ids decides its shard and its
position there. Equal documents give equal bytes on every runner, whatever the order in which they
arrive and however often they are retried.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.create_elements import CreateElements
from bpe_beam.transforms.elements import TOKENS, fields_of, is_batch, without_key
from bpe_beam.workers import metric_names
from bpe_beam.workers.split_task import require_visible

_THREADS = 16
_MAX_SHARDS = 100_000

CHUNK_TOKENS = 240_000
"""Ids of a chunk of a document: at four bytes each, under 1 MB."""


Chunk = tuple[bytes, int, bytes]
"""A chunk of a document: a hash of the document's ids, the number of the chunk in the document, and
the ids of the chunk, little-endian uint32. A chunk without a hash has the final number and name of
its shard instead, or no name, which only makes sure that the shard has an element."""


Tokens: TypeAlias = Any
"""An output of `Tokenize`: a document's ids, a dict or row with a field `tokens`, a batch or table
with a column `tokens`; with or without a key."""

_LOST = "WriteTokens: the runner lost a part of the tokens, or delivered it twice; run it again"


@beam.typehints.with_output_types(str)
class WriteTokens(beam.PTransform):
    """Writes tokenized documents as a folder of shards that trainers read.

    Takes every output of `Tokenize`: `pyarrow.UInt32Array`s, one a document; dicts or rows with a
    list of ids in the field `tokens`; Arrow batches or tables with a column `tokens`; and any of
    them with a key, which is dropped. Writes at most `shards` shards, the tokenizer, and
    finally a manifest, so that `bpe-beam verify` can check the folder. For bounded input in the
    global window. The worker of a shard keeps about 50 bytes a document in memory, and the ids in a
    local temporary file. The output is the manifest's URL.

    The hash of a document decides its shard. A shard without tokens is not written, and the others
    are numbered without gaps. Without any token the manifest lists no shards.

    Args:
        folder: An empty or new folder.
        tokenizer: The tokenizer that made the ids.
        shards: The most shards to write, from 1 to 100,000.
        storage: The storage client.

    Raises:
        UsageError: An argument out of its range, a folder that is not empty, or input that is
            unbounded or in windows.
    """

    def __init__(
        self, folder: str, tokenizer: Tokenizer, *, shards: int = 1, storage: Storage | None = None
    ) -> None:
        super().__init__()
        if not 1 <= shards <= _MAX_SHARDS:
            raise UsageError(f"shards must be from 1 to {_MAX_SHARDS:,}, got {shards}")
        self.folder = absolute(folder)
        self.tokenizer = tokenizer
        self.shards = shards
        self.storage = storage or Storage()
        if self.storage.list_names(folder):
            raise UsageError(f"folder must be empty or new, got {folder}, which has files")

    def expand(self, tokens: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the URL of the manifest."""
        if tokens.element_type in (str, bytes, int):
            raise UsageError(
                "WriteTokens: an element must be an output of Tokenize, such as a "
                f"pyarrow.UInt32Array, got {tokens.element_type.__name__}"
            )
        if not tokens.is_bounded or not isinstance(tokens.windowing.windowfn, GlobalWindows):
            raise UsageError(
                "WriteTokens needs bounded input in the global window, since it writes a folder "
                "when all documents have arrived; for new files over time use bpe-beam "
                "stream-tokenize"
            )
        self.storage.make_folder(self.folder)
        target = _Target(self.storage, self.folder, self.shards, self.tokenizer.to_json())
        chunks = tokens | "SplitToChunks" >> beam.ParDo(_SplitToChunks(self.shards))
        # An empty chunk for each shard: each shard has a row, and there is at least one key.
        openers = tokens.pipeline | "Shards" >> CreateElements(
            [(shard, (b"", 0, b"")) for shard in range(self.shards)], tuple[int, Chunk]
        )
        names = (
            chunks
            | "WithTokens" >> beam.ParDo(_ShardsWithTokens())
            | "EachOnce" >> beam.GroupByKey()
            | "UnderOneKey" >> beam.ParDo(_UnderOneKey())
            | "GatherNumbers" >> beam.GroupByKey()
            | "NameShards" >> beam.ParDo(_NameShards())
        )
        return (
            (chunks, openers, names)
            | "WithOpeners" >> beam.Flatten().with_output_types(tuple[int, Chunk])
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShard" >> beam.ParDo(_WriteShard(target))
            # Not as a side input, which Dataflow gives a coder of its own, a pickling one.
            | "GatherRows" >> beam.GroupByKey()
            | "WriteManifest" >> beam.ParDo(_WriteManifest(target))
        )


def _digest(ids: bytes) -> bytes:
    """Return a hash that identifies a document, and by which documents are ordered."""
    return hashlib.blake2b(ids, digest_size=16).digest()


class _Target(NamedTuple):
    """The folder of the shards, and their tokenizer."""

    storage: Storage
    folder: str
    shards: int
    tokenizer_json: str

    @property
    def vocab_size(self) -> int:
        """One more than the greatest id."""
        return Tokenizer.from_json(self.tokenizer_json).max_id + 1


@beam.typehints.with_input_types(Tokens)
@beam.typehints.with_output_types(tuple[int, Chunk])
class _SplitToChunks(beam.DoFn):
    """Documents to (shard, chunk)."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def process(self, element: Tokens) -> Iterator[tuple[int, Chunk]]:
        """Split one document, or each document of a batch."""
        for document in _ids_of(element):
            ids = document.to_numpy().astype("<u4", copy=False)
            digest = _digest(ids.tobytes())
            shard = int.from_bytes(digest[:8], "big") * self.shards >> 64
            for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
                yield shard, (digest, number, ids[start : start + CHUNK_TOKENS].tobytes())


def _ids_of(element: Tokens) -> list[pa.UInt32Array]:
    """Return the ids of each document.

    Raises:
        DataError: The element has no ids. Beam does not know the types of all elements beforehand.
    """
    value = without_key(element)
    fields = None if is_batch(value) else fields_of(value)
    documents = [value]
    if is_batch(value) or fields is not None:
        names = value.schema.names if fields is None else list(fields)
        if TOKENS not in names:
            what = "batch has no column" if fields is None else "document has no field"
            raise DataError(f"WriteTokens: a {what} {TOKENS!r}, only {', '.join(map(str, names))}")
        if fields is None:
            documents = [getattr(row, "values", row) for row in value.column(TOKENS)]
        else:
            documents = [_ids_in_list(fields[TOKENS])]
    for document in documents:
        if not isinstance(document, pa.UInt32Array):
            raise DataError(
                "WriteTokens: the ids of a document must be a pyarrow.UInt32Array, got "
                f"{type(document).__name__}"
            )
    return documents


def _ids_in_list(ids: Any) -> Any:
    """Return the list of ids of a dict or row as an array; anything else unchanged."""
    if not isinstance(ids, list):
        return ids
    try:
        return pa.array(ids, pa.uint32())
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(f"WriteTokens: a document has invalid ids: {error}") from error


@beam.typehints.with_input_types(tuple[int, Chunk])
@beam.typehints.with_output_types(tuple[int, int])
class _ShardsWithTokens(beam.DoFn):
    """Chunks to the numbers of the shards with tokens, as keys; each number once a bundle."""

    def start_bundle(self) -> None:
        """Begin without shards."""
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        """Return the number of the chunk's shard, if it is new."""
        shard, (_, _, ids) = element
        if ids and shard not in self.seen:
            self.seen.add(shard)
            yield shard, 0


@beam.typehints.with_input_types(tuple[int, Iterable[int]])
@beam.typehints.with_output_types(tuple[int, int])
class _UnderOneKey(beam.DoFn):
    """Numbers of shards to the same numbers under one key."""

    def process(self, element: tuple[int, Iterable[int]]) -> Iterator[tuple[int, int]]:
        """Return the number under the key 0."""
        yield 0, element[0]


@beam.typehints.with_input_types(tuple[int, Iterable[int]])
@beam.typehints.with_output_types(tuple[int, Chunk])
class _NameShards(beam.DoFn):
    """The numbers of shards with tokens to their final names, which are numbered without gaps."""

    def process(self, element: tuple[int, Iterable[int]]) -> Iterator[tuple[int, Chunk]]:
        """Return a name for each shard, in their order."""
        numbers = sorted(set(element[1]))
        for index, shard in enumerate(numbers):
            yield shard, (b"", index, shard_name(index, len(numbers)).encode())


class _StoredChunk(NamedTuple):
    """A chunk in the temporary file: its document's hash, its number, and its bytes there."""

    document: bytes
    number: int
    offset: int
    size: int


class _ShardRow(NamedTuple):
    """A shard that a worker wrote, or that got no tokens, for the manifest.

    Attributes:
        number: The number of the shard among those asked for.
        name: The final name of the shard.
        documents: Number of documents.
        tokens: Number of tokens.
        files: Name, bytes and SHA-256 of each file.
    """

    number: int
    name: str
    documents: int
    tokens: int
    files: list[tuple[str, int, str]]

    def to_json(self) -> str:
        """Return the row as text that `from_json` reads."""
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> _ShardRow:
        """Return the row that `to_json` wrote."""
        return cls(*json.loads(text))

    @property
    def shard(self) -> Shard:
        """The shard in the manifest."""
        return Shard(
            name=self.name,
            files=tuple(FileInfo(*file) for file in self.files),
            tokens=self.tokens,
            split=self.number,
            slices=(),
            documents=self.documents,
            text_bytes=0,
            rejects=0,
        )

    @property
    def without_tokens(self) -> TokenlessSplit:
        """The shard without tokens in the manifest."""
        return TokenlessSplit(
            split=self.number, slices=(), documents=self.documents, text_bytes=0, rejects=0
        )


@beam.typehints.with_input_types(tuple[int, Iterable[Chunk]])
@beam.typehints.with_output_types(tuple[int, str])
class _WriteShard(beam.DoFn):
    """A shard's chunks to its files, and a row for the manifest under one key."""

    def __init__(self, target: _Target) -> None:
        self.target = target

    def process(self, element: tuple[int, Iterable[Chunk]]) -> Iterator[tuple[int, str]]:
        """Write one shard, with its documents in the order of their hashes."""
        shard, chunks = element
        target = self.target
        names: set[str] = set()
        require_visible(target.storage, target.folder)
        with tempfile.TemporaryFile() as spool:
            stored: list[_StoredChunk] = []
            for document, number, ids in chunks:
                if not document and ids:
                    names.add(ids.decode())
                elif document:
                    stored.append(_StoredChunk(document, number, spool.tell(), len(ids)))
                    spool.write(ids)
            stored.sort()
            if len(names) != any(chunk.size for chunk in stored):
                raise DataError(_LOST)
            name = min(names, default=f"shard {shard} without tokens")
            format_ = shard_format(DEFAULT_SHARD_FORMAT)
            with format_.writer(target.storage, target.folder, name, target.vocab_size) as writer:
                for document_chunks in _documents(stored):
                    read = []
                    for chunk in document_chunks:
                        spool.seek(chunk.offset)
                        read.append(spool.read(chunk.size))
                    ids = b"".join(read)
                    if _digest(ids) != document_chunks[0].document:
                        raise DataError(_LOST)
                    tokens = np.frombuffer(ids, "<u4").astype(np.uint32, copy=False)
                    writer.write_documents(tokens, np.array([0, len(tokens)], np.int64))
        files = writer.result()
        counters.counter(metric_names.DOCUMENTS_WRITTEN).inc(files.documents)
        counters.counter(metric_names.TOKENS_WRITTEN).inc(files.tokens)
        row = _ShardRow(
            shard,
            name,
            files.documents,
            files.tokens,
            [(file.name, file.bytes, file.sha256) for file in files.files],
        )
        yield 0, row.to_json()


def _documents(chunks: list[_StoredChunk]) -> Iterator[list[_StoredChunk]]:
    """Yield the chunks of each document; equal documents have as many copies of each chunk.

    Args:
        chunks: The chunks, sorted.

    Raises:
        DataError: The copies of equal documents have different chunks.
    """
    start = 0
    while start < len(chunks):
        end = start
        while end < len(chunks) and chunks[end].document == chunks[start].document:
            end += 1
        equal = chunks[start:end]
        copies = sum(chunk.number == 0 for chunk in equal)
        if copies == 0 or len(equal) % copies:
            raise DataError(_LOST)
        for copy in range(copies):
            yield equal[copy::copies]
        start = end


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _WriteManifest(beam.DoFn):
    """All rows to the manifest, which completes the folder."""

    def __init__(self, target: _Target) -> None:
        self.target = target

    def process(self, element: tuple[int, Iterable[str]]) -> Iterator[str]:
        """Write the tokenizer and the manifest."""
        storage, folder = self.target.storage, self.target.folder
        rows = sorted(map(_ShardRow.from_json, element[1]))
        if [row.number for row in rows] != list(range(self.target.shards)):
            raise DataError(_LOST)
        shards = tuple(row.shard for row in rows if row.tokens)
        tokenless = tuple(row.without_tokens for row in rows if not row.tokens)
        if [shard.name for shard in shards] != [
            shard_name(index, len(shards)) for index in range(len(shards))
        ]:
            raise DataError(_LOST)
        _check_files(storage, folder, [file for shard in shards for file in shard.files])
        data = self.target.tokenizer_json.encode()
        storage.write_bytes(storage.join(folder, TOKENIZER_FILE), data)
        manifest = Manifest(
            format=DEFAULT_SHARD_FORMAT,
            tokenizer=hashlib.sha256(data).hexdigest(),
            vocab_size=self.target.vocab_size,
            settings={"append": None, "prepend": None, "allowed_special": "none"},
            plan={},
            plan_fingerprint=hashlib.sha256(b"{}").hexdigest(),
            shards=shards,
            totals=Totals.of(shards, tokenless),
            reject_reasons={},
            reject_files=(),
            tokenless=tokenless,
        )
        url = storage.join(folder, MANIFEST_FILE)
        storage.sync_folders(folder)
        storage.write_bytes(url, manifest.to_bytes())
        storage.sync_folders(folder)
        yield url


def _check_files(storage: Storage, folder: str, files: Sequence[FileInfo]) -> None:
    """Check that the files of all shards exist, before the manifest lists them.

    Raises:
        DataError: A file does not exist, or has another size.
    """

    def check(file: FileInfo) -> None:
        if storage.size(storage.join(folder, file.name)) != file.bytes:
            raise DataError(f"{storage.join(folder, file.name)}: changed after it was written")

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, files))
