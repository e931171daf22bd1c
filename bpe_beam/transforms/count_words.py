"""`CountWords`: texts in, counted words out, without a word ever being an element.

Each worker counts into native tables of a limited size and hands them on as blocks of words by
partition, at most `BLOCK_BYTES` each (a single longer word travels in pieces). After the shuffle
each partition's blocks are added into one table: that worker holds the unique words of one
partition, nothing else grows with the corpus.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam.counts.word_counts import (
    PARTITIONS,
    WordCounts,
    decode_block,
    encode_block,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.chunks import Piece, from_pieces, to_pieces
from bpe_beam.transforms.elements import (
    DEAD,
    Element,
    array_of,
    document_utf8,
    has_texts,
    is_batch,
    text_column,
    tokens_type,
    with_value,
    without_key,
)
from bpe_beam.workers import metric_names as measures

TABLE_BYTES = 128_000_000
"""What a worker's tables hold before they are handed on."""

HELD_SECONDS = 2.0
"""For so long words of an unbounded input are held, if a runner's bundle lasts longer."""

_GATHERED_BYTES = 1 << 20


@beam.typehints.with_input_types(Element)
class CountWords(beam.PTransform):
    """Counts the words of documents, per window.

    Elements are documents as `str` or `bytes` (UTF-8), dicts, `beam.Row`s or named tuples with the
    text in a field, or Arrow batches or tables with it in a column, as `ReadDocuments` makes them.
    Of `(key, document)` the key is left out: the words of all keys are counted together. The
    output is Arrow batches of `word` (string) and `count` (int64), each word once, in blocks of at
    most 1 MB. A document that cannot be used fails the pipeline, unless `with_dead_letters` takes
    it out.

    Where windows fire more than once, each pane has the words of its own documents, so that the
    panes of a window add up to what one would have given. Triggers that count elements count
    blocks of words here, not documents.

    Args:
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer.
        special_tokens: Cut out of the text and not counted.
        text_field: The field or column of the text, in documents that have fields.
        with_places: Also tell where each word occurred first (`first_document`, `first_word`), as
            `first_seen` training needs it; takes batches with a column `place` only.
        partitions: Blocks of one partition are added on one worker.
        table_bytes: What a worker's tables may hold before they are handed on.

    Raises:
        UsageError: A setting out of its range; elements that are known to have no such field; panes
            that accumulate, whose sum would count words again.
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
        self.text_field = text_field
        self.partitions = partitions
        self.table_bytes = table_bytes
        self.dead_letters = False

    def with_dead_letters(self) -> CountWords:
        """Return the same transform with a second output, for documents that cannot be used.

        `words, dead = documents | CountWords().with_dead_letters()`: `dead` holds
        `(element, reason)`; of an Arrow batch only the rows that cannot be used, each as a batch.
        """
        transform = copy(self)
        transform.dead_letters = True
        return transform

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Count, gather, add up."""
        tokens_type(documents.element_type, self.text_field)  # refuses what is no document
        if documents.windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
            raise UsageError(
                "CountWords: the windows' panes accumulate, so that their sum would count words "
                "again; window the documents with accumulation_mode=AccumulationMode.DISCARDING"
            )
        count = _CountInTables(self, None if documents.is_bounded else HELD_SECONDS)
        step = beam.ParDo(count)
        if not self.dead_letters:
            return self._words(documents | "CountInTables" >> step)
        letters = beam.typehints.Tuple[documents.element_type, str]
        outputs = documents | "CountInTables" >> step.with_output_types(
            tuple[int, Piece], **{DEAD: letters}
        ).with_outputs(DEAD, main="blocks")
        return self._words(outputs["blocks"]), outputs[DEAD]

    def _words(self, blocks: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        return (
            blocks
            | "GatherPartitions" >> beam.GroupByKey()
            | "AddBlocks" >> beam.ParDo(_AddBlocks(self.settings))
        )


def made_by(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what batches of counted words say of how the words were made, as Arrow metadata."""
    return {name: settings[name] for name in ("normalizer", "pretokenizer")}


class _Waiting(NamedTuple):
    """A document that waits to be counted with others."""

    element: Element
    utf8: bytes
    timestamp: Timestamp


class _Flaw(NamedTuple):
    """A document that cannot be counted, and why."""

    element: Element
    error: DataError
    timestamp: Timestamp


class _WindowTable:
    """The words of one window on one worker, and documents that wait to be counted together.

    Args:
        settings: Those of `WordCounts`.
        text_field: The field or column of the text.
        checked: Whether a document that cannot be counted is told apart from others, which are
            then counted into a table of their own first: a table that failed is not to be used.
    """

    def __init__(self, settings: dict[str, Any], text_field: str, checked: bool) -> None:
        self.counts = WordCounts(**settings)
        self.trial = WordCounts(**settings) if checked else None
        self.text_field = text_field
        self.waiting: list[_Waiting] = []
        self.waiting_bytes = 0
        self.words = 0
        """Counted since someone last took the number away."""

    @property
    def memory_bytes(self) -> int:
        """Bytes that the tables and the documents hold."""
        trial = 0 if self.trial is None else self.trial.memory_bytes
        return self.counts.memory_bytes + trial + self.waiting_bytes

    def add(self, element: Element, timestamp: Timestamp) -> Iterator[_Flaw]:
        """Take a document or a batch; yield those that cannot be counted."""
        value = without_key(element)
        if is_batch(value):
            yield from self._add_batch(element, value, timestamp)
            return
        try:
            if self.counts.with_places:
                raise DataError("with_places needs batches with a column 'place', not single texts")
            waiting = _Waiting(element, document_utf8(value, self.text_field), timestamp)
        except DataError as error:
            yield _Flaw(element, error, timestamp)
            return
        self.waiting.append(waiting)
        self.waiting_bytes += len(waiting.utf8)
        if self.waiting_bytes >= _GATHERED_BYTES:
            yield from self.count_waiting()

    def count_waiting(self) -> Iterator[_Flaw]:
        """Count the documents that wait; yield those that cannot be counted."""
        waiting, self.waiting = self.waiting, []
        self.waiting_bytes = 0
        if not waiting:
            return
        try:
            self._count(array_of([each.utf8 for each in waiting]))
        except DataError as error:
            if len(waiting) == 1 or self.trial is None:
                yield _Flaw(waiting[0].element, error, waiting[0].timestamp)
                return
            for each in waiting:  # one of them cannot be counted: find out which
                self.waiting = [each]
                yield from self.count_waiting()

    def _add_batch(self, element: Element, batch: Any, timestamp: Timestamp) -> Iterator[_Flaw]:
        try:
            self._count(text_column(batch, self.text_field), self._places(batch))
        except DataError as error:
            apart = self.trial is not None and has_texts(batch, self.text_field)
            if not apart or batch.num_rows < 2:
                yield _Flaw(element, error, timestamp)
                return
            for row in range(batch.num_rows):
                one = batch.slice(row, 1)
                yield from self._add_batch(with_value(element, one), one, timestamp)

    def _count(self, texts: pa.Array, places: pa.Array | None = None) -> None:
        if self.trial is None:
            words = self.counts.add_texts(texts, places)
        else:
            self.trial.clear()
            words = self.trial.add_texts(texts, places)
            self.counts.add(self.trial)
        self.words += words
        counters.counter(measures.DOCUMENTS_READ).inc(len(texts))

    def _places(self, batch: Any) -> pa.Array | None:
        if not self.counts.with_places:
            return None
        if "place" not in batch.schema.names:
            raise DataError("with_places needs batches with a column 'place'")
        places = batch.column("place")
        if places.null_count:
            raise DataError(
                "with_places needs the place of every document, which the cut of a compressed "
                "file hides: give ReadDocuments cut_compressed=False"
            )
        return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


ANY = beam.typehints.Any


@beam.typehints.with_input_types(Element, window=ANY, timestamp=ANY)
@beam.typehints.with_output_types(tuple[int, Piece])
class _CountInTables(beam.DoFn):
    """Documents to (partition, block), through a table a window."""

    def __init__(self, count: CountWords, held_seconds: float | None) -> None:
        self.settings = count.settings
        self.text_field = count.text_field
        self.dead_letters = count.dead_letters
        self.partitions = count.partitions
        self.table_bytes = count.table_bytes
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
        self,
        element: Element,
        window: Any = beam.DoFn.WindowParam,
        timestamp: Timestamp = beam.DoFn.TimestampParam,
    ) -> Iterator[Any]:
        """Count one element; hand everything on when the tables have grown to their limit."""
        table = self.tables.get(window)
        if table is None:
            table = _WindowTable(self.settings, self.text_field, self.dead_letters)
            self.tables[window] = table
        yield from self._dead(table.add(element, timestamp), window)
        self._count_words(table)
        held = sum(t.memory_bytes for t in self.tables.values())
        # An empty table has a size, too: many small windows must not flush at every element.
        late = self.held_seconds is not None and time.monotonic() - self.since > self.held_seconds
        if late or held > self.table_bytes:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        """Hand on the words that are left."""
        tables, self.tables = self.tables, {}
        self.since = time.monotonic()
        for window, table in tables.items():
            yield from self._dead(table.count_waiting(), window)
            self._count_words(table)
            for partition, block in table.counts.blocks(self.partitions):
                data = encode_block(block)
                self.blocks.inc()
                self.block_bytes.inc(len(data))
                for piece in to_pieces(data):
                    yield WindowedValue((partition, piece), window.max_timestamp(), (window,))

    def _count_words(self, table: _WindowTable) -> None:
        self.words.inc(table.words)
        table.words = 0

    def _dead(self, flaws: Iterator[_Flaw], window: Any) -> Iterator[beam.pvalue.TaggedOutput]:
        for flaw in flaws:
            if not self.dead_letters:
                raise flaw.error
            counters.counter(measures.DEAD_LETTERS).inc()
            letter = (flaw.element, str(flaw.error))
            yield beam.pvalue.TaggedOutput(DEAD, WindowedValue(letter, flaw.timestamp, (window,)))


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
            yield block.replace_schema_metadata(made_by(self.settings))
