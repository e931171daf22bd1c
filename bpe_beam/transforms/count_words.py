"""`CountWords`: texts in, counted words out, without a word ever being an element.

Each worker counts into native tables of a limited size and hands them on as blocks of words by
partition, at most `BLOCK_BYTES` each (a single longer word travels in pieces). After the shuffle
each partition's blocks are added into one table: that worker holds the unique words of one
partition, nothing else grows with the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam.counts.word_counts import (
    PARTITIONS,
    WordCounts,
    decode_block,
    encode_block,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.splits import measures
from bpe_beam.transforms import counters
from bpe_beam.transforms.pieces import Piece, from_pieces, to_pieces
from bpe_beam.transforms.texts import Element, array_of, text_column, utf8_of

TABLE_BYTES = 128_000_000
"""What a worker's tables hold before they are handed on."""

HELD_SECONDS = 2.0
"""For so long words of an unbounded input are held, if a runner's bundle lasts longer."""

_GATHERED_BYTES = 1 << 20


@beam.typehints.with_input_types(Element)
@beam.typehints.with_output_types(pa.RecordBatch)
class CountWords(beam.PTransform):
    """Counts the words of documents, per window.

    Elements are documents as `str` or `bytes` (UTF-8), or Arrow batches with a column `text` as
    `ReadDocuments` makes them. The output is Arrow batches of `word` (string) and `count` (int64),
    each word once, in blocks of at most 1 MB.

    Where windows fire more than once, each pane has the words of its own documents, so that the
    panes of a window add up to what one would have given. Triggers that count elements count
    blocks of words here, not documents.

    Args:
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer.
        special_tokens: Cut out of the text and not counted.
        with_places: Also tell where each word occurred first (`first_document`, `first_word`), as
            `first_seen` training needs it; takes batches with a column `place` only.
        partitions: Blocks of one partition are added on one worker.
        table_bytes: What a worker's tables may hold before they are handed on.

    Raises:
        UsageError: A setting out of its range; panes that accumulate, whose sum would count words
            again.
    """

    def __init__(
        self,
        *,
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        special_tokens: Iterable[str] = (),
        with_places: bool = False,
        partitions: int = PARTITIONS,
        table_bytes: int = TABLE_BYTES,
    ) -> None:
        super().__init__()
        if isinstance(special_tokens, str):
            raise UsageError(f"special_tokens is {special_tokens!r}: give a list of tokens")
        if partitions < 1:
            raise UsageError(f"partitions is {partitions}: 1 or more")
        if table_bytes < 1_000_000:
            raise UsageError(f"table_bytes is {table_bytes}: at least 1,000,000")
        self.settings: dict[str, Any] = {
            "normalizer": normalizer,
            "pretokenizer": pretokenizer,
            "special_tokens": tuple(special_tokens),
            "with_places": with_places,
        }
        WordCounts(**self.settings)  # refuses what it does not know, here and not on a worker
        self.partitions = partitions
        self.table_bytes = table_bytes

    def expand(self, documents: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        if documents.windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
            raise UsageError(
                "CountWords: the windows' panes accumulate, so that their sum would count words "
                "again; window the documents with accumulation_mode=AccumulationMode.DISCARDING"
            )
        seconds = None if documents.is_bounded else HELD_SECONDS
        count = _CountInTables(self.settings, self.partitions, self.table_bytes, seconds)
        return (
            documents
            | "CountInTables" >> beam.ParDo(count)
            | "GatherPartitions" >> beam.GroupByKey()
            | "AddBlocks" >> beam.ParDo(_AddBlocks(self.settings))
        )


class _WindowTable:
    """The words of one window on one worker, and texts that wait to be counted together."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.counts = WordCounts(**settings)
        self.waiting: list[bytes] = []
        self.waiting_bytes = 0

    def add(self, element: Element) -> int:
        """Takes a document or a batch; returns how many words were counted by the way."""
        if isinstance(element, pa.RecordBatch):
            texts = text_column(element)
            counters.counter(measures.DOCUMENTS_READ).inc(len(texts))
            if not self.counts.with_places:
                return self.counts.add_texts(texts)
            if "place" not in element.schema.names:
                raise DataError("with_places needs batches with a column 'place'")
            if element.column("place").null_count:
                raise DataError(
                    "with_places needs the place of every document, which the cut of a compressed "
                    "file hides: give ReadDocuments cut_compressed=False"
                )
            return self.counts.add_texts(texts, element.column("place"))
        if self.counts.with_places:
            raise DataError("with_places needs batches with a column 'place', not single texts")
        counters.counter(measures.DOCUMENTS_READ).inc()
        self.waiting.append(utf8_of(element))
        self.waiting_bytes += len(self.waiting[-1])
        return self.count_waiting() if self.waiting_bytes >= _GATHERED_BYTES else 0

    def count_waiting(self) -> int:
        """Counts the texts that wait."""
        if not self.waiting:
            return 0
        words = self.counts.add_texts(array_of(self.waiting))
        self.waiting.clear()
        self.waiting_bytes = 0
        return words


@beam.typehints.with_input_types(Element, window=beam.typehints.Any)
@beam.typehints.with_output_types(tuple[int, Piece])
class _CountInTables(beam.DoFn):
    """Documents to (partition, block), through a table a window."""

    def __init__(
        self,
        settings: dict[str, Any],
        partitions: int,
        table_bytes: int,
        held_seconds: float | None,
    ) -> None:
        self.settings = settings
        self.partitions = partitions
        self.table_bytes = table_bytes
        self.held_seconds = held_seconds

    def setup(self) -> None:
        """Makes the counters once a worker."""
        self.words = counters.counter(measures.WORDS_COUNTED)
        self.blocks = counters.counter(measures.COUNT_BLOCKS)
        self.block_bytes = counters.counter(measures.COUNT_BLOCK_BYTES)

    def start_bundle(self) -> None:
        """Begins with no words: what a failed bundle counted is counted again."""
        self.tables: dict[Any, _WindowTable] = {}
        self.since = time.monotonic()

    def process(
        self, element: Element, window: Any = beam.DoFn.WindowParam
    ) -> Iterator[WindowedValue]:
        """Counts one element; hands everything on when the tables have grown to their limit."""
        table = self.tables.get(window)
        if table is None:
            table = self.tables[window] = _WindowTable(self.settings)
        self.words.inc(table.add(element))
        held = sum(t.counts.memory_bytes + t.waiting_bytes for t in self.tables.values())
        # An empty table has a size, too: many small windows must not flush at every element.
        late = self.held_seconds is not None and time.monotonic() - self.since > self.held_seconds
        if late or held > self.table_bytes:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Hands on what is left."""
        tables, self.tables = self.tables, {}
        self.since = time.monotonic()
        for window, table in tables.items():
            self.words.inc(table.count_waiting())
            for partition, block in table.counts.blocks(self.partitions):
                data = encode_block(block)
                self.blocks.inc()
                self.block_bytes.inc(len(data))
                for piece in to_pieces(data):
                    yield WindowedValue((partition, piece), window.max_timestamp(), (window,))


@beam.typehints.with_input_types(tuple[int, Iterable[Piece]])
@beam.typehints.with_output_types(pa.RecordBatch)
class _AddBlocks(beam.DoFn):
    """One partition's blocks to its words, each once."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def process(self, element: tuple[int, Iterable[Piece]]) -> Iterator[pa.RecordBatch]:
        """Adds the blocks as they stream in."""
        counts = WordCounts(**self.settings)
        for data in from_pieces(element[1]):
            counts.add_block(decode_block(data, counts.with_places))
        counters.counter(measures.UNIQUE_WORDS).inc(len(counts))
        for _, block in counts.blocks(partitions=1):
            yield block
