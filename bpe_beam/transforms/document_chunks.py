"""Tokenized documents of a pipeline as chunks of ids, and a shard of `WriteTokens` from them.

A hash of its ids decides a document's shard, and the order there. The chunks of a shard come in any
order; their ids are in a local temporary file until all have come.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.errors import DataError
from bpe_beam.json_structs import decode
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.shard_rows import Shard
from bpe_beam.transforms import elements
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.labels import label_column, label_of
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers.split_task import require_visible

CHUNK_TOKENS = 240_000  # ids of a chunk of a document: at four bytes each, under 1 MB

Chunk = tuple[bytes, int, bytes]
"""A chunk of a document: a hash of the document's ids, the number of the chunk in the document, and
the ids of the chunk, little-endian uint32. If the document has labels, the hash is followed by the
hash of these, and chunk -1 has them. A chunk without a hash has the final name of its shard
instead, or no name for a shard without tokens; each shard has one."""

LABELS = ("id", "source")
"""Fields and columns that are stored with the ids, by formats that have a place for them."""

BATCH_DOCUMENTS = 1024
"""Documents that are written at once; fewer if they have CHUNK_TOKENS together."""

LOST = "WriteTokens: the runner lost some of the tokens, or delivered them twice; run it again"

Tokens: TypeAlias = Any
"""An output of `Tokenize`: a document's ids, a dict or row with a field `tokens`, a batch or table
with a column `tokens`; with or without a key."""


def digest_of(ids: bytes) -> bytes:
    """Return a hash that identifies a document, and by which documents are ordered."""
    return hashlib.blake2b(ids, digest_size=16).digest()


def chunks_of(
    element: Tokens, shards: int, with_labels: bool = False
) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of one document, or of each document of a batch, with their shards."""
    documents = _ids_of(element)
    labels = _labels_of(element, len(documents)) if with_labels else [b""] * len(documents)
    for document, label in zip(documents, labels, strict=True):
        ids = document.to_numpy().astype("<u4", copy=False)
        digest = digest_of(ids.tobytes())
        shard = int.from_bytes(digest[:8], "big") * shards >> 64
        if label:
            digest += digest_of(label)
            yield shard, (digest, -1, label)
        for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
            yield shard, (digest, number, ids[start : start + CHUNK_TOKENS].tobytes())


def _ids_of(element: Tokens) -> list[pa.UInt32Array]:
    """Return the ids of each document; Beam does not know the types of all elements beforehand."""
    value = elements.without_key(element)
    documents = [value]
    if elements.is_batch(value):
        documents = [
            getattr(row, "values", row) for row in elements.column_of(value, elements.TOKENS)
        ]
    elif (fields := elements.fields_of(value)) is not None:
        if elements.TOKENS not in fields:
            names = ", ".join(map(str, fields))
            raise DataError(
                f"WriteTokens: a document has no field {elements.TOKENS!r}, only {names}"
            )
        documents = [_ids_in_list(fields[elements.TOKENS])]
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


def _labels_of(element: Tokens, documents: int) -> list[bytes]:
    """Return the labels of each document as JSON; empty for a document without labels."""
    value = elements.without_key(element)
    if elements.is_batch(value):
        labels = [label_column(value, name, "WriteTokens") for name in LABELS]
        columns = [[] if column is None else column.to_pylist() for column in labels]
    else:
        fields = elements.fields_of(value) or {}
        columns = [
            [label_of(fields.get(name), f"the field {name!r} of a document", "WriteTokens")]
            for name in LABELS
        ]
    rows = zip(*(column or [None] * documents for column in columns), strict=True)
    return [
        msgspec.json.encode(row) if any(each is not None for each in row) else b"" for row in rows
    ]


class _StoredChunk(NamedTuple):
    """A chunk in the temporary file: its document's hash, its number, and its bytes there."""

    document: bytes
    number: int
    offset: int
    size: int


def write_shard(
    element: tuple[int, Iterable[Chunk]], folder: TokensFolder
) -> Iterator[tuple[int, bytes]]:
    """Write one shard, its documents in the order of their hashes; yield its row under one key."""
    number, chunks = element
    require_visible(folder.storage, folder.url)
    folder.require_claimed()
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
        if name is None or bool(name) != any(chunk.size for chunk in stored if chunk.number >= 0):
            raise DataError(LOST)
        format_ = shard_format(folder.format)
        # Without tokens no file is written.
        name = name or f"shard {number} without tokens"
        with format_.writer(folder.storage, folder.url, name, folder.vocab_size) as writer:
            for batch in _batches(_documents(spool, stored)):
                writer.write_documents(*batch)
    files = writer.result()
    counters.counter("documents_written").inc(files.documents)
    counters.counter("tokens_written").inc(files.tokens)
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


_Document: TypeAlias = tuple[npt.NDArray[np.uint32], tuple[str | None, ...]]
"""The ids of a document, and the values of LABELS."""


def _batches(
    documents: Iterator[_Document],
) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], pa.RecordBatch | None]]:
    """Yield the arguments of `ShardWriter.write_documents` for some documents at a time."""
    waiting: list[_Document] = []
    bounds = [0]
    for document in documents:
        waiting.append(document)
        bounds.append(bounds[-1] + len(document[0]))
        if len(waiting) == BATCH_DOCUMENTS or bounds[-1] >= CHUNK_TOKENS:
            yield _batch(waiting, bounds)
            waiting, bounds = [], [0]
    if waiting:
        yield _batch(waiting, bounds)


def _batch(
    documents: list[_Document], bounds: list[int]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], pa.RecordBatch | None]:
    labels = [label for _, label in documents]
    columns = [pa.array(column, pa.string()) for column in zip(*labels, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, LABELS)
    known = any(column.null_count < len(column) for column in columns)
    ids = np.concatenate([ids for ids, _ in documents])
    return ids, np.array(bounds, np.int64), batch if known else None


def _documents(spool: IO[bytes], chunks: list[_StoredChunk]) -> Iterator[_Document]:
    """Yield the ids and the labels of each document, of sorted chunks.

    Equal documents have as many copies of each chunk.
    """
    for document, equal in groupby(chunks, key=lambda chunk: chunk.document):
        copied = list(equal)
        copies = sum(chunk.number == 0 for chunk in copied)
        if copies == 0 or len(copied) % copies:
            raise DataError(LOST)
        for copy in range(copies):
            whole = copied[copy::copies]
            label = b"".join(_read(spool, chunk) for chunk in whole if chunk.number < 0)
            ids = b"".join(_read(spool, chunk) for chunk in whole if chunk.number >= 0)
            if digest_of(ids) + (digest_of(label) if label else b"") != document:
                raise DataError(LOST)
            labels = tuple(decode(label, list)) if label else (None,) * len(LABELS)
            yield np.frombuffer(ids, "<u4").astype(np.uint32, copy=False), labels


def _read(spool: IO[bytes], chunk: _StoredChunk) -> bytes:
    spool.seek(chunk.offset)
    return spool.read(chunk.size)
