"""Batches of counted words between transforms, and what travels with them.

A batch has the words of one source, or of no source, and its schema's metadata has the rules by
which they were counted. Each window also has a batch without words whose metadata has totals:
documents, bytes of text and words, by source. These are a manifest of a counts folder without
parts, so that a folder can be written, and weights computed, from the batches alone.

Between steps a block is bytes: a `BlockHead` as JSON, and the words as `encode_block` writes them.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.corpus.reading.columns import known_sources
from bpe_beam.counts import manifest as counts_manifest
from bpe_beam.counts.manifest import MAX_SOURCES, CountsManifest
from bpe_beam.counts.word_table import (
    BLOCK_BYTES,
    WordRules,
    WordTable,
    data_errors,
    decode_block,
    encode_block,
    schema_of,
    string_buffers,
    weighted_total,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms.elements import column_of, is_batch
from bpe_beam.transforms.ids_and_sources import label_column
from bpe_beam.transforms.shuffles import Chunk, from_chunks, to_chunks
from bpe_beam.workers.source_tables import NO_SOURCE, divide_by_source

SOURCE = pa.field("source", pa.dictionary(pa.int32(), pa.large_string()))
"""The column of sources: as a dictionary, since a batch has one."""

Rules = dict[str, str]
"""The metadata of a schema that says how words were counted: `normalizer`, `pretokenizer`, and the
list `special_tokens` as JSON. A batch that no transform of ours made may lack some or all."""

_RULES = ("normalizer", "pretokenizer", "special_tokens")
_TOTALS = "totals"
_HEAD = struct.Struct("<I")
_SOURCE_BLOCK_BYTES = BLOCK_BYTES * 3 // 4  # a row of at least 17 bytes has 4 more for its source


class BlockHead(Struct, frozen=True, omit_defaults=True):
    """The properties of a block of words; a block with totals has no words."""

    rules: Rules
    source: str = NO_SOURCE
    with_places: bool = False
    totals: CountsManifest | None = None


def rules_of(rules: WordRules | CountsManifest) -> Rules:
    """Return the metadata of words that were counted by these rules."""
    special_tokens = json.dumps(list(rules.special_tokens))
    return dict(zip(_RULES, (rules.normalizer, rules.pretokenizer, special_tokens), strict=True))


def special_tokens_of(rules: Rules) -> tuple[str, ...]:
    """Return the special tokens that counting extracted; none if they are unknown."""
    return tuple(json_structs.decode(rules.get("special_tokens", "[]").encode(), list[str]))


def without_files(totals: CountsManifest) -> CountsManifest:
    """Return totals without their lists of files, which may be long."""
    return replace(totals, inputs=(), lost=(), filtered=())


def totals_batch(totals: CountsManifest) -> pa.RecordBatch:
    """Return a batch without words that has totals."""
    metadata = {**rules_of(totals), _TOTALS: msgspec.json.encode(totals).decode()}
    by_source = totals.sources is not None
    schema = pa.schema([*([SOURCE] if by_source else []), *schema_of(totals.with_places)], metadata)
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def word_batches(table: WordTable, source: str, rules: Rules) -> Iterator[pa.RecordBatch]:
    """Yield the words of a table, sorted, in batches of at most 1 MB or one word."""
    by_source = source != NO_SOURCE
    name = pa.array([source], SOURCE.type.value_type)
    for _, block in table.blocks(1, _SOURCE_BLOCK_BYTES if by_source else BLOCK_BYTES):
        if by_source:
            codes = pa.array(np.zeros(block.num_rows, np.int32))
            column = pa.DictionaryArray.from_arrays(codes, name)
            schema = pa.schema([SOURCE, *block.schema])
            block = pa.RecordBatch.from_arrays([column, *block.columns], schema=schema)
        yield block.replace_schema_metadata(rules)


def blocks_in(
    batch: Any, transform: str, with_places: bool | None = None, by_source: bool = True
) -> Iterator[tuple[BlockHead, pa.RecordBatch | None]]:
    """Yield the words of each source in a batch, or the totals that it has.

    Args:
        batch: An element of a user's pipeline, which is checked.
        transform: The transform that an error names.
        with_places: Whether to take the places of words too; None: if the batch has them.
        by_source: Whether to take the words of each source apart, if the batch has sources.
    """
    if not is_batch(batch):
        raise DataError(
            f"{transform}: an element must be a batch of counted words, as CountWords returns "
            f"them, got {type(batch).__name__}"
        )
    metadata = {key.decode(): value for key, value in (batch.schema.metadata or {}).items()}
    rules = {name: metadata[name].decode() for name in _RULES if name in metadata}
    if _TOTALS in metadata and batch.num_rows == 0:
        totals = json_structs.decode(metadata[_TOTALS], CountsManifest)
        yield BlockHead(rules, totals=totals), None
        return
    if with_places is None:
        with_places = "first_document" in batch.schema.names
    words = _checked(batch, with_places, transform)
    sources = label_column(batch, "source", transform) if by_source else None
    if sources is None:
        yield BlockHead(rules, with_places=with_places), words
        return
    columns = [known_sources(sources), *words.columns]
    rows = pa.RecordBatch.from_arrays(columns, ["source", *words.schema.names])
    if rows.num_rows:
        for name, own in divide_by_source(rows):
            yield BlockHead(rules, name, with_places), own.select(words.schema.names)


def _checked(batch: Any, with_places: bool, transform: str) -> pa.RecordBatch:
    """Return the columns of counted words with their types, after a check."""
    schema = schema_of(with_places)
    missing = set(schema.names).difference(batch.schema.names)
    if missing:
        raise DataError(
            f"counted words lack the columns {', '.join(sorted(missing))}; count them with "
            f"CountWords(with_places={with_places})"
        )
    columns = [column_of(batch, name) for name in schema.names]
    with data_errors(f"{transform}: a batch has invalid words or counts"):
        columns = [
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for column in columns
        ]
        columns = [each.cast(field.type) for each, field in zip(columns, schema, strict=True)]
        words = pa.RecordBatch.from_arrays(columns, schema=schema)
        words.validate(full=True)
        if any(column.null_count for column in columns):
            raise ValueError("a word, a count or a place is null")
        if words.num_rows and words.column("count").to_numpy().min() < 1:
            raise ValueError("a count is below 1")
        if not np.diff(string_buffers(words.column("word"))[1]).all():
            raise ValueError("a word is empty")
    return words


def to_block_chunks(head: BlockHead, words: pa.RecordBatch | None = None) -> Iterator[Chunk]:
    """Yield the chunks of a block."""
    data = msgspec.json.encode(head)
    block = b"" if words is None else encode_block(words)
    yield from to_chunks(b"".join((_HEAD.pack(len(data)), data, block)))


def require_few_sources(transform: str, names: set[str]) -> None:
    """Refuse too many sources, which are no fault of one document: no dead letter."""
    if len(names) > MAX_SOURCES:
        raise UsageError(
            f"{transform}: the documents have more than {MAX_SOURCES:,} sources, {len(names):,} so "
            "far; give them keys or sources of few values"
        )


class GatheredWords:
    """Blocks of words that are added up by source, and totals.

    Memory: the words of each source; a word takes memory in each source that has it.

    Attributes:
        tables: The words by source; without sources, the only key is `NO_SOURCE`.
        counted: The number of words of each source, each occurrence counted.
        rules: The rules by which all words and totals were counted.
        with_places: Whether the words have places; None before the first one.
    """

    def __init__(self, transform: str) -> None:
        self.transform = transform
        self.tables: dict[str, WordTable] = {}
        self.counted: Counter[str] = Counter()
        self.rules: Rules = {}
        self.with_places: bool | None = None
        self._sources: set[str] = set()
        self._totals: list[CountsManifest] = []
        self._read: list[CountsManifest] = []

    def add_chunks(self, chunks: Iterable[Chunk]) -> Iterator[None]:
        """Add the blocks of chunks, and yield after each block."""
        for data in from_chunks(chunks, "word"):
            (size,) = _HEAD.unpack_from(data)
            head = json_structs.decode(data[_HEAD.size : _HEAD.size + size], BlockHead)
            self._require_equal(head.rules)
            if head.totals is not None:
                self._add_totals(head.totals)
            elif len(data) > _HEAD.size + size:
                self._add_words(head, memoryview(data)[_HEAD.size + size :])
            yield

    @property
    def memory_bytes(self) -> int:
        """The memory of the tables."""
        return sum(table.memory_bytes for table in self.tables.values())

    def totals(self) -> CountsManifest | None:
        """Return the sum of all totals; None without totals. Their order does not matter."""
        totals = [*sorted(self._read, key=msgspec.json.encode), *self._totals]
        if len(self._read) > 1 and totals[0].with_places:
            raise DataError(
                f"{self.transform}: the places of words of several counts folders cannot be "
                "compared: add the folders with bpe-beam counts merge"
            )
        return counts_manifest.added_up(totals) if totals else None

    def _add_totals(self, totals: CountsManifest) -> None:
        for known in (*self._totals, *self._read[:1]):
            if (known.sources is None) != (totals.sources is None):
                raise self._mixed("sources")
            if known.with_places != totals.with_places:
                raise self._mixed("places")
        self._sources.update(totals.sources or ())
        require_few_sources(self.transform, self._sources)
        if totals.inputs or totals.lost or totals.filtered:
            self._read.append(totals)
        else:  # as many as there are bundles
            self._totals = [counts_manifest.added_up([*self._totals, totals])]

    def _add_words(self, head: BlockHead, data: memoryview) -> None:
        if self.with_places is None:
            self.with_places = head.with_places
        if self.with_places != head.with_places:
            raise self._mixed("places")
        table = self.tables.get(head.source)
        if table is None:
            table = self.tables[head.source] = WordTable(with_places=head.with_places)
            if NO_SOURCE in self.tables and len(self.tables) > 1:
                raise self._mixed("sources")
        block = decode_block(pa.py_buffer(data), head.with_places)
        table.add_block(block)
        counts = block.column("count").to_numpy()
        self.counted[head.source] += weighted_total(np.ones_like(counts), counts)

    def _require_equal(self, rules: Rules) -> None:
        for name, value in rules.items():
            known = self.rules.setdefault(name, value)
            if known != value:
                raise DataError(
                    f"{self.transform}: some words were counted with {name}={_shown(name, known)}, "
                    f"others with {name}={_shown(name, value)}; use the same for all"
                )

    def _mixed(self, what: str) -> DataError:
        return DataError(
            f"{self.transform}: some words were counted with {what}, others without; count all in "
            "the same way"
        )


def _shown(name: str, value: str) -> str:
    return value if name == "special_tokens" else repr(value)
