"""Tasks that are spread over workers."""

from __future__ import annotations

import pytest

from bpe_beam.errors import DataError
from bpe_beam.transforms import (
    spread_tasks,
)
from bpe_beam.transforms.chunks import CHUNK_BYTES


def test_tasks_that_lack_a_chunk_are_refused() -> None:
    task = "long" * CHUNK_BYTES
    spread = spread_tasks.SpreadTasks(["short \udcff", task])
    long = [chunk for number, chunk in spread.chunks if number == 1]
    assert len(long) == 4
    assert list(spread_tasks._join_chunks((1, reversed(long)))) == [task]
    assert list(spread_tasks._join_chunks((0, [spread.chunks[0][1]]))) == ["short \udcff"]
    for wrong in (long[1:], long[:-1], [*long, long[2]], [*long, *long]):
        with pytest.raises(DataError, match=r"the runner (lost one|delivered a task twice)"):
            list(spread_tasks._join_chunks((1, wrong)))
