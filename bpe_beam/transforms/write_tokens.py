"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so a hash of a document's ids decides its shard and its
position there: equal documents give equal bytes, in whatever order they arrive.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, Any, NamedTuple, TypeAlias

import apache_beam as beam
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from bpe_beam import json_structs
from bpe_beam.errors import DataError, UsageError, require, require_between, require_choice
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS, shard_format
from bpe_beam.shards.manifest import (
    NO_PLAN,
    VERSION,
    Manifest,
    Rejects,
    TokenizerInfo,
    write_index,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.storage import PathName, Storage, path_name
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.elements import TOKENS, fields_of, is_batch, without_key
from bpe_beam.transforms.spread_tasks import CreateElements
from bpe_beam.workers import metric_names
from bpe_beam.workers.split_task import require_visible

_MAX_SHARDS = 100_000

CHUNK_TOKENS = 240_000
"""Ids of a chunk of a document: at four bytes each, under 1 MB."""


Chunk = tuple[bytes, int, bytes]
"""A chunk of a document: a hash of the document's ids, the number of the chunk in the document, and
the ids of the chunk, little-endian uint32. A chunk without a hash has the final name of its shard
instead, or no name for a shard without tokens; each shard has one."""


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
        format: The format of the shards, one of SHARD_FORMATS. The readers of `llmc` know a
            document by the end-of-text token, with which each must begin.

    Raises:
        UsageError: An argument out of its range, a folder that is not empty, or input that is
            unbounded or in windows.
    """

    def __init__(
        self,
        folder: PathName,
        tokenizer: Tokenizer,
        *,
        shards: int = 1,
        storage: Storage | None = None,
        format: str = DEFAULT_SHARD_FORMAT,
    ) -> None:
        super().__init__()
        require_choice("format", format, SHARD_FORMATS)
        require_between("shards", shards, 1, _MAX_SHARDS)
        folder = path_name(folder, "folder")
        self.folder = absolute(folder)
        self.tokenizer = tokenizer
        self.shards = shards
        self.format = format
        self.storage = storage or Storage()
        is_empty = not self.storage.list_names(folder)
        require(is_empty, f"must be empty or new, got {folder}, which has files", "folder")

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
        target = _Target(
            self.storage, self.folder, self.shards, self.tokenizer.to_json(), self.format
        )
        split = beam.FlatMap(_to_chunks, self.shards).with_output_types(tuple[int, Chunk])
        chunks = tokens | "SplitToChunks" >> split
        # A number that is no shard's: there is at least one element to gather.
        begin = tokens.pipeline | "Begin" >> CreateElements([(0, -1)], tuple[int, int])
        names = (
            (chunks | "WithTokens" >> beam.ParDo(_ShardsWithTokens()), begin)
            | "WithBegin" >> beam.Flatten().with_output_types(tuple[int, int])
            | "GatherNumbers" >> beam.GroupByKey()
            | "NameShards"
            >> beam.FlatMap(_name_shards, self.shards).with_output_types(tuple[int, Chunk])
        )
        return (
            (chunks, names)
            | "WithNames" >> beam.Flatten().with_output_types(tuple[int, Chunk])
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.FlatMap(_write_shard, target).with_output_types(tuple[int, bytes])
            # Not as a side input, which Dataflow gives a coder of its own, a pickling one.
            | "GatherRows" >> beam.GroupByKey()
            | "WriteManifest" >> beam.FlatMap(_write_manifest, target).with_output_types(str)
        )


def _digest(ids: bytes) -> bytes:
    """Return a hash that identifies a document, and by which documents are ordered."""
    return hashlib.blake2b(ids, digest_size=16).digest()


class _Target(NamedTuple):
    """The folder of the shards, their tokenizer and their format."""

    storage: Storage
    folder: str
    shards: int
    tokenizer_json: str
    format: str = DEFAULT_SHARD_FORMAT

    @property
    def vocab_size(self) -> int:
        """One more than the greatest id."""
        return Tokenizer.from_json(self.tokenizer_json).max_id + 1


def _to_chunks(element: Tokens, shards: int) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of one document, or of each document of a batch, with their shards."""
    for document in _ids_of(element):
        ids = document.to_numpy().astype("<u4", copy=False)
        digest = _digest(ids.tobytes())
        shard = int.from_bytes(digest[:8], "big") * shards >> 64
        for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
            yield shard, (digest, number, ids[start : start + CHUNK_TOKENS].tobytes())


def _ids_of(element: Tokens) -> list[pa.UInt32Array]:
    """Return the ids of each document; Beam does not know the types of all elements beforehand."""
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
    """Chunks to the numbers of the shards with tokens, under one key; each number once a bundle."""

    def start_bundle(self) -> None:
        """Begin without shards."""
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        """Yield the number of the chunk's shard, if it is new."""
        shard, (_, _, ids) = element
        if ids and shard not in self.seen:
            self.seen.add(shard)
            yield 0, shard


def _name_shards(element: tuple[int, Iterable[int]], shards: int) -> Iterator[tuple[int, Chunk]]:
    """Yield the final names of shards, numbered without gaps; none for a shard without tokens."""
    with_tokens = sorted(set(element[1]) - {-1})
    names = {shard: shard_name(index, len(with_tokens)) for index, shard in enumerate(with_tokens)}
    for shard in range(shards):
        yield shard, (b"", 0, names.get(shard, "").encode())


class _StoredChunk(NamedTuple):
    """A chunk in the temporary file: its document's hash, its number, and its bytes there."""

    document: bytes
    number: int
    offset: int
    size: int


def _write_shard(
    element: tuple[int, Iterable[Chunk]], target: _Target
) -> Iterator[tuple[int, bytes]]:
    """Write one shard, its documents in the order of their hashes; yield its row under one key."""
    number, chunks = element
    require_visible(target.storage, target.folder)
    with tempfile.TemporaryFile() as spool:
        names: set[str] = set()
        stored: list[_StoredChunk] = []
        for document, position, ids in chunks:
            if document:
                stored.append(_StoredChunk(document, position, spool.tell(), len(ids)))
                spool.write(ids)
            else:
                names.add(ids.decode())
        stored.sort()
        name = names.pop() if len(names) == 1 else None
        if name is None or bool(name) != any(chunk.size for chunk in stored):
            raise DataError(_LOST)
        format_ = shard_format(target.format)
        # Without tokens no file is made.
        name = name or f"shard {number} without tokens"
        with format_.writer(target.storage, target.folder, name, target.vocab_size) as writer:
            for tokens in _documents(spool, stored):
                writer.write_documents(tokens, np.array([0, len(tokens)], np.int64))
    files = writer.result()
    counters.counter(metric_names.DOCUMENTS_WRITTEN).inc(files.documents)
    counters.counter(metric_names.TOKENS_WRITTEN).inc(files.tokens)
    shard = Shard(
        name=name,
        split=number,
        slices=(),
        documents=files.documents,
        text_bytes=0,
        tokens=files.tokens,
        rejects=0,
        files=tuple(files.files),
    )
    yield 0, msgspec.json.encode(shard)


def _documents(spool: IO[bytes], chunks: list[_StoredChunk]) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the ids of each document, of sorted chunks.

    Equal documents have as many copies of each chunk.
    """
    for document, equal in groupby(chunks, key=lambda chunk: chunk.document):
        copied = list(equal)
        copies = sum(chunk.number == 0 for chunk in copied)
        if copies == 0 or len(copied) % copies:
            raise DataError(_LOST)
        for copy in range(copies):
            ids = b"".join(_read(spool, chunk) for chunk in copied[copy::copies])
            if _digest(ids) != document:
                raise DataError(_LOST)
            yield np.frombuffer(ids, "<u4").astype(np.uint32, copy=False)


def _read(spool: IO[bytes], chunk: _StoredChunk) -> bytes:
    spool.seek(chunk.offset)
    return spool.read(chunk.size)


def _write_manifest(element: tuple[int, Iterable[bytes]], target: _Target) -> Iterator[str]:
    """Write the tokenizer and, of all rows, the manifest, which completes the folder."""
    storage, folder = target.storage, target.folder
    rows = [json_structs.decode(row, Shard) for row in element[1]]
    rows.sort(key=lambda row: row.split)
    shards = tuple(row for row in rows if row.tokens)
    names = [shard_name(index, len(shards)) for index in range(len(shards))]
    numbers = [row.split for row in rows]
    if numbers != list(range(target.shards)) or [row.name for row in shards] != names:
        raise DataError(_LOST)
    tokenless = tuple(
        TokenlessSplit(row.split, slices=(), documents=row.documents, text_bytes=0, rejects=0)
        for row in rows
        if not row.tokens
    )
    files = [(storage.join(folder, f.name), f.bytes) for shard in shards for f in shard.files]
    side_by_side(lambda file: _check_file(storage, *file), files)
    data = target.tokenizer_json.encode()
    storage.write_bytes(storage.join(folder, SHARDS_TOKENIZER_FILE), data)
    manifest = Manifest(
        format=target.format,
        version=VERSION,
        tokenizer=TokenizerInfo(hashlib.sha256(data).hexdigest(), target.vocab_size),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        plan=NO_PLAN,
        shards=shards,
        totals=Totals.of(shards, tokenless),
        rejects=Rejects({}, ()),
        tokenless=tokenless,
    )
    write_index(storage, folder, manifest)
    url = storage.join(folder, MANIFEST_FILE)
    storage.sync_folders(folder)
    storage.write_bytes(url, manifest.to_bytes())
    storage.sync_folders(folder)
    yield url


def _check_file(storage: Storage, url: str, size: int) -> None:
    """Check that a file of a shard exists whole, before the manifest lists it."""
    if storage.size(url) != size:
        raise DataError(f"{url}: changed after it was written")
