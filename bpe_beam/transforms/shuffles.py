"""Elements between steps: tables before a shuffle, coders, chunks, tasks, a corrected runner."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms import trigger
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type

from bpe_beam.counts.round_files import PairCounts
from bpe_beam.counts.word_table import BLOCK_BYTES
from bpe_beam.errors import DataError, UsageError, require_whole
from bpe_beam.workers.source_tables import SourceTables

CHUNK_BYTES = BLOCK_BYTES - 100
"""Maximum bytes of a chunk; its key and its numbers need less than the other 100."""

Chunk = tuple[bytes, int, int, bytes]
"""A hash of the whole value (empty for a value of one chunk), the number of the chunk, the number
of all chunks of the value, and the bytes of the chunk."""


TABLE_BYTES = 128_000_000  # the default memory of a worker's tables, in bytes

UNBOUNDED_SECONDS = 2.0
"""Maximum time that tables of unbounded input wait, if a runner's bundle lasts longer."""

T = TypeVar("T", bound=SourceTables | PairCounts)


class WindowTables(Generic[T]):
    """A table for each window of a bundle, until the tables take too much memory or time."""

    def __init__(self, make: Callable[[], T], table_bytes: int, max_seconds: float | None) -> None:
        self._make = make
        self._table_bytes = table_bytes
        self._max_seconds = max_seconds
        self._tables: dict[Any, T] = {}
        self._since = time.monotonic()

    def table(self, window: Any) -> T:
        """Return the table of a window; a new one for a window not seen yet."""
        if window not in self._tables:
            self._tables[window] = self._make()
        return self._tables[window]

    @property
    def is_full(self) -> bool:
        """Whether the tables must be written out."""
        # The age, not the number of windows: an empty table has a size too, and many small windows
        # must not be written out at every element.
        if self._max_seconds is not None and time.monotonic() - self._since > self._max_seconds:
            return True
        return sum(table.memory_bytes for table in self._tables.values()) > self._table_bytes

    def take(self) -> list[tuple[Any, T]]:
        """Return the windows and their tables, and begin anew without tables."""
        tables, self._tables = self._tables, {}
        self._since = time.monotonic()
        return list(tables.items())


def tables_of(
    make: Callable[[], T], table_bytes: int, elements: beam.pvalue.PCollection, transform: str
) -> Callable[[], WindowTables[T]]:
    """Return a function that makes the tables of a bundle."""
    if elements.windowing.accumulation_mode == trigger.AccumulationMode.ACCUMULATING:
        raise UsageError(
            f"{transform}: the windows accumulate panes, so that the sum of panes would count "
            "elements again; use accumulation_mode=AccumulationMode.DISCARDING"
        )
    max_seconds = None if elements.is_bounded else UNBOUNDED_SECONDS
    return partial(WindowTables, make, table_bytes, max_seconds)


def check_table_bytes(table_bytes: int) -> None:
    """Refuse a memory limit of a worker's tables below 1,000,000 bytes."""
    require_whole("table_bytes", table_bytes, 1_000_000)


class _ArrowCoder(beam.coders.Coder):
    """A coder whose equal values have equal bytes."""

    kind: Any
    """The type that the coder is registered for."""

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return self.kind


