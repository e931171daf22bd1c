"""`CountPairs`: counted words in, counts of adjacent symbol pairs out.

`PairCountsFn` is the combiner: its accumulators are native tables that merge. `CountPairs` runs it
on any size of input: each worker adds words to accumulators of a limited size and hands these on in
blocks of at most `BLOCK_BYTES`, by shards of pairs. So a frequent pair is one row of a worker's
block like any other. Beam's own lifting would limit accumulators by their number, not their bytes,
and send each as one element.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms import trigger
from apache_beam.utils.windowed_value import WindowedValue
from numpy.typing import NDArray

from bpe_beam.counts.pair_counts import PAIR_SHARDS, PairCounts, decode_pairs, encode_pairs
from bpe_beam.counts.word_counts import BLOCK_BYTES
from bpe_beam.errors import DataError, UsageError
from bpe_beam.training.recipe import SYMBOLS, require_choice
from bpe_beam.transforms.coders import PairCountsCoder
from bpe_beam.transforms.count_words import HELD_SECONDS, TABLE_BYTES
from bpe_beam.transforms.elements import text_column

SCHEMA = pa.schema([("left", pa.string()), ("right", pa.string()), ("count", pa.int64())])

# Words that are counted at once: what is made of them on the way has a limit, too.
_ROWS = 1 << 16
# Below a megabyte with the key, the batch's own schema and Arrow's padding.
_SHUFFLED_BYTES = BLOCK_BYTES - 100
# Two characters of at most 4 bytes, an offset for each, a count.
_OUTPUT_ROWS = (BLOCK_BYTES - 2048) // 24


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(pa.RecordBatch)
class PairCountsFn(beam.CombineFn):
    """Combines batches of counted words to one batch of the counts of adjacent symbol pairs.

    For `CombinePerKey` and `CombineGlobally`, where a key's pairs are few: they are one
    accumulator, and it travels as one element of 16 bytes a pair. `CountPairs` has no such limit.

    Elements are batches as `CountWords` makes them, the result is one as `CountPairs` makes them,
    of any size; without words it is empty.

    Args:
        symbols: "bytes" (a pair is two characters of the byte-level alphabet) or "characters".

    Raises:
        UsageError: Other symbols.
    """

    def __init__(self, symbols: str = "bytes") -> None:
        require_choice("symbols", symbols, SYMBOLS)
        self.symbols = symbols

    def create_accumulator(self) -> PairCounts:
        """An empty table."""
        return PairCounts()

    def add_input(self, accumulator: PairCounts, element: pa.RecordBatch) -> PairCounts:
        """Counts the pairs of a batch of counted words.

        Raises:
            DataError: A batch that has none, a count below 1, or a sum beyond 64 bits.
        """
        words = text_column(element, "word")
        counts = _count_column(element)
        for start in range(0, len(words), _ROWS):
            accumulator.add_texts(
                words.slice(start, _ROWS), counts.slice(start, _ROWS), self.symbols
            )
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[PairCounts]) -> PairCounts:
        """One table of all pairs; the first of the tables, or a new one."""
        rest = iter(accumulators)
        merged = next(rest, None) or PairCounts()
        for each in rest:
            merged.add(each)
        return merged

    def compact(self, accumulator: PairCounts) -> PairCounts:
        """The table itself: encoded, it has no free slots."""
        return accumulator

    def extract_output(self, accumulator: PairCounts) -> pa.RecordBatch:
        """The pairs, sorted by left and right."""
        return _as_text(accumulator.to_batch())

    def get_accumulator_coder(self) -> PairCountsCoder:
        """Deterministic: equal tables give equal bytes."""
        return PairCountsCoder()


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(pa.RecordBatch)
class CountPairs(beam.PTransform):
    """Counts the adjacent symbol pairs of counted words, per window.

    Elements are batches of `word` (string) and `count` (int64) as `CountWords` makes them; other
    columns are passed over, and a word may stand in several rows. The output is Arrow batches of
    `left`, `right` (string) and `count` (int64), each pair once, in blocks of at most 1 MB; each is
    sorted by left and right. Overlapping pairs count each: `aaa` has (a, a) twice.

    A worker holds `table_bytes`, and after the shuffle one shard's pairs, at 26 to 77 bytes each
    and 32 while they are handed on. Where windows fire more than once, each pane has the pairs of
    its own words, so that the panes of a window add up to what one would have given.

    Args:
        symbols: "bytes" (a pair is two characters of the byte-level alphabet) or "characters".
        shards: Pairs of one shard are added on one worker.
        table_bytes: What a worker's tables may hold before they are handed on.

    Raises:
        UsageError: A setting out of its range; panes that accumulate, whose sum would count words
            again.
    """

    def __init__(
        self,
        *,
        symbols: str = "bytes",
        shards: int = PAIR_SHARDS,
        table_bytes: int = TABLE_BYTES,
    ) -> None:
        super().__init__()
        if shards < 1:
            raise UsageError(f"shards is {shards}: 1 or more")
        if table_bytes < 1_000_000:
            raise UsageError(f"table_bytes is {table_bytes}: at least 1,000,000")
        self.combiner = PairCountsFn(symbols)
        self.shards = shards
        self.table_bytes = table_bytes

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Wires the steps."""
        if words.windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
            raise UsageError(
                "CountPairs: the windows' panes accumulate, so that their sum would count words "
                "again; window the words with accumulation_mode=AccumulationMode.DISCARDING"
            )
        seconds = None if words.is_bounded else HELD_SECONDS
        count = _CountInTables(self.combiner, self.shards, self.table_bytes, seconds)
        return (
            words
            | "CountInTables" >> beam.ParDo(count)
            | "GatherShards" >> beam.GroupByKey()
            | "AddBlocks" >> beam.ParDo(_AddBlocks(self.combiner))
        )


