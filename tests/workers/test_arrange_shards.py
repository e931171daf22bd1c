"""Plans of new shards, and their pieces: each is needed once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_beam.errors import DataError
from bpe_beam.shards.arrangement import Arrangement
from bpe_beam.storage import Storage
from bpe_beam.workers import arrange_shards
from bpe_beam.workers.arrange_shards import (
    PartPlan,
    PartSums,
    Pieces,
    _all_pieces,
    _PiecesFile,
    _Units,
    check_pieces,
)

SUMS = st.tuples(st.integers(0, 50), st.integers(0, 10**6)).map(
    lambda pair: PartSums(pair[0], pair[1] if pair[0] else 0)
)


@given(st.lists(SUMS, max_size=20), st.integers(1, 40))
def test_shards_of_equal_tokens_have_each_document_once(
    measured: list[PartSums], shards: int
) -> None:
    measured.append(PartSums(3, 1))
    plan = PartPlan.by_tokens("", measured, shards)
    assert plan.units == sum(each.documents for each in measured)
    assert 1 <= plan.shards <= shards
    bounds = [plan.bounds(shard) for shard in range(plan.shards)]
    assert [bounds[0][0], *(stop for _, stop in bounds)] == [*plan.starts, plan.units]
    assert all(start < stop for start, stop in bounds)
    found = plan.shard_of(np.arange(plan.units))
    assert found.tolist() == [
        shard for shard, (start, stop) in enumerate(bounds) for _ in range(start, stop)
    ]


def test_long_documents_take_the_shards() -> None:
    measured = [PartSums(1000, 1000), PartSums(10, 9000)]
    assert PartPlan.by_tokens("", measured, 10).starts == (0, *range(1000, 1009))
    assert PartPlan.even("", 10, 3).starts == (0, 3, 6)


def test_pieces_of_every_shard_are_there_once() -> None:
    files = [Pieces(f"out/run-{i}/pieces-{i}.bin", 2) for i in range(3)]
    check_pieces(files, 3)
    for wrong in (files[:2], [*files, files[0]], [*files[:2], files[0]], []):
        with pytest.raises(DataError, match="a piece of a document is missing or doubled"):
            check_pieces(wrong, 3)


@pytest.mark.parametrize("most", [0, 3_000, 10**9])
def test_the_pieces_of_a_new_shard_are_one_range(
    most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However often the buffer is full, every new shard gets its pieces in their order."""
    monkeypatch.setattr(arrange_shards, "BUFFER_BYTES", most)
    monkeypatch.setattr(arrange_shards, "_COPIED_BYTES", 500)
    rng = np.random.default_rng(4)
    schema = pa.schema([("position", pa.int64()), ("ids", pa.large_binary())])
    buckets = [rng.integers(0, 7, size) for size in (100, 0, 1, 300, 50)]
    buckets[3][:] = 5
    rows = pa.RecordBatch.from_pydict(
        {"position": range(451), "ids": [rng.bytes(size) for size in rng.integers(0, 90, 451)]},
        schema=schema,
    )
    path = tmp_path / "pieces.bin"
    with path.open("wb") as stored, _PiecesFile(stored, schema, 8) as file:
        start = 0
        for each in buckets:
            file.add(rows.slice(start, each.size), each)
            start += each.size
        table_at = file.finish()
    task = SimpleNamespace(
        folder=SimpleNamespace(storage=Storage()),
        pieces_schema=schema,
        arrangement=Arrangement(shard_tokens=500),  # some new shards have more
        id_type=np.dtype(np.uint16),
    )
    all_buckets = np.concatenate(buckets)
    for bucket in range(8):
        found = _all_pieces(task, [Pieces(str(path), table_at)], bucket)
        assert found["ids"].num_chunks == 1
        chosen = np.flatnonzero(all_buckets == bucket)
        assert found.to_pylist() == rows.take(pa.array(chosen)).to_pylist()


# Units 10 to 12: of one piece, of three, of one that is empty.
PIECES = [(10, 0, 4), (11, 0, 2), (11, 2, 3), (11, 5, 1), (12, 0, 0)]


def units_of(pieces: list[tuple[int, int, int]]) -> _Units:
    columns = {
        "position": pa.array([piece[0] for piece in pieces], pa.int64()),
        "offset": pa.array([piece[1] for piece in pieces], pa.int64()),
        "ids": pa.array([b"ab" * piece[2] for piece in pieces], pa.large_binary()),
    }
    return _Units(pa.table(columns), 2, 10, 13)


def test_pieces_in_any_order_are_units() -> None:
    for shift in range(len(PIECES)):
        units = units_of(PIECES[shift:] + PIECES[:shift])
        assert units.lengths.tolist() == [4, 6, 0]
        assert units.piece_lengths(0, 3).to_pylist() == [[4], [2, 3, 1], [0]]
        assert units.rows(1, 2).column("offset").to_pylist() == [0, 2, 5]


# But for the last piece of a sequence, which only the sum over all shards can tell.
@pytest.mark.parametrize("missing", [*PIECES[:3], PIECES[4]])
def test_a_missing_piece_is_noticed(missing: tuple[int, int, int]) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        units_of([piece for piece in PIECES if piece != missing])


@pytest.mark.parametrize("doubled", PIECES[:4])
def test_a_doubled_piece_is_noticed(doubled: tuple[int, int, int]) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        units_of([*PIECES, doubled])


@pytest.mark.parametrize("position", [9, 13])
def test_a_piece_of_another_shard_is_noticed(position: int) -> None:
    with pytest.raises(DataError, match="missing or doubled"):
        units_of([*PIECES, (position, 0, 1)])