class RecordBatchCoder(_ArrowCoder):
    """A `pyarrow.RecordBatch` as an Arrow IPC stream of one batch, schema included."""

    kind = pa.RecordBatch

    def encode(self, value: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return bytes(sink.getvalue())

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()


class TokensCoder(_ArrowCoder):
    """A `pyarrow.UInt32Array` without nulls, the ids of one document, as little-endian bytes."""

    kind = pa.UInt32Array

    def encode(self, value: pa.UInt32Array) -> bytes:
        return bytes(value.to_numpy().astype("<u4", copy=False).tobytes())

    def decode(self, encoded: bytes) -> pa.UInt32Array:
        buffers = [None, pa.py_buffer(encoded)]
        return pa.Array.from_buffers(pa.uint32(), len(encoded) // 4, buffers)


class PairCountsCoder(_ArrowCoder):
    """A `PairCounts`, the accumulator of `PairCountsFn`: 16 bytes per pair."""

    kind = PairCounts

    def encode(self, value: PairCounts) -> bytes:
        return value.to_bytes()

    def decode(self, encoded: bytes) -> PairCounts:
        return PairCounts.from_bytes(encoded)


for coder in (PairCountsCoder, RecordBatchCoder, TokensCoder):
    beam.coders.registry.register_coder(coder.kind, coder)


def to_chunks(data: bytes) -> Iterator[Chunk]:
    """Yield the chunks of a value; one for a value of at most `CHUNK_BYTES`."""
    if len(data) <= CHUNK_BYTES:
        yield b"", 0, 1, data
        return
    name = hashlib.blake2b(data, digest_size=16).digest()
    total = -(-len(data) // CHUNK_BYTES)
    for number in range(total):
        start = number * CHUNK_BYTES
        yield name, number, total, data[start : start + CHUNK_BYTES]


def from_chunks(chunks: Iterable[Chunk], what: str) -> Iterator[bytes]:
    """Yield the values of chunks, which may come in any order and mixed.

    Keeps the chunks of incomplete values in memory.
    """
    incomplete: dict[bytes, list[list[bytes]]] = {}
    for name, number, total, data in chunks:
        if total == 1:
            yield data
            continue
        by_number = incomplete.setdefault(name, [[] for _ in range(total)])
        by_number[number].append(data)
        if all(by_number):
            yield b"".join(copies.pop() for copies in by_number)
    if any(copies for by_number in incomplete.values() for copies in by_number):
        raise DataError(
            f"a {what} of over a megabyte was split: a trigger fired between its chunks, or the "
            "runner lost one; if a trigger did, filter out documents that are not text"
        )


def outputs_of(
    collection: beam.pvalue.PCollection, label: str, step: beam.ParDo, types: Mapping[str, Any]
) -> beam.pvalue.DoOutputsTuple:
    """Apply a step with several outputs; `types` has their types by tag, the main one first.

    Beam's checks at run time know only one hint, for all outputs together.
    """
    types = {tag: convert_to_beam_type(kind) for tag, kind in types.items()}
    main, *tags = types
    hint = beam.typehints.Union[tuple(types.values())]
    outputs = collection | label >> step.with_outputs(*tags, main=main).with_output_types(hint)
    for tag, kind in types.items():
        outputs[tag].element_type = kind
    return outputs


class CreateElements(beam.PTransform):
    """Returns a collection of the elements, which are part of the pipeline's description.

    Beam's own `Create` does the same, but labels its steps by line numbers of Beam and has no
    types.
    """

    def __init__(self, elements: Iterable[Any], element_type: Any) -> None:
        super().__init__()
        # Not a lambda: Beam pickles it with this file's path, which Dataflow must not show.
        self.create = beam.FlatMap(_all_of, list(elements)).with_output_types(element_type)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        return begin | "Begin" >> beam.Impulse() | "Create" >> self.create


def _all_of(_: bytes, elements: list[Any]) -> list[Any]:
    return elements


@beam.typehints.with_output_types(str)
class SpreadTasks(beam.PTransform):
    """Returns tasks as elements that are spread over the workers.

    The shuffle is by the number of the task. Beam's own `Reshuffle` uses random numbers, but
    carries windows and timestamps along, pickled. The task of many small files has some MB, so
    tasks are shuffled in chunks.
    """

    def __init__(self, tasks: Iterable[str]) -> None:
        super().__init__()
        self.chunks = [
            (number, chunk)
            for number, task in enumerate(tasks)
            # A file name that is not UTF-8 has lone surrogates.
            for chunk in to_chunks(task.encode("utf-8", "surrogatepass"))
        ]

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        return (
            begin
            | "Tasks" >> CreateElements(self.chunks, tuple[int, Chunk])
            | "Spread" >> beam.GroupByKey()
            | "JoinChunks" >> beam.FlatMap(_join_chunks).with_output_types(str)
        )


def _join_chunks(element: tuple[int, Iterable[Chunk]]) -> Iterator[str]:
    task, *others = from_chunks(element[1], "task")
    if others:
        raise DataError("the runner delivered a task twice")
    yield task.decode("utf-8", "surrogatepass")


def disable_timed_flush() -> None:
    """Make `FnApiRunner` flush streams only by size, for all later pipelines of this process.

    With several workers it also flushes each stream once a second, from a thread that copies the
    buffered elements and then empties the buffer: an element that a worker adds between these two
    steps is lost without an error. All other runners flush streams only by size.
    """
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    if not hasattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS"):
        warnings.warn(
            "bpe-beam does not know this version of Beam, whose FnApiRunner may lose elements with "
            "several workers; use one worker (--direct_num_workers=1)",
            stacklevel=2,
        )
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
