"""`CountWords`: documents in, counted words out; no word is ever an element.

Each worker counts into native tables of limited size and sends them on as blocks of words by
partition, at most `BLOCK_BYTES` each; a longer word travels in chunks. After the shuffle one worker
adds the blocks of a partition into one table. That worker keeps the unique words of one partition
in memory; nothing else grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam.counts.word_counter import WordCounter, WordRules
from bpe_beam.counts.word_table import PARTITIONS, WordTable, decode_block, encode_block
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.chunks import Chunk, from_chunks, to_chunks
from bpe_beam.transforms.dead_letters import DeadLetterTransform, dead_letter, in_window
from bpe_beam.transforms.elements import (
    ANY,
    Element,
    document_utf8,
    has_texts,
    is_batch,
    string_array,
    text_column,
    tokens_type,
    with_value,
    without_key,
)
from bpe_beam.transforms.window_tables import (
    TABLE_BYTES,
    WindowTables,
    check_table_bytes,
    max_seconds_of,
)
from bpe_beam.workers import metric_names

_GATHERED_BYTES = 1 << 20


@beam.typehints.with_input_types(Element)
class CountWords(DeadLetterTransform):
    """Counts the words of documents, per window.

    Elements are documents as `str` or `bytes` (UTF-8), dicts, `beam.Row`s or named tuples with the
    text in a field, or Arrow batches or tables with it in a column, as `ReadDocuments` makes them.
    The key of `(key, document)` is dropped: the words of all keys are counted together. The output
    is Arrow batches of `word` (string) and `count` (int64), each word once, in blocks of at most
    1 MB. A document that cannot be used fails the pipeline, unless `with_dead_letters` takes it
    out.

    Where windows fire more than once, each pane has the words of its own documents, so that the
    panes of a window add up to the counts of the whole window. Triggers that count elements count
    blocks of words here, not documents.

    Args:
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer.
        special_tokens: Texts that are extracted from documents and not counted.
        text_field: The field or column of the text, in documents that have fields.
        with_places: Whether to return where each word occurred first (`first_document`,
            `first_word`), which `first_seen` training needs; every element must then be a batch
            with a column `place`.
        partitions: Number of partitions, at least 1. One worker adds the blocks of one partition.
        table_bytes: Memory of a worker's tables in bytes, at least 1,000,000.

    Raises:
        UsageError: An argument out of its range; elements that are known to have no such field;
            windows that accumulate panes, whose sum would count words again.
    """

    def __init__(
        self,
        *,
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        special_tokens: Iterable[str] = (),
        text_field: str = "text",
        with_places: bool = False,
        partitions: int = PARTITIONS,
        table_bytes: int = TABLE_BYTES,
    ) -> None:
        super().__init__()
        if isinstance(special_tokens, str):
            raise UsageError(f"special_tokens must be a list of tokens, got {special_tokens!r}")
        if partitions < 1:
            raise UsageError(f"partitions must be at least 1, got {partitions}")
        check_table_bytes(table_bytes)
        self.rules = WordRules(normalizer, pretokenizer, tuple(special_tokens), with_places)
        WordCounter(self.rules)  # refuses unknown names here and not on a worker
        self.metadata = {"normalizer": normalizer, "pretokenizer": pretokenizer}
        self.text_field = text_field
        self.partitions = partitions
        self.table_bytes = table_bytes

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Return the counted words, and the dead letters if they have an output."""
        tokens_type(documents.element_type, self.text_field)  # refuses elements without a text
        max_seconds = max_seconds_of(documents, "CountWords")
        step = beam.ParDo(_CountInTables(self, max_seconds))
        blocks, dead = self._outputs(documents, "CountInTables", step, tuple[int, Chunk])
        words = (
            blocks
            | "GatherPartitions" >> beam.GroupByKey()
            | "AddBlocks" >> beam.ParDo(_AddBlocks(self.rules, self.metadata))
        )
        return words if dead is None else (words, dead)


class _WaitingDocument(NamedTuple):
    """A document that waits to be counted with others."""

    element: Element
    utf8: bytes
    timestamp: Timestamp


class _Unusable(NamedTuple):
    """A document that cannot be counted, and why."""

    element: Element
    error: DataError
    timestamp: Timestamp


