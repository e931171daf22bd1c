"""Tasks and long values through a shuffle, in chunks, because an element has at most 1 MB there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from bpe_beam.counts.word_table import BLOCK_BYTES
from bpe_beam.errors import DataError

CHUNK_BYTES = BLOCK_BYTES - 100
"""Maximum bytes of a chunk; its key and its numbers need less than the other 100."""

Chunk = tuple[bytes, int, int, bytes]
"""A hash of the whole value (empty for a value of one chunk), the number of the chunk, the number
of all chunks of the value, and the bytes of the chunk."""


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
