"""One shard of `WriteTokens`, from chunks of documents in any order.

Documents are written in the order of their hashes. Their ids are in a local temporary file until
all chunks have come.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.errors import DataError
from bpe_beam.json_structs import decode
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.shard_rows import Shard
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.document_chunks import CHUNK_TOKENS, LABELS, Chunk, digest_of
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers import metric_names
from bpe_beam.workers.split_task import require_visible

BATCH_DOCUMENTS = 1024
"""Documents that are written at once; fewer if they have CHUNK_TOKENS together."""


LOST = "WriteTokens: the runner lost some of the tokens, or delivered them twice; run it again"


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
