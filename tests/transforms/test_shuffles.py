"""Values over the limit of a shuffled element, and tasks: split into chunks, and joined again."""

from __future__ import annotations

import random

import pytest

from bpe_beam.errors import DataError
from bpe_beam.transforms.shuffles import (
    CHUNK_BYTES,
    SpreadTasks,
    _join_chunks,
    from_chunks,
    to_chunks,
)

pytestmark = pytest.mark.quick

LONG = bytes(random.Random(0).randbytes(2 * CHUNK_BYTES + 5))


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES])
def test_a_chunk_has_at_most_its_size(size: int) -> None:
    chunks = list(to_chunks(LONG[:size]))
    assert len(chunks) == max(1, -(-size // CHUNK_BYTES))
    assert max(len(data) for *_, data in chunks) <= CHUNK_BYTES
    assert list(from_chunks(chunks, "word")) == [LONG[:size]]


def test_chunks_come_in_any_order_and_mixed() -> None:
    other = LONG[::-1]
    chunks = [*to_chunks(LONG), *to_chunks(b"short"), *to_chunks(LONG), *to_chunks(other)]
    for seed in range(20):
        random.Random(seed).shuffle(chunks)
        assert sorted(from_chunks(chunks, "word")) == sorted([LONG, LONG, other, b"short"])


def test_a_missing_chunk_is_an_error() -> None:
    with pytest.raises(DataError, match="was split"):
        list(from_chunks(list(to_chunks(LONG))[1:], "word"))


def test_tasks_that_lack_a_chunk_are_refused() -> None:
    task = "long" * CHUNK_BYTES
    spread = SpreadTasks(["short \udcff", task])
    long = [chunk for number, chunk in spread.chunks if number == 1]
    assert len(long) == 4
    assert list(_join_chunks((1, reversed(long)))) == [task]
    assert list(_join_chunks((0, [spread.chunks[0][1]]))) == ["short \udcff"]
    for wrong in (long[1:], long[:-1], [*long, long[2]], [*long, *long]):
        with pytest.raises(DataError, match=r"the runner (lost one|delivered a task twice)"):
            list(_join_chunks((1, wrong)))
