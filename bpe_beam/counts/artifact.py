"""A counts folder: Parquet parts and a manifest, a product of its own.

A part holds the words of one partition, sorted by their bytes: `word` (string) and `count`
(int64), and on request where each word occurred first. Parts are a function of the documents
alone, whatever files they came in and however those were cut. The manifest says by which
normalizer and pre-tokenizer the words were made, so that nobody trains on words of another kind.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bpe_beam.counts.word_counts import schema_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage

MANIFEST = "manifest.json"
VERSION = 1
_ROW_GROUP = 1 << 20


@dataclass(frozen=True)
class CountsPart:
    """One Parquet file of a counts folder.

    Attributes:
        name: File name.
        unique_words: Its rows.
        word_bytes: Bytes of its words, each once.
        bytes: Size of the file.
        sha256: Of the file, in hex.
    """

    name: str
    unique_words: int
    word_bytes: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class CountsManifest:
    """What a counts folder holds.

    Attributes:
        normalizer: By name, as on the command line.
        pretokenizer: By name, as on the command line.
        special_tokens: Cut out before counting.
        with_places: Whether the parts tell where each word occurred first.
        documents: Documents read.
        text_bytes: UTF-8 bytes of their texts.
        words: Words counted, each occurrence.
        unique_words: Words counted, each once.
        word_bytes: Bytes of the unique words.
        rejects: Records that could not be used, by reason.
        inputs: (name, stored bytes) of each file read.
        parts: The Parquet files.
    """

    normalizer: str
    pretokenizer: str
    special_tokens: tuple[str, ...]
    with_places: bool
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    word_bytes: int
    rejects: dict[str, int]
    inputs: tuple[tuple[str, int], ...]
    parts: tuple[CountsPart, ...]

    @property
    def fingerprint(self) -> str:
        """What counts must share to be added, in hex: normalizer, pre-tokenizer, special tokens."""
        settings = [self.normalizer, self.pretokenizer, list(self.special_tokens)]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()

    def to_json(self) -> bytes:
        """The manifest's file."""
        document = {"version": VERSION, "fingerprint": self.fingerprint, **asdict(self)}
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def from_bytes(data: bytes, place: str) -> CountsManifest:
        """Reads a manifest's file.

        Args:
            data: Its content.
            place: What to call it in errors.

        Raises:
            UsageError: A manifest of another version.
            DataError: No manifest of word counts, or one that was changed.
        """
        try:
            document = json.loads(data)
            if document["version"] != VERSION:
                raise UsageError(
                    f"{place}: version {document['version']!r}; this bpe-beam reads {VERSION}"
                )
            values = {field.name: document[field.name] for field in fields(CountsManifest)}
            values["special_tokens"] = tuple(values["special_tokens"])
            values["inputs"] = tuple((name, size) for name, size in values["inputs"])
            values["parts"] = tuple(CountsPart(**part) for part in values["parts"])
            manifest = CountsManifest(**values)
            fingerprint = manifest.fingerprint
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{place} is no manifest of word counts: {error!r}") from error
        if document.get("fingerprint") != fingerprint:
            raise DataError(f"{place}: its fingerprint does not fit its settings; it was changed")
        return manifest


def part_name(partition: int, partitions: int) -> str:
    """The file name of a partition's part."""
    return f"part-{partition:05}-of-{partitions:05}.parquet"


class _HashingFile(io.RawIOBase):
    """Hands on what is written, and keeps its size and SHA-256."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.hash = hashlib.sha256()
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.hash.update(data)
        self.bytes += len(data)
        self.file.write(data)
        return len(data)


def write_part(
    storage: Storage, folder: str, name: str, blocks: Iterable[pa.RecordBatch], with_places: bool
) -> CountsPart:
    """Writes one part, whole or not at all; equal blocks give equal bytes.

    Args:
        storage: Where to.
        folder: The counts folder.
        name: See `part_name`.
        blocks: The partition's words in order. Held until a row group is full.
        with_places: Whether the blocks carry places.
    """
    schema = schema_of(with_places)
    unique_words = word_bytes = 0
    with storage.create(storage.join(folder, name)) as file:
        hashing = _HashingFile(file)
        sink = pa.PythonFile(hashing, mode="w")
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for table in _row_groups(blocks, schema):
                writer.write_table(table)
                unique_words += table.num_rows
                word_bytes += pc.sum(pc.binary_length(table["word"])).as_py()
    return CountsPart(name, unique_words, word_bytes, hashing.bytes, hashing.hash.hexdigest())


def _row_groups(blocks: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Gathers blocks to row groups of a size that does not depend on the blocks' sizes."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for block in blocks:
        held.append(block)
        rows += block.num_rows
        while rows >= _ROW_GROUP:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, _ROW_GROUP)
            held = table.slice(_ROW_GROUP).to_batches()
            rows -= _ROW_GROUP
    if rows:
        yield pa.Table.from_batches(held, schema)


def read_manifest(storage: Storage, folder: str) -> CountsManifest:
    """Reads the manifest of a counts folder.

    Raises:
        UsageError: No counts folder, or one that is not finished.
        DataError: A manifest that is damaged.
    """
    url = storage.join(folder, MANIFEST)
    if not storage.exists(url):
        if storage.exists(storage.join(folder, "job.json")):
            raise UsageError(f"{folder} is not finished: run its job again, which resumes it")
        raise UsageError(f"{folder} is no counts folder: it has no {MANIFEST}")
    return CountsManifest.from_bytes(storage.read_bytes(url), url)


def iter_parts(storage: Storage, folder: str, manifest: CountsManifest) -> Iterator[pa.Table]:
    """The parts of a counts folder, one after another, each checked against the manifest.

    Raises:
        DataError: A part that is missing, or is not what was written.
    """
    schema = schema_of(manifest.with_places)
    for part in manifest.parts:
        url = storage.join(folder, part.name)
        data = storage.read_bytes(url)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise DataError(f"{url} is not the file that was written: its SHA-256 differs")
        table = pq.read_table(pa.BufferReader(data))
        if not table.schema.equals(schema) or table.num_rows != part.unique_words:
            raise DataError(f"{url}: expected {part.unique_words} rows of {schema.names}")
        yield table
