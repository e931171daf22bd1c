"""`WriteTokens`: token ids of a user's pipeline in, a folder of shards out.

A `PCollection` has no order and no splits, so shards and their order follow from the documents
themselves: a document's shard and its place there are given by a hash of its ids. The same
documents give the same bytes on every runner, however they arrived and were retried.
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
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.manifest import MANIFEST, Manifest
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.create_elements import CreateElements
from bpe_beam.transforms.elements import TOKENS, fields_of, is_batch, without_key
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.split_task import require_seen

_THREADS = 16

CHUNK_TOKENS = 240_000
"""Ids of a document that travel together: at four bytes each, under 1 MB."""


Chunk = tuple[bytes, int, bytes]
"""A piece of a document on its way to its shard: a hash of the document's ids, so that equal
documents have equal ones; the piece's number in the document; its ids, little-endian uint32.
One without a hash tells the shard's final name: its number, and the name. Without a name it only
makes sure that the shard is looked at."""


Tokens: TypeAlias = Any
"""What `Tokenize` gives: a document's ids, a dict or row with a field `tokens`, a batch or table
with a column `tokens`; with a key or without one."""

_LOST = (
    "WriteTokens: the runner lost a part of what was to be written, or gave it twice: run it again"
)


@beam.typehints.with_output_types(str)
class WriteTokens(beam.PTransform):
    """Writes what `Tokenize` made as a folder of shards that trainers read.

    Takes whatever `Tokenize` gives: `pyarrow.UInt32Array`, a document each, dicts or rows with
    a list of ids in the field `tokens`, Arrow batches or tables with a column `tokens`, and any
    of them with a key, which is left out. Writes up to `shards` shards, the tokenizer,
    and at last a manifest, so `bpe-beam verify` proves the folder. For bounded input in the
    global window. A shard's worker holds about 50 bytes a document, and its ids in a local
    temporary file. The output is the manifest's URL.

    A shard gets documents by their hashes. One that gets no token is not written, and the others
    are numbered without gaps. Without any token there are no shards, and the manifest says so.

    Args:
        folder: An empty or new folder.
        tokenizer: The tokenizer that made the ids.
        shards: How many shards, at most.
        storage: How storage is reached.

    Raises:
        UsageError: A setting out of its range, a folder that holds something, or input without an
            end or in windows.
    """

    def __init__(
        self, folder: str, tokenizer: Tokenizer, *, shards: int = 1, storage: Storage | None = None
    ) -> None:
        super().__init__()
        if not 1 <= shards <= 100_000:
            raise UsageError(f"shards is {shards}: from 1 to 100,000")
        self.folder = absolute(folder)
        self.tokenizer = tokenizer
        self.shards = shards
        self.storage = storage or Storage()
        if self.storage.list_names(folder):
            raise UsageError(f"{folder} holds something already: give WriteTokens an empty folder")

    def expand(self, tokens: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Cut, gather, number, write."""
        if tokens.element_type in (str, bytes, int):
            raise UsageError(
                f"WriteTokens takes what Tokenize gives, such as a pyarrow.UInt32Array, not "
                f"{tokens.element_type.__name__}"
            )
        if not tokens.is_bounded or not isinstance(tokens.windowing.windowfn, GlobalWindows):
            raise UsageError(
                "WriteTokens: a folder of shards is written when all of its documents are there: "
                "give it bounded input in the global window (for files that keep coming there is "
                "bpe-beam stream-tokenize)"
            )
        self.storage.make_folder(self.folder)
        target = _Target(self.storage, self.folder, self.shards, self.tokenizer.to_json())
        chunks = tokens | "CutToChunks" >> beam.ParDo(_CutToChunks(self.shards))
        # An empty chunk for each shard, so that there is a row of each, and one key at least.
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
    """What tells documents apart, and orders them."""
    return hashlib.blake2b(ids, digest_size=16).digest()


