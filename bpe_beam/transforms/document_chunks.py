"""Tokenized documents of a pipeline as chunks of ids, and a shard of `WriteTokens` from them.

A hash of its ids decides a document's shard, and the order there. The chunks of a shard come in any
order; their ids are in a local temporary file until all have come.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import IO, Any, NamedTuple, TypeAlias

import apache_beam as beam
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.counts.manifest import MAX_SOURCE_NAME, MAX_SOURCES
from bpe_beam.errors import DataError
from bpe_beam.json_structs import decode
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.table_schema import TEXT_BYTES
from bpe_beam.shards.shard_rows import Shard, SourceTotals, TokenlessSplit
from bpe_beam.transforms import elements
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.document_order import PLACE, BatchOrder, order_of
from bpe_beam.transforms.ids_and_sources import label_column, label_of
from bpe_beam.transforms.token_origin import (
    FINGERPRINT,
    SIZES,
    TokenFacts,
    WrittenTokens,
    require_framed,
)
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers.split_task import require_visible

CHUNK_TOKENS = 240_000  # ids of a chunk of a document: at four bytes each, under 1 MB

Chunk = tuple[bytes, int, bytes]
"""A chunk of a document: a hash of the document's ids, the number of the chunk in the document, and
the ids of the chunk, little-endian uint32. If the document has labels, the hash is followed by the
hash of these, and chunk -1 has them. Before the hash of a document with a place in its split comes
the number of the document there, of 8 bytes. Chunk 0 without a hash has the final name of its
shard, or no name for a shard without tokens; each shard has one. Chunk -1 without a hash has notes
about elements; they are sent to shard 0."""

LABELS = ("id", "source", TEXT_BYTES)
"""Fields and columns that are stored with the ids, by formats that have a place for them."""

UNPLACED = 1 << 40
"""The number of the first shard of documents without a place in a split, where order matters."""

_Label: TypeAlias = "tuple[str | None, str | None, int | None]"
NO_LABEL: _Label = (None, None, None)

_DIGEST_BYTES = 16

_NO_ORDER = (
    "WriteTokens: a step after ReadDocuments has divided or joined batches, or the same files were "
    "read twice, so the order of documents is lost: filter rows only, or remove the schema's "
    "metadata to arrange documents from the order of their hashes"
)

BATCH_DOCUMENTS = 1024
"""Documents that are written at once; fewer if they have CHUNK_TOKENS together."""

LOST = "WriteTokens: the runner lost some of the tokens, or delivered them twice; run it again"

Tokens: TypeAlias = Any
"""An output of `Tokenize`: a document's ids, a dict or row with a field `tokens`, a batch or table
with a column `tokens`; with or without a key."""


def digest_of(ids: bytes) -> bytes:
    """Return a hash that identifies a document, and by which documents are ordered."""
    return hashlib.blake2b(ids, digest_size=_DIGEST_BYTES).digest()


class Notes(Struct, frozen=True):
    """What is noted of elements: fields without a place, and fingerprints of tokenizers."""

    fields: frozenset[str] = frozenset()
    tokenizers: frozenset[str] = frozenset()

    def __or__(self, other: Notes) -> Notes:
        return Notes(self.fields | other.fields, self.tokenizers | other.tokenizers)


@beam.typehints.with_input_types(Tokens)
@beam.typehints.with_output_types(tuple[int, Chunk])
class SplitToChunks(beam.DoFn):
    """Documents to their chunks, with their shards; and notes, each once per bundle.

    `in_order`: the shard of a document of `ReadDocuments` is its split, where it keeps its place;
    other documents come after these. `whole`: for windows, all chunks of a document, packed, are
    one element, so that no trigger fires between them; ids are kept for formats without labels too.
    """

    def __init__(
        self, shards: int, labelled: bool, in_order: bool = False, whole: bool = False
    ) -> None:
        self.shards = shards
        self.labelled = labelled
        self.in_order = in_order
        self.whole = whole

    def start_bundle(self) -> None:
        self._noted = Notes()

    def process(self, element: Tokens) -> Iterator[tuple[int, Any]]:
        documents = _ids_of(element)
        labels = _labels_of(element, len(documents), self.labelled or self.whole)
        noted = self._noted | self._notes(element, labels)
        notes: list[Chunk] = []
        if noted != self._noted:
            self._noted = noted
            notes = [(b"", -1, msgspec.json.encode(noted, order="deterministic"))]
        if not self.labelled:
            labels = [(id_ if self.whole else None, source, None) for id_, source, _ in labels]
        if notes and not self.whole:
            yield 0, notes[0]
        order = self._order(element)
        for number, (document, label) in enumerate(zip(documents, labels, strict=True)):
            if order is not None:
                place = (order.first + number).to_bytes(8, "big")
                shard, chunks = chunks_of(document, 1, label, place, order.split)
            else:
                first = UNPLACED if self.in_order else 0
                shard, chunks = chunks_of(document, self.shards, label, first=first)
            if self.whole:
                yield shard, msgspec.msgpack.encode([*notes, *chunks])
                notes = []
            else:
                yield from ((shard, chunk) for chunk in chunks)

    def _order(self, element: Tokens) -> BatchOrder | None:
        value = elements.without_key(element)
        if not self.in_order or not elements.is_batch(value):
            return None
        order = order_of(value)
        if order is not None and not order.has_all_of(value):
            raise DataError(_NO_ORDER)
        return order

    def _notes(self, element: Tokens, labels: list[_Label]) -> Notes:
        value = elements.without_key(element)
        fields, tokenizers = set(), frozenset[str]()
        if elements.is_batch(value):
            columns = zip(value.schema.names, value.columns, strict=True)
            fields = {name for name, column in columns if column.null_count < len(column)}
            known = (value.schema.metadata or {}).get(FINGERPRINT)
            tokenizers = frozenset() if known is None else frozenset({known.decode()})
        else:
            values = elements.fields_of(value) or {}
            fields = {str(name) for name, each in values.items() if each is not None}
        fields -= {elements.TOKENS, PLACE, TEXT_BYTES}
        if any(source is not None for _, source, _ in labels):
            fields.discard("source")
        if self.labelled:
            fields.discard("id")
        return Notes(frozenset(fields), tokenizers)


def chunks_of(
    document: pa.UInt32Array,
    shards: int,
    label: _Label = NO_LABEL,
    place: bytes = b"",
    first: int = 0,
) -> tuple[int, list[Chunk]]:
    """Return the shard of one document, `first` or greater, and its chunks."""
    ids = document.to_numpy().astype("<u4", copy=False)
    digest = digest_of(ids.tobytes())
    shard = first + (int.from_bytes(digest[:8], "big") * shards >> 64)
    digest = place + digest
    chunks: list[Chunk] = []
    if label != NO_LABEL:
        data = msgspec.json.encode(label)
        digest += digest_of(data)
        chunks.append((digest, -1, data))
    for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
        chunks.append((digest, number, ids[start : start + CHUNK_TOKENS].tobytes()))
    return shard, chunks


def unpacked(packed: Iterable[bytes]) -> Iterator[Chunk]:
    """Yield the chunks of packed documents."""
    for data in packed:
        yield from msgspec.msgpack.decode(data, type=list[Chunk])


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


def _labels_of(element: Tokens, documents: int, labelled: bool) -> list[_Label]:
    """Return the id and the source of each document; None where it has none.

    The source of a document is its key, if that may be a name; without one, its field or column
    `source`. If the format of the shards is not `labelled`, other values than names are no error.
    """
    try:
        return _labels_in(element, documents)
    except DataError:
        if labelled:
            raise
        return [NO_LABEL] * documents


def _labels_in(element: Tokens, documents: int) -> list[_Label]:
    value = elements.without_key(element)
    if elements.is_batch(value):
        columns = [label_column(value, name, "WriteTokens") for name in LABELS[:2]]
        ids, sources = ([] if column is None else column.to_pylist() for column in columns)
        sizes = []
        at = value.schema.get_field_index(TEXT_BYTES)
        if at >= 0 and value.schema.field(at).equals(SIZES, check_metadata=True):
            sizes = value.column(at).to_pylist()
    else:
        fields = elements.fields_of(value) or {}
        ids, sources = (
            [label_of(fields.get(name), f"the field {name!r} of a document", "WriteTokens")]
            for name in LABELS[:2]
        )
        sizes = []
    key = None if value is element else _key_name(element[0])
    if key is not None:
        sources = [key] * documents
    known = (column or [None] * documents for column in (ids, sources, sizes))
    return list(zip(*known, strict=True))


def _key_name(key: Any) -> str | None:
    try:
        return label_of(key, "the key", "WriteTokens")
    except DataError:
        return None


class _StoredChunk(NamedTuple):
    """A chunk in the temporary file: its document's hash, its number, and its bytes there."""

    document: bytes
    number: int
    offset: int
    size: int