@beam.typehints.with_input_types(pa.RecordBatch, window=beam.typehints.Any)
@beam.typehints.with_output_types(tuple[int, bytes])
class _CountInTables(beam.DoFn):
    """Counted words to (shard, block), through an accumulator a window."""

    def __init__(
        self, combiner: PairCountsFn, shards: int, table_bytes: int, held_seconds: float | None
    ) -> None:
        self.combiner = combiner
        self.shards = shards
        self.table_bytes = table_bytes
        self.held_seconds = held_seconds

    def start_bundle(self) -> None:
        """Begins with no pairs: what a failed bundle counted is counted again."""
        self.tables: dict[Any, PairCounts] = {}
        self.since = time.monotonic()

    def process(
        self, element: pa.RecordBatch, window: Any = beam.DoFn.WindowParam
    ) -> Iterator[WindowedValue]:
        """Counts one batch; hands everything on when the tables have grown to their limit."""
        for start in range(0, len(element), _ROWS):
            table = self.tables.get(window)
            if table is None:
                table = self.combiner.create_accumulator()
            self.tables[window] = self.combiner.add_input(table, element.slice(start, _ROWS))
            held = sum(each.memory_bytes for each in self.tables.values())
            waited = time.monotonic() - self.since
            late = self.held_seconds is not None and waited > self.held_seconds
            if late or held > self.table_bytes:
                yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Hands on what is left."""
        tables, self.tables = self.tables, {}
        self.since = time.monotonic()
        for window, table in tables.items():
            for shard, block in table.blocks(self.shards, _SHUFFLED_BYTES):
                yield WindowedValue((shard, encode_pairs(block)), window.max_timestamp(), (window,))


@beam.typehints.with_input_types(tuple[int, Iterable[bytes]])
@beam.typehints.with_output_types(pa.RecordBatch)
class _AddBlocks(beam.DoFn):
    """One shard's blocks to its pairs, each once."""

    def __init__(self, combiner: PairCountsFn) -> None:
        self.combiner = combiner

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[pa.RecordBatch]:
        """Adds the blocks as they stream in."""
        table = self.combiner.create_accumulator()
        for data in element[1]:
            table.add_block(decode_pairs(data))
        for _, block in table.blocks(shards=1):
            text = _as_text(block)
            for start in range(0, len(text), _OUTPUT_ROWS):
                yield text.slice(start, _OUTPUT_ROWS)


def _count_column(batch: pa.RecordBatch) -> pa.Array:
    """The counts of a batch of counted words, checked: int64, no null."""
    if "count" not in batch.schema.names:
        raise DataError(f"a batch has no column 'count', only {', '.join(batch.schema.names)}")
    counts = batch.column("count")
    if counts.type != pa.int64() or counts.null_count:
        raise DataError(
            f"the column 'count' of a batch holds {counts.type} with {counts.null_count} nulls, "
            "not int64 without"
        )
    return counts


def _as_text(pairs: pa.RecordBatch) -> pa.RecordBatch:
    """The same pairs, the code points of their symbols as strings."""
    left, right = (_characters(pairs.column(name).to_numpy()) for name in ("left", "right"))
    return pa.RecordBatch.from_arrays([left, right, pairs.column("count")], schema=SCHEMA)


def _characters(codes: NDArray[np.uint32]) -> pa.StringArray:
    """Strings of one character each."""
    utf8 = codes.tobytes().decode("utf-32-le").encode()
    begins = np.flatnonzero((np.frombuffer(utf8, np.uint8) & 0xC0) != 0x80)
    offsets = np.append(begins, len(utf8)).astype(np.int32)
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(utf8))