class _Target(NamedTuple):
    """Where the shards go."""

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
class _CutToChunks(beam.DoFn):
    """Documents to (shard, chunk)."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def process(self, element: Tokens) -> Iterator[tuple[int, Chunk]]:
        """Cuts one document, or a batch of them."""
        for document in _ids_of(element):
            ids = document.to_numpy().astype("<u4", copy=False)
            digest = _digest(ids.tobytes())
            shard = int.from_bytes(digest[:8], "big") * self.shards >> 64
            for number, start in enumerate(range(0, max(1, len(ids)), CHUNK_TOKENS)):
                yield shard, (digest, number, ids[start : start + CHUNK_TOKENS].tobytes())


def _ids_of(element: Tokens) -> list[pa.UInt32Array]:
    """The ids of each document.

    Raises:
        DataError: They are none; Beam knows the type of not every element beforehand.
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
                f"WriteTokens: the ids of a document are a pyarrow.UInt32Array, as Tokenize makes "
                f"them, not {type(document).__name__}"
            )
    return documents


def _ids_in_list(ids: Any) -> Any:
    """The ids that `Tokenize` gave a dict or row, as an array; anything else as it is."""
    if not isinstance(ids, list):
        return ids
    try:
        return pa.array(ids, pa.uint32())
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(f"WriteTokens: the ids of a document are no ids: {error}") from error


@beam.typehints.with_input_types(tuple[int, Chunk])
@beam.typehints.with_output_types(tuple[int, int])
class _ShardsWithTokens(beam.DoFn):
    """Chunks to the numbers of the shards that get tokens, as keys; each number once a bundle."""

    def start_bundle(self) -> None:
        """Begins a bundle."""
        self.seen: set[int] = set()

    def process(self, element: tuple[int, Chunk]) -> Iterator[tuple[int, int]]:
        """Looks at one chunk."""
        shard, (_, _, ids) = element
        if ids and shard not in self.seen:
            self.seen.add(shard)
            yield shard, 0


@beam.typehints.with_input_types(tuple[int, Iterable[int]])
@beam.typehints.with_output_types(tuple[int, int])
class _UnderOneKey(beam.DoFn):
    """A shard's number for one worker to gather."""

    def process(self, element: tuple[int, Iterable[int]]) -> Iterator[tuple[int, int]]:
        """Keys it."""
        yield 0, element[0]


@beam.typehints.with_input_types(tuple[int, Iterable[int]])
@beam.typehints.with_output_types(tuple[int, Chunk])
class _NameShards(beam.DoFn):
    """The shards with tokens to their final names: numbers without gaps."""

    def process(self, element: tuple[int, Iterable[int]]) -> Iterator[tuple[int, Chunk]]:
        """Numbers them in their order."""
        numbers = sorted(set(element[1]))
        for index, shard in enumerate(numbers):
            yield shard, (b"", index, shard_name(index, len(numbers)).encode())


