"""Rows of new shards, made of slices: each slice is needed once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bpe_beam.errors import DataError
from bpe_beam.workers.arrange.block_files import one_of_each
from bpe_beam.workers.arrange.new_shard import NewRows


def test_each_shard_has_one_block_file() -> None:
    files = [f"out/run-{i}/scatter-{i}.bin" for i in range(3)]
    one_of_each(files, 3)
    for wrong in (files[:2], [*files, files[0]], [*files[:2], files[0]], []):
        with pytest.raises(DataError, match="a slice of a document is missing or doubled"):
            one_of_each(wrong, 3)


# Rows 10 to 12: of one slice, of three, of one that is empty.
SLICES = [(10, 0, 4), (11, 0, 2), (11, 2, 3), (11, 5, 1), (12, 0, 0)]


def rows_of(slices: list[tuple[int, int, int]]) -> NewRows:
    columns = {
        "position": pa.array([slice[0] for slice in slices], pa.int64()),
        "offset": pa.array([slice[1] for slice in slices], pa.int64()),
        "ids": pa.array([b"ab" * slice[2] for slice in slices], pa.large_binary()),
    }
    return NewRows(pa.table(columns), 2, 10, 13)


def test_slices_in_any_order_are_rows() -> None:
    for shift in range(len(SLICES)):
        rows = rows_of(SLICES[shift:] + SLICES[:shift])
        assert rows.bounds.tolist() == [0, 4, 10, 10]
        assert rows.slice_lengths(0, 3).to_pylist() == [[4], [2, 3, 1], [0]]
        assert rows.slices(1, 2).column("offset").to_pylist() == [0, 2, 5]


# But for the last slice of a sequence, which only the sum over all shards can tell.
@pytest.mark.parametrize("missing", [*SLICES[:3], SLICES[4]])
def test_a_missing_slice_is_noticed(missing: tuple[int, int, int]) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        rows_of([slice for slice in SLICES if slice != missing])


@pytest.mark.parametrize("doubled", SLICES[:4])
def test_a_doubled_slice_is_noticed(doubled: tuple[int, int, int]) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        rows_of([*SLICES, doubled])


@pytest.mark.parametrize("position", [9, 13])
def test_a_slice_of_another_shard_is_noticed(position: int) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        rows_of([*SLICES, (position, 0, 1)])