class WrittenShard(Struct, frozen=True):
    """A shard of `WriteTokens` as the step that writes the manifest gets it.

    `sources` are its totals by source; None if a document has no source that a manifest can name.
    """

    shard: Shard
    sources: dict[str, SourceTotals] | None
    left_out: frozenset[str]  # the fields of documents for which the shards have no place
    has_sizes: bool = False  # whether the sizes of all its texts are known


class GatheredDocuments:
    """The documents of a shard, by their chunks in any order, in a local temporary file.

    A context manager. Memory: about 250 bytes a document, 500 with labels.

    Attributes:
        names: The final names of the shard, of which there should be one.
        noted: The notes about elements.
        ids: After `write`, uint64[documents], a hash of the source and the id of each, or 0.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self.names: set[str] = set()
        self.noted = Notes()
        self.ids: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._stored: list[_StoredChunk] = []
        for document, position, ids in chunks:
            if document:
                self._stored.append(_StoredChunk(document, position, self._spool.tell(), len(ids)))
                self._spool.write(ids)
            elif position < 0:
                self.noted |= decode(ids, Notes)
            else:
                self.names.add(ids.decode())
        self._stored.sort()
        places = [
            chunk.document[:8]
            for chunk in self._stored
            if chunk.number == 0 and len(chunk.document) % _DIGEST_BYTES
        ]
        if any(one == other for one, other in pairwise(places)):
            raise DataError(_NO_ORDER)

    def __enter__(self) -> GatheredDocuments:
        return self

    def __exit__(self, *exception: object) -> None:
        self._spool.close()

    @property
    def has_tokens(self) -> bool:
        return any(chunk.size for chunk in self._stored if chunk.number >= 0)

    @property
    def digest(self) -> bytes:
        """A hash of all documents."""
        hashes = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for chunk in self._stored:
            hashes.update(chunk.document + chunk.number.to_bytes(8, "big", signed=True))
        return hashes.digest()

    def write(
        self, name: str, number: int, folder: TokensFolder, facts: TokenFacts
    ) -> WrittenShard:
        """Write a shard, its documents in order; without tokens no file is written."""
        _require_tokenizer(self.noted, facts.origin)
        origin = folder.shards_origin(facts.origin)
        target = folder.storage, folder.shards_url, name, facts.vocab_size, origin
        sources = _SourceSums()
        ids = [self.ids]
        with shard_format(folder.shards_format).writer(*target) as writer:
            for documents in _batches(_documents(self._spool, self._stored)):
                joined, bounds = _joined(documents)
                require_framed(joined, bounds, origin)
                sources.add(documents)
                ids.append(np.array([_hash_of(label) for _, label in documents], np.uint64))
                writer.write_documents(joined, bounds, _labels(documents))
        self.ids = np.concatenate(ids)
        files = writer.result()
        shard = Shard(
            name=name,
            split=number,
            slices=(),
            documents=files.documents,
            text_bytes=sources.text_bytes or 0,
            tokens=files.tokens,
            rejects=0,
            files=tuple(files.files),
        )
        has_sizes = sources.text_bytes is not None
        return WrittenShard(shard, sources.totals(), self.noted.fields, has_sizes)


def _hash_of(label: _Label) -> int:
    """Return a hash of a document's source and id; 0 without an id, or with an empty one."""
    id_, source, _ = label
    if not id_:
        return 0
    digest = hashlib.blake2b(msgspec.json.encode([source, id_]), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1


def write_shard(
    element: tuple[int, Iterable[Chunk]],
    folder: TokensFolder,
    tokens: WrittenTokens,
    learned: str | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Write one shard; yield its row under one key."""
    number, chunks = element
    require_visible(folder.storage, folder.url)
    folder.require_claimed()
    facts = tokens.facts(learned)
    with GatheredDocuments(chunks) as documents:
        _require_tokenizer(documents.noted, facts.origin)
        name = documents.names.pop() if len(documents.names) == 1 else None
        if name is None or bool(name) != documents.has_tokens:
            raise DataError(LOST)
        row = documents.write(name or f"shard {number} without tokens", number, folder, facts)
    if folder.arrangement is None:  # or the arranged shards are counted
        counters.counter("documents_written").inc(row.shard.documents)
        counters.counter("tokens_written").inc(row.shard.tokens)
    yield 0, msgspec.json.encode(row, order="deterministic")


def tokenless(row: Shard) -> TokenlessSplit:
    """Return the row of a shard without tokens, which has no files."""
    return TokenlessSplit(
        row.split,
        slices=(),
        documents=row.documents,
        text_bytes=row.text_bytes,
        rejects=0,
        sources=row.sources,
    )


def with_sources(rows: Sequence[WrittenShard]) -> list[Shard]:
    """Return the shards, with totals by source if all documents have sources, and few enough.

    The sizes of texts are 0 unless all are known.
    """
    names = {name for row in rows for name in row.sources or ()}
    sized = all(row.has_sizes for row in rows)
    without = not names or len(names) > MAX_SOURCES or any(row.sources is None for row in rows)

    def sources(row: WrittenShard) -> dict[str, SourceTotals] | None:
        if without or row.sources is None or sized:
            return None if without else row.sources
        return {name: replace(each, text_bytes=0) for name, each in row.sources.items()}

    return [
        replace(row.shard, text_bytes=row.shard.text_bytes if sized else 0, sources=sources(row))
        for row in rows
    ]


def _require_tokenizer(noted: Notes, origin: ShardOrigin) -> None:
    for fingerprint in noted.tokenizers - {origin.fingerprint}:
        raise DataError(
            f"WriteTokens has another tokenizer ({origin.fingerprint[:12]}…) than the transform "
            f"that made the ids of some batches ({fingerprint[:12]}…): give both the same"
        )


class _SourceSums:
    """The totals of each source, as long as a manifest can name all of them; the size of all texts.

    `text_bytes` is None if the size of one is not known.
    """

    def __init__(self) -> None:
        self.text_bytes: int | None = 0
        self._sums: dict[str, Counter[str]] | None = {}

    def add(self, documents: Sequence[_Document]) -> None:
        for ids, (_, source, size) in documents:
            if self.text_bytes is not None:
                self.text_bytes = None if size is None else self.text_bytes + size
            if self._sums is None:
                continue
            if source is None or len(source) > MAX_SOURCE_NAME or len(self._sums) > MAX_SOURCES:
                self._sums = None
                continue
            sums = self._sums.setdefault(source, Counter())
            sums.update(documents=1, tokens=ids.size, text_bytes=size or 0)

    def totals(self) -> dict[str, SourceTotals] | None:
        """Return the totals, sorted by source."""
        if self._sums is None:
            return None
        return {
            name: SourceTotals(sums["documents"], sums["text_bytes"], sums["tokens"])
            for name, sums in sorted(self._sums.items())
        }


_Document: TypeAlias = "tuple[npt.NDArray[np.uint32], _Label]"
"""The ids of a document, and the values of LABELS."""


def _batches(documents: Iterator[_Document]) -> Iterator[list[_Document]]:
    """Yield some documents at a time, to be written at once."""
    waiting: list[_Document] = []
    tokens = 0
    for document in documents:
        waiting.append(document)
        tokens += len(document[0])
        if len(waiting) == BATCH_DOCUMENTS or tokens >= CHUNK_TOKENS:
            yield waiting
            waiting, tokens = [], 0
    if waiting:
        yield waiting


def _joined(
    documents: Sequence[_Document],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the ids of documents, one after the other, and their bounds."""
    lengths = np.array([len(ids) for ids, _ in documents], np.int64)
    return np.concatenate([ids for ids, _ in documents]), bounds_of(lengths)


def _labels(documents: Sequence[_Document]) -> pa.RecordBatch | None:
    """Return the labels of documents; None if none has any."""
    labels = [label for _, label in documents]
    types = (pa.string(), pa.string(), pa.int64())
    columns = [pa.array(*each) for each in zip(zip(*labels, strict=True), types, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, LABELS)
    return batch if any(column.null_count < len(column) for column in columns) else None


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
            place = document[: len(document) % _DIGEST_BYTES]
            if place + digest_of(ids) + (digest_of(label) if label else b"") != document:
                raise DataError(LOST)
            labels = decode(label, tuple[str | None, str | None, int | None]) if label else NO_LABEL
            yield np.frombuffer(ids, "<u4").astype(np.uint32, copy=False), labels


def _read(spool: IO[bytes], chunk: _StoredChunk) -> bytes:
    spool.seek(chunk.offset)
    return spool.read(chunk.size)