@beam.typehints.with_input_types(tuple[int, Iterable[Chunk]])
@beam.typehints.with_output_types(tuple[int, str])
class _WriteShard(beam.DoFn):
    """A shard's chunks to its files, and a row for the manifest, all under one key."""

    def __init__(self, target: _Target) -> None:
        self.target = target

    def process(self, element: tuple[int, Iterable[Chunk]]) -> Iterator[tuple[int, str]]:
        """Writes one shard, its documents in the order of their hashes."""
        shard, chunks = element
        target = self.target
        names: set[str] = set()
        require_seen(target.storage, target.folder)
        with tempfile.TemporaryFile() as spool:
            places: list[tuple[bytes, int, int, int]] = []
            for document, number, ids in chunks:
                if not document and ids:
                    names.add(ids.decode())
                elif document:
                    places.append((document, number, spool.tell(), len(ids)))
                    spool.write(ids)
            places.sort()
            if len(names) != any(size for _, _, _, size in places):
                raise DataError(_LOST)
            name = min(names, default=f"shard {shard} without tokens")
            format_ = shard_format(DEFAULT_SHARD_FORMAT)
            with format_.writer(target.storage, target.folder, name, target.vocab_size) as writer:
                for pieces in _documents(places):
                    read = []
                    for _, _, start, size in pieces:
                        spool.seek(start)
                        read.append(spool.read(size))
                    ids = b"".join(read)
                    if _digest(ids) != pieces[0][0]:
                        raise DataError(_LOST)
                    tokens = np.frombuffer(ids, "<u4").astype(np.uint32, copy=False)
                    writer.write_documents(tokens, np.array([0, len(tokens)], np.int64))
        files = writer.result()
        counters.counter(measures.DOCUMENTS_WRITTEN).inc(files.documents)
        counters.counter(measures.TOKENS_WRITTEN).inc(files.tokens)
        row = {
            "split": shard,
            "name": name,
            "documents": files.documents,
            "tokens": files.tokens,
            "files": [[file.name, file.bytes, file.sha256] for file in files.files],
        }
        yield 0, json.dumps(row)


def _documents(
    places: list[tuple[bytes, int, int, int]],
) -> Iterator[list[tuple[bytes, int, int, int]]]:
    """Sorted chunks to documents; of equal documents, each chunk stands as often as they do.

    Raises:
        DataError: They do not.
    """
    start = 0
    while start < len(places):
        end = start
        while end < len(places) and places[end][0] == places[start][0]:
            end += 1
        pieces = places[start:end]
        copies = sum(number == 0 for _, number, _, _ in pieces)
        if copies == 0 or len(pieces) % copies:
            raise DataError(_LOST)
        for copy in range(copies):
            yield pieces[copy::copies]
        start = end


@beam.typehints.with_input_types(tuple[int, Iterable[str]])
@beam.typehints.with_output_types(str)
class _WriteManifest(beam.DoFn):
    """All rows to the manifest; the folder is whole from then on."""

    def __init__(self, target: _Target) -> None:
        self.target = target

    def process(self, element: tuple[int, Iterable[str]]) -> Iterator[str]:
        """Writes the tokenizer and the manifest."""
        storage, folder = self.target.storage, self.target.folder
        rows = sorted(map(json.loads, element[1]), key=lambda row: int(row["split"]))
        if [row["split"] for row in rows] != list(range(self.target.shards)):
            raise DataError(_LOST)
        shards = tuple(
            Shard(
                name=row["name"],
                files=tuple(FileInfo(*file) for file in row["files"]),
                tokens=row["tokens"],
                **_split_of(row),
            )
            for row in rows
            if row["tokens"]
        )
        tokenless = tuple(TokenlessSplit(**_split_of(row)) for row in rows if not row["tokens"])
        if [shard.name for shard in shards] != [
            shard_name(index, len(shards)) for index in range(len(shards))
        ]:
            raise DataError(_LOST)
        _check_files(storage, folder, [file for shard in shards for file in shard.files])
        data = self.target.tokenizer_json.encode()
        storage.write_bytes(storage.join(folder, "tokenizer.json"), data)
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
        url = storage.join(folder, MANIFEST)
        storage.sync_folders(folder)
        storage.write_bytes(url, manifest.to_bytes())
        storage.sync_folders(folder)
        yield url


def _check_files(storage: Storage, folder: str, files: Sequence[FileInfo]) -> None:
    """Check that the files of all shards are there, before a manifest says so.

    Raises:
        DataError: One is not there, or has another size.
    """

    def check(file: FileInfo) -> None:
        if storage.size(storage.join(folder, file.name)) != file.bytes:
            raise DataError(f"{storage.join(folder, file.name)}: changed after it was written")

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, files))


def _split_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of any of the shards that were asked for; no files are known."""
    return {
        "split": row["split"],
        "slices": (),
        "documents": row["documents"],
        "text_bytes": 0,
        "rejects": 0,
    }
