"""`CountWords`: documents in, counted words out; no word is ever an element.

Each worker counts into native tables of limited size and outputs them as blocks of words by
partition, at most `BLOCK_BYTES` each; a longer word travels in chunks. After the shuffle one worker
adds the blocks of a partition by source. That worker keeps the unique words of one partition
in memory; nothing else grows with the corpus. Totals of documents travel like the words of a
partition of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue

from bpe_beam.corpus.reading.columns import known_sources
from bpe_beam.counts.manifest import CountsManifest, check_sources, source_totals
from bpe_beam.counts.word_table import PARTITIONS, WordCounter, WordRules
from bpe_beam.errors import DataError, require, require_whole
from bpe_beam.transforms import counted_words, elements, shuffles
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.document_fn import DeadLetterTransform, Document, DocumentFn
from bpe_beam.transforms.ids_and_sources import label_column, label_of
from bpe_beam.workers.source_tables import SourceBlocks, SourceTables

_TOTALS = -1  # the partition of totals

MakeTables = Callable[[], shuffles.WindowTables[SourceTables]]


@beam.typehints.with_input_types(elements.Element)
class CountWords(DeadLetterTransform):
    """Counts the words of documents, per window.

    Elements are documents as `str` or `bytes` (UTF-8), dicts, `beam.Row`s or named tuples with the
    text in a field, or Arrow batches or tables with it in a column, as `ReadDocuments` makes them;
    any of them with a key, `(key, document)`. The output is Arrow batches of `word` (large_string)
    and `count` (int64), each word once, in blocks of at most 1 MB. An unusable document fails the
    pipeline, unless `with_dead_letters` takes it out.

    With `by_source` the batches have the column `source` too (a dictionary of large_string), and
    each word once for each source. The source of a document is its key; without a key, its field or
    column `source`. A source may be a string, a number, a date or a UUID; a document without one,
    or with an empty one, has the source `other`. Without `by_source` keys and sources are dropped.

    For each window there is also a batch without rows, whose schema's metadata has the totals of
    the documents. `WriteCounts` needs it, and `LearnMerges` with a temperature.

    Where windows fire more than once, each pane has the words of its own documents, so that the
    panes of a window add up to the counts of the whole window. Triggers that count elements count
    blocks of words here, not documents.

    Memory: a worker's tables of all windows and sources together take `table_bytes`, and a batch of
    documents; after the shuffle a worker has the words of one partition.

    Counters: `documents_read`, `words_counted` (each occurrence), `unique_words` (each word once
    for each source and pane), `count_blocks` and `count_block_bytes` (of the shuffle),
    `dead_letters`.

    Args:
        normalizer: Name of the normalizer.
        pretokenizer: Name of the pre-tokenizer.
        special_tokens: Texts that are extracted from documents and not counted.
        text_field: The field or column of the text, in documents that have fields, or a path to
            one, `meta.body`, as in `ReadSettings`.
        by_source: Whether to count each source by itself; at most 1,000 sources per window.
        with_places: Whether to return the place where each word occurs first (`first_document`,
            `first_word`), which `first_seen` training needs; every element must then be a batch
            with a column `place`.
        partitions: Number of partitions, at least 1. One worker adds the blocks of one partition.
        table_bytes: Memory of a worker's tables in bytes, at least 1,000,000.

    Raises:
        UsageError: An argument of a wrong kind or out of its range; elements that are known to have
            no such field; windows that accumulate panes, whose sum would count words again.
    """

    def __init__(
        self,
        *,
        normalizer: str = "none",
        pretokenizer: str = "gpt2",
        special_tokens: Iterable[str] = (),
        text_field: str = "text",
        by_source: bool = False,
        with_places: bool = False,
        partitions: int = PARTITIONS,
        table_bytes: int = shuffles.TABLE_BYTES,
    ) -> None:
        super().__init__()
        names = {"normalizer": normalizer, "pretokenizer": pretokenizer, "text_field": text_field}
        for name, value in names.items():
            require(isinstance(value, str), f"must be a name, got {value!r}", name)
        for name, switch in (("by_source", by_source), ("with_places", with_places)):
            require(isinstance(switch, bool), f"must be True or False, got {switch!r}", name)
        require_whole("partitions", partitions, 1)
        shuffles.check_table_bytes(table_bytes)
        tokens = checked_tokens(special_tokens)
        self.rules = WordRules(normalizer, pretokenizer, tokens, with_places)
        WordCounter(self.rules)  # refuses unknown names here and not on a worker
        self.by_source = by_source
        self.text_field = text_field
        self.partitions = partitions
        self.table_bytes = table_bytes

    def display_data(self) -> dict[str, Any]:
        """Return the settings for monitoring interfaces."""
        return {
            "normalizer": self.rules.normalizer,
            "pretokenizer": self.rules.pretokenizer,
            "special_tokens": " ".join(self.rules.special_tokens),
            "text_field": self.text_field,
            "by_source": self.by_source,
            "with_places": self.rules.with_places,
            "partitions": self.partitions,
            "table_bytes": self.table_bytes,
            "dead_letters": self.dead_letters,
        }

    def expand(self, documents: beam.pvalue.PCollection) -> Any:
        """Return the counted words, and the dead letters if they have an output."""
        # Refuses elements without a text.
        elements.tokens_type(documents.element_type, self.text_field)
        make = partial(
            SourceTables,
            self.rules,
            self.by_source,
            max_bytes=self.table_bytes,
            partitions=self.partitions,
        )
        make_tables = shuffles.tables_of(make, self.table_bytes, documents, "CountWords")
        step = beam.ParDo(_CountInTables(self, make_tables))
        blocks, dead = self._outputs(documents, "CountInTables", step, tuple[int, shuffles.Chunk])
        add = beam.FlatMap(_add_blocks, counted_words.rules_of(self.rules))
        words = (
            blocks
            | "GatherPartitions" >> beam.GroupByKey()
            | "AddBlocks" >> add.with_output_types(pa.RecordBatch)
        )
        return self._named(words, dead)


def checked_tokens(tokens: Any) -> tuple[str, ...]:
    """Return special tokens, after a check that they are a list of texts."""
    is_list = isinstance(tokens, Iterable) and not isinstance(tokens, (str, bytes))
    listed = tuple(tokens) if is_list else ()
    require(
        is_list and all(isinstance(token, str) and token for token in listed),
        f"must be a list of tokens, got {tokens!r}",
        "special_tokens",
    )
    return listed


class _CountInTables(DocumentFn):
    """Documents to (partition, block of words), through the tables of each window."""

    by_window = True

    def __init__(self, count: CountWords, make_tables: MakeTables) -> None:
        super().__init__(count.text_field, count.dead_letters)
        self.rules = count.rules
        self.by_source = count.by_source
        self.make_tables = make_tables

    def start_bundle(self) -> None:
        """Begin without words: the words of a failed bundle are counted again."""
        super().start_bundle()
        self.tables = self.make_tables()
        # With dead letters, texts are counted into these tables first, because the tables of a
        # failed text must not be used.
        unlimited = SourceTables(self.rules, self.by_source, max_bytes=1 << 62)
        self.trial = unlimited if self.dead_letters else None

    def take(self, document: Document) -> Iterator[Any]:
        yield from super().take(document)
        if self.tables.is_full:
            yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self.take_waiting()
        for window, tables in self.tables.take():
            yield from self._blocks(window, tables.take())
            if tables.totals:
                head = counted_words.BlockHead({}, totals=self._totals(tables))
                yield from self._chunks(window, _TOTALS, head, None)

    def use(self, documents: list[Document], texts: pa.Array, batch: Any = None) -> Iterable[Any]:
        rows = self._rows(documents, texts, batch)
        window = documents[0].window
        tables = self.tables.table(window)
        if self.by_source:
            names = rows.column("source").unique().to_pylist()
            counted_words.require_few_sources("CountWords", {*tables.totals, *names})
        if self.trial is None:
            words = tables.add(rows)
        else:
            self.trial.clear()
            words = self.trial.add(rows)
            tables.add_all_of(self.trial)
        counters.counter("words_counted").inc(words)
        counters.counter("documents_read").inc(len(texts))
        return [row for blocks in tables.take_full() for row in self._blocks(window, blocks)]

    def check(self, document: Document, texts: pa.Array, batch: Any) -> None:
        assert self.trial is not None
        self.trial.clear()
        self.trial.add(self._rows([document], texts, batch))

    def _rows(self, documents: list[Document], texts: pa.Array, batch: Any) -> pa.RecordBatch:
        """Return documents as a batch of their texts, and their sources and places if needed."""
        columns = {"text": texts}
        if self.by_source:
            columns["source"] = self._sources(documents, len(texts), batch)
        if self.rules.with_places:
            columns["place"] = _places(batch)
        return pa.RecordBatch.from_arrays([*columns.values()], [*columns])

    def _sources(self, documents: list[Document], rows: int, batch: Any) -> pa.Array:
        if batch is None:
            names = pa.array(map(_source_of, documents), pa.large_string())
        elif elements.has_key(documents[0].element):
            key = _source_of(documents[0])
            names = pa.repeat(pa.scalar(key, pa.large_string()), rows)
        else:
            labels = label_column(batch, "source", "CountWords")
            names = pa.nulls(rows, pa.large_string()) if labels is None else labels
        names = known_sources(names)
        for name in names.unique().to_pylist():
            check_sources([name])
        return names

    def _totals(self, tables: SourceTables) -> CountsManifest:
        """Return the totals of tables as a manifest without parts."""
        sources = source_totals([tables.totals], ())
        every = sources.values()
        return CountsManifest(
            **self.rules.of_counts,
            documents=sum(each.documents for each in every),
            text_bytes=sum(each.text_bytes for each in every),
            words=sum(each.words for each in every),
            unique_words=0,
            word_bytes=0,
            rejects={},
            inputs=(),
            parts=(),
            sources=sources if self.by_source else None,
        )

    def _blocks(self, window: Any, words: SourceBlocks) -> Iterator[WindowedValue]:
        for source, blocks in words.items():
            head = counted_words.BlockHead({}, source, self.rules.with_places)
            for partition, block in blocks:
                counters.counter("count_blocks").inc()
                yield from self._chunks(window, partition, head, block)

    def _chunks(
        self, window: Any, partition: int, head: counted_words.BlockHead, block: Any
    ) -> Iterator[WindowedValue]:
        for chunk in counted_words.to_block_chunks(head, block):
            counters.counter("count_block_bytes").inc(len(chunk[-1]))
            yield WindowedValue((partition, chunk), window.max_timestamp(), (window,))


def _source_of(document: Document) -> str | None:
    """Return the source of a single document: its key, or its field `source`."""
    if elements.has_key(document.element):
        return label_of(document.element[0], "the key of a document", "CountWords")
    source = (elements.fields_of(document.element) or {}).get("source")
    return label_of(source, "the field 'source' of a document", "CountWords")


def _places(batch: Any) -> pa.Array:
    if batch is None:
        raise DataError("with_places needs batches with a column 'place', not single texts")
    if "place" not in batch.schema.names:
        raise DataError("with_places needs batches with a column 'place'")
    places = elements.column_of(batch, "place")
    if places.null_count:
        raise DataError(
            "with_places needs the place of every document, which is unknown where a "
            "compressed file was split: set cut_compressed=False in ReadDocuments"
        )
    return places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places


def _add_blocks(
    element: tuple[int, Iterable[shuffles.Chunk]], rules: counted_words.Rules
) -> Iterator[pa.RecordBatch]:
    """Yield the words of one partition's blocks, each once for each source, or the totals."""
    gathered = counted_words.GatheredWords("CountWords")
    for _ in gathered.add_chunks(element[1]):
        pass
    totals = gathered.totals()
    if totals is not None:
        yield counted_words.totals_batch(totals)
    for source, table in sorted(gathered.tables.items()):
        counters.counter("unique_words").inc(len(table))
        yield from counted_words.word_batches(table, source, rules)
