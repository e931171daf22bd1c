"""Elements between steps: coders, long values in chunks, tasks, and a correction of a runner."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe_beam.counts.packed_words import PairCounts
from bpe_beam.counts.word_table import BLOCK_BYTES
from bpe_beam.errors import DataError

CHUNK_BYTES = BLOCK_BYTES - 100
"""Maximum bytes of a chunk; its key and its numbers need less than the other 100."""

Chunk = tuple[bytes, int, int, bytes]
"""A hash of the whole value (empty for a value of one chunk), the number of the chunk, the number
of all chunks of the value, and the bytes of the chunk."""


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