class _WindowWords:
    """The words of one window on one worker, and documents that wait to be counted together.

    Args:
        rules: How texts are split into words.
        text_field: The field or column of the text.
        checked: Whether to find out which document of several cannot be counted. They are then
            counted into a table of their own first, since a table that failed must not be used.
    """

    def __init__(self, rules: WordRules, text_field: str, checked: bool) -> None:
        self.counts = WordCounter(rules)
        self.trial = WordCounter(rules) if checked else None
        self.text_field = text_field
        self.waiting: list[_WaitingDocument] = []
        self.waiting_bytes = 0
        self.words = 0
        """Words counted since the caller last set this number to 0."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory that the tables and the waiting documents take."""
        trial = 0 if self.trial is None else self.trial.memory_bytes
        return self.counts.memory_bytes + trial + self.waiting_bytes

    def add(self, element: Element, timestamp: Timestamp) -> Iterator[_Unusable]:
        """Add a document or a batch; yield those that cannot be counted."""
        value = without_key(element)
        if is_batch(value):
            yield from self._add_batch(element, value, timestamp)
            return
        try:
            if self.counts.with_places:
                raise DataError("with_places needs batches with a column 'place', not single texts")
            waiting = _WaitingDocument(element, document_utf8(value, self.text_field), timestamp)
        except DataError as error:
            yield _Unusable(element, error, timestamp)
            return
        self.waiting.append(waiting)
        self.waiting_bytes += len(waiting.utf8)
        if self.waiting_bytes >= _GATHERED_BYTES:
            yield from self.count_waiting()

    def count_waiting(self) -> Iterator[_Unusable]:
        """Count the waiting documents; yield those that cannot be counted."""
        waiting, self.waiting = self.waiting, []
        self.waiting_bytes = 0
        if not waiting:
            return
        try:
            self._count(string_array([each.utf8 for each in waiting]))
        except DataError as error:
            if len(waiting) == 1 or self.trial is None:
                yield _Unusable(waiting[0].element, error, waiting[0].timestamp)
                return
            for each in waiting:  # one of them cannot be counted: find out which
                self.waiting = [each]
                yield from self.count_waiting()

    def _add_batch(self, element: Element, batch: Any, timestamp: Timestamp) -> Iterator[_Unusable]:
        try:
            self._count(text_column(batch, self.text_field), self._places(batch))
        except DataError as error:
            by_row = self.trial is not None and has_texts(batch, self.text_field)
            if not by_row or batch.num_rows < 2:
                yield _Unusable(element, error, timestamp)
                return
            for number in range(batch.num_rows):
                row = batch.slice(number, 1)
                yield from self._add_batch(with_value(element, row), row, timestamp)

    def _count(self, texts: pa.Array, places: pa.Array | None = None) -> None:
        if self.trial is None:
            words = self.counts.add_texts(texts, places)
        else:
            self.trial.clear()
            words = self.trial.add_texts(texts, places)
            self.counts.add(self.trial)
        self.words += words
        counters.counter(metric_names.DOCUMENTS_READ).inc(len(texts))

    def _places(self, batch: Any) -> pa.Array | None:
        if not self.counts.with_places:
            return None
        if "place" not in batch.schema.names:
            raise DataError("with_places needs batches with a column 'place'")
        places = batch.column("place")
        if places.null_count:
            raise DataError(
                "with_places needs the place of every document, which is unknown where a "
                "compressed file was split: set cut_compressed=False in ReadDocuments"
            )
        return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


@beam.typehints.with_input_types(Element, window=ANY, timestamp=ANY)
class _CountInTables(beam.DoFn):
    """Documents to (partition, block of words), through a table a window."""

    def __init__(self, count: CountWords, max_seconds: float | None) -> None:
        self.make_words = partial(_WindowWords, count.rules, count.text_field, count.dead_letters)
        self.dead_letters = count.dead_letters
        self.partitions = count.partitions
        self.table_bytes = count.table_bytes
        self.max_seconds = max_seconds

    def setup(self) -> None:
        """Make the counters once a worker."""
        self.words = counters.counter(metric_names.WORDS_COUNTED)
        self.blocks = counters.counter(metric_names.COUNT_BLOCKS)
        self.block_bytes = counters.counter(metric_names.COUNT_BLOCK_BYTES)

    def start_bundle(self) -> None:
        """Begin without words: the words of a failed bundle are counted again."""
        self.tables = WindowTables(self.make_words, self.table_bytes, self.max_seconds)

    def process(
        self,
        element: Element,
        window: Any = beam.DoFn.WindowParam,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
    ) -> Iterator[Any]:
        """Count one element; send all words on when the tables have reached their limit."""
        words = self.tables.table(window)
        yield from self._dead(words.add(element, timestamp), window)
        self._report(words)
        if self.tables.is_full:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        """Send the remaining words on."""
        for window, words in self.tables.take():
            yield from self._dead(words.count_waiting(), window)
            self._report(words)
            for partition, block in words.counts.blocks(self.partitions):
                data = encode_block(block)
                self.blocks.inc()
                self.block_bytes.inc(len(data))
                for chunk in to_chunks(data):
                    yield WindowedValue((partition, chunk), window.max_timestamp(), (window,))

    def _report(self, words: _WindowWords) -> None:
        self.words.inc(words.words)
        words.words = 0

    def _dead(self, unusable: Iterator[_Unusable], window: Any) -> Iterator[Any]:
        for element, error, timestamp in unusable:
            if not self.dead_letters:
                raise error
            yield in_window(dead_letter(element, error), timestamp, window)


@beam.typehints.with_input_types(tuple[int, Iterable[Chunk]])
@beam.typehints.with_output_types(pa.RecordBatch)
class _AddBlocks(beam.DoFn):
    """One partition's blocks to its words, each once."""

    def __init__(self, rules: WordRules, metadata: dict[str, str]) -> None:
        self.with_places = rules.with_places
        self.metadata = metadata

    def process(self, element: tuple[int, Iterable[Chunk]]) -> Iterator[pa.RecordBatch]:
        """Add the blocks in the order in which they arrive."""
        counts = WordTable(with_places=self.with_places)
        for data in from_chunks(element[1], "word"):
            counts.add_block(decode_block(data, self.with_places))
        counters.counter(metric_names.UNIQUE_WORDS).inc(len(counts))
        for _, block in counts.blocks(partitions=1):
            yield block.replace_schema_metadata(self.metadata)
