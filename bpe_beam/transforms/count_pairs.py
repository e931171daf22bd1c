"""`CountPairs`: counted words in, counts of adjacent symbol pairs out.

Each worker adds words to accumulators of limited size and outputs these in blocks of at most
`BLOCK_BYTES`, by shards of pairs. Beam's own combiner lifting would limit the number of
accumulators, not their bytes, and send each as one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue
from numpy.typing import NDArray

from bpe_beam.counts.round_files import PairCounts, decode_pairs
from bpe_beam.counts.word_table import BLOCK_BYTES, PARTITIONS, encode_block
from bpe_beam.errors import DataError, require_choice, require_whole
from bpe_beam.training.recipe import SYMBOLS
from bpe_beam.transforms import shuffles
from bpe_beam.transforms.elements import ANY, column_of, text_column

SCHEMA = pa.schema([("left", pa.string()), ("right", pa.string()), ("count", pa.int64())])

# Words that are counted at once, which limits the memory of intermediate arrays.
_ROWS = 1 << 16
# Below 1 MB together with the key, the batch's schema and Arrow's padding.
_SHUFFLED_BYTES = BLOCK_BYTES - 100
# Two characters of at most 4 bytes, an offset for each, a count.
_OUTPUT_ROWS = (BLOCK_BYTES - 2048) // 24


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(pa.RecordBatch)
class PairCountsFn(beam.CombineFn):
    """Combines batches of counted words to one batch of the counts of adjacent symbol pairs.

    For `CombinePerKey` and `CombineGlobally`, where a key has few pairs: all pairs of a key are one
    accumulator, which is sent as one element of 16 bytes per pair. `CountPairs` has no such limit.

    Elements are batches as `CountWords` makes them. The result is one batch of the columns of
    `CountPairs`, of any size; it is empty without words.

    Args:
        symbols: "bytes" (a pair is two characters of the byte-level alphabet) or "characters".

    Raises:
        UsageError: Other symbols.
    """

    def __init__(self, symbols: str = "bytes") -> None:
        require_choice("symbols", symbols, SYMBOLS)
        self.symbols = symbols

    def create_accumulator(self) -> PairCounts:
        """Return an empty table."""
        return PairCounts()

    def add_input(self, accumulator: PairCounts, element: pa.RecordBatch) -> PairCounts:
        """See `beam.CombineFn.add_input`; the element is a batch of counted words."""
        words = text_column(element, "word")
        counts = _count_column(element)
        for start in range(0, len(words), _ROWS):
            accumulator.add_texts(
                words.slice(start, _ROWS), counts.slice(start, _ROWS), self.symbols
            )
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[PairCounts]) -> PairCounts:
        """Return the first table with the others added to it, or a new one."""
        rest = iter(accumulators)
        merged = next(rest, None) or PairCounts()
        for each in rest:
            merged.add(each)
        return merged

    def extract_output(self, accumulator: PairCounts) -> pa.RecordBatch:
        """Return the pairs, sorted by left and right."""
        return _as_text(accumulator.to_batch())

    def get_accumulator_coder(self) -> shuffles.PairCountsCoder:
        """Return a deterministic coder: equal tables give equal bytes."""
        return shuffles.PairCountsCoder()


@beam.typehints.with_input_types(pa.RecordBatch)
@beam.typehints.with_output_types(pa.RecordBatch)
class CountPairs(beam.PTransform):
    """Counts the adjacent symbol pairs of counted words, per window.

    Elements are batches of `word` (string) and `count` (int64) as `CountWords` and `ReadCounts`
    make them; other columns, such as sources, are ignored, and a word may occur in several rows.
    The output is Arrow batches of `left`, `right` (string) and `count` (int64), each pair once, in
    blocks of at most 1 MB; each is sorted by left and right. Overlapping pairs are all counted:
    `aaa` has (a, a) twice.

    A worker's tables take `table_bytes`. After the shuffle one shard's pairs take 26 to 77 bytes
    each, and 32 more while they are written. Where windows fire more than once, each pane has the
    pairs of its own words, so that the panes of a window add up to the counts of the whole window.

    Args:
        symbols: "bytes" (a pair is two characters of the byte-level alphabet) or "characters".
        shards: Number of shards, at least 1. One worker adds the pairs of one shard.
        table_bytes: Memory of a worker's tables in bytes, at least 1,000,000.

    Raises:
        UsageError: An argument out of its range; windows that accumulate panes, whose sum would
            count words again.
    """

    def __init__(
        self,
        *,
        symbols: str = "bytes",
        shards: int = PARTITIONS,
        table_bytes: int = shuffles.TABLE_BYTES,
    ) -> None:
        super().__init__()
        require_whole("shards", shards, 1)
        shuffles.check_table_bytes(table_bytes)
        self.combiner = PairCountsFn(symbols)
        self.shards = shards
        self.table_bytes = table_bytes

    def display_data(self) -> dict[str, Any]:
        """Return the settings for monitoring interfaces."""
        return {
            "symbols": self.combiner.symbols,
            "shards": self.shards,
            "table_bytes": self.table_bytes,
        }

    def expand(self, words: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        """Return the counted pairs."""
        make_tables = shuffles.tables_of(
            self.combiner.create_accumulator, self.table_bytes, words, "CountPairs"
        )
        count = _CountInTables(self.combiner, self.shards, make_tables)
        return (
            words
            | "CountInTables" >> beam.ParDo(count)
            | "GatherShards" >> beam.GroupByKey()
            | "AddBlocks" >> beam.FlatMap(_add_blocks).with_output_types(pa.RecordBatch)
        )


@beam.typehints.with_input_types(pa.RecordBatch, window=ANY)
@beam.typehints.with_output_types(tuple[int, bytes])
class _CountInTables(beam.DoFn):
    """Counted words to (shard, block of pairs), through one accumulator per window."""

    def __init__(
        self,
        combiner: PairCountsFn,
        shards: int,
        make_tables: Callable[[], shuffles.WindowTables[PairCounts]],
    ) -> None:
        self.combiner = combiner
        self.shards = shards
        self.make_tables = make_tables

    def start_bundle(self) -> None:
        """Begin without pairs: the pairs of a failed bundle are counted again."""
        self.tables = self.make_tables()

    def process(
        self, element: pa.RecordBatch, window: Any = beam.DoFn.WindowParam
    ) -> Iterator[WindowedValue]:
        for start in range(0, len(element), _ROWS):
            self.combiner.add_input(self.tables.table(window), element.slice(start, _ROWS))
            if self.tables.is_full:
                yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for window, table in self.tables.take():
            for shard, block in table.blocks(self.shards, _SHUFFLED_BYTES):
                yield WindowedValue((shard, encode_block(block)), window.max_timestamp(), (window,))


def _add_blocks(element: tuple[int, Iterable[bytes]]) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of one shard's blocks, each once."""
    table = PairCounts()
    for data in element[1]:
        table.add_block(decode_pairs(data))
    for _, block in table.blocks(1):
        text = _as_text(block)
        for start in range(0, len(text), _OUTPUT_ROWS):
            yield text.slice(start, _OUTPUT_ROWS)


def _count_column(batch: pa.RecordBatch) -> pa.Array:
    """Return the counts of a batch of counted words, checked: int64, no null."""
    counts = column_of(batch, "count")
    if counts.type != pa.int64() or counts.null_count:
        raise DataError(
            "the column 'count' of a batch must be int64 without nulls, got "
            f"{counts.type} with {counts.null_count} nulls"
        )
    return counts


def _as_text(pairs: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same pairs, with the code points of their symbols as strings."""
    left, right = (_characters(pairs.column(name).to_numpy()) for name in ("left", "right"))
    return pa.RecordBatch.from_arrays([left, right, pairs.column("count")], schema=SCHEMA)


def _characters(codes: NDArray[np.uint32]) -> pa.StringArray:
    """Return a string of one character for each code point."""
    utf8 = codes.tobytes().decode("utf-32-le").encode()
    begins = np.flatnonzero((np.frombuffer(utf8, np.uint8) & 0xC0) != 0x80)
    offsets = np.append(begins, len(utf8)).astype(np.int32)
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(utf8))
