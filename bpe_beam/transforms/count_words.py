"""`CountWords`: documents in, counted words out; no word is ever an element.

Each worker counts into native tables of limited size and outputs them as blocks of words by
partition, at most `BLOCK_BYTES` each; a longer word travels in chunks. After the shuffle one worker
adds the blocks of a partition into one table. That worker keeps the unique words of one partition
in memory; nothing else grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam.counts import word_table
from bpe_beam.errors import DataError, require
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms import shuffles
from bpe_beam.transforms.document_fn import DeadLetterTransform, Document, DocumentFn
from bpe_beam.transforms.elements import Element, column_of, tokens_type


@beam.typehints.with_input_types(Element)
class CountWords(DeadLetterTransform):
    """Counts the words of documents, per window.

    Elements are documents as `str` or `bytes` (UTF-8), dicts, `beam.Row`s or named tuples with the
    text in a field, or Arrow batches or tables with it in a column, as `ReadDocuments` makes them.
    The key of `(key, document)` is dropped: the words of all keys are counted together. The output
    is Arrow batches of `word` (string) and `count` (int64), each word once, in blocks of at most
    1 MB. An unusable document fails the pipeline, unless `with_dead_letters` takes it out.

    Where windows fire more than once, each pane has the words of its own documents, so that the
    panes of a window add up to the counts of the whole window. Triggers that count elements count
    blocks of words here, not documents.

    Args:
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer.
        special_tokens: Texts that are extracted from documents and not counted.
        text_field: The field or column of the text, in documents that have fields.
        with_places: Whether to return the place where each word occurs first (`first_document`,
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
        partitions: int = word_table.PARTITIONS,
        table_bytes: int = shuffles.TABLE_BYTES,
    ) -> None:
        super().__init__()
        require(
            not isinstance(special_tokens, str),
            f"must be a list of tokens, got {special_tokens!r}",
            "special_tokens",
        )
        require(partitions >= 1, f"must be at least 1, got {partitions}", "partitions")
        shuffles.check_table_bytes(table_bytes)
        self.rules = word_table.WordRules(
            normalizer, pretokenizer, tuple(special_tokens), with_places
        )
        word_table.WordCounter(self.rules)  # refuses unknown names here and not on a worker
        self.metadata = {"normalizer": normalizer, "pretokenizer": pretokenizer}
        self.text_field = text_field
        self.partitions = partitions
        self.table_bytes = table_bytes

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Return the counted words, and the dead letters if they have an output."""
        tokens_type(documents.element_type, self.text_field)  # refuses elements without a text
        make_tables = shuffles.tables_of(
            partial(word_table.WordCounter, self.rules), self.table_bytes, documents, "CountWords"
        )
        step = beam.ParDo(_CountInTables(self, make_tables))
        blocks, dead = self._outputs(documents, "CountInTables", step, tuple[int, shuffles.Chunk])
        add = beam.FlatMap(_add_blocks, self.rules.with_places, self.metadata)
        words = (
            blocks
            | "GatherPartitions" >> beam.GroupByKey()
            | "AddBlocks" >> add.with_output_types(pa.RecordBatch)
        )
        return words if dead is None else (words, dead)


class _CountInTables(DocumentFn):
    """Documents to (partition, block of words), through one table per window."""

    by_window = True

    def __init__(
        self,
        count: CountWords,
        make_tables: Callable[[], shuffles.WindowTables[word_table.WordCounter]],
    ) -> None:
        super().__init__(count.text_field, count.dead_letters)
        self.rules = count.rules
        self.partitions = count.partitions
        self.make_tables = make_tables

    def start_bundle(self) -> None:
        """Begin without words: the words of a failed bundle are counted again."""
        super().start_bundle()
        self.tables = self.make_tables()
        # With dead letters, texts are counted into this table first, because the table of a failed
        # text must not be used.
        self.trial = word_table.WordCounter(self.rules) if self.dead_letters else None

    def take(self, document: Document) -> Iterator[Any]:
        yield from super().take(document)
        if self.tables.is_full:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self.take_waiting()
        for window, table in self.tables.take():
            for partition, block in table.blocks(self.partitions):
                data = word_table.encode_block(block)
                counters.counter("count_blocks").inc()
                counters.counter("count_block_bytes").inc(len(data))
                for chunk in shuffles.to_chunks(data):
                    yield WindowedValue((partition, chunk), window.max_timestamp(), (window,))

    def use(self, documents: list[Document], texts: pa.Array, batch: Any = None) -> Iterable[Any]:
        places = self._places(batch)
        table = self.tables.table(documents[0].window)
        if self.trial is None:
            words = table.add_texts(texts, places)
        else:
            words = self._try(texts, places)
            table.add(self.trial)
        counters.counter("words_counted").inc(words)
        counters.counter("documents_read").inc(len(texts))
        return ()

    def check(self, texts: pa.Array, batch: Any) -> None:
        self._try(texts, self._places(batch))

    def _try(self, texts: pa.Array, places: pa.Array | None) -> int:
        assert self.trial is not None
        self.trial.clear()
        return self.trial.add_texts(texts, places)

    def _places(self, batch: Any) -> pa.Array | None:
        if not self.rules.with_places:
            return None
        if batch is None:
            raise DataError("with_places needs batches with a column 'place', not single texts")
        if "place" not in batch.schema.names:
            raise DataError("with_places needs batches with a column 'place'")
        places = column_of(batch, "place")
        if places.null_count:
            raise DataError(
                "with_places needs the place of every document, which is unknown where a "
                "compressed file was split: set cut_compressed=False in ReadDocuments"
            )
        return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _add_blocks(
    element: tuple[int, Iterable[shuffles.Chunk]], with_places: bool, metadata: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield the words of one partition's blocks, each once."""
    counts = word_table.WordTable(with_places=with_places)
    for data in shuffles.from_chunks(element[1], "word"):
        counts.add_block(word_table.decode_block(data, with_places))
    counters.counter("unique_words").inc(len(counts))
    for _, block in counts.blocks(partitions=1):
        yield block.replace_schema_metadata(metadata)
