"""Pairs added up, words cut at their cold boundaries, segments added up.

`training/rounds.py` says why.

A worker holds the round's hot pairs, and one table: of at most `TABLE_BYTES` where it cuts, of one
shard's pairs or segments where it adds up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_beam import _native, progress
from bpe_beam.counts.packed_words import (
    PACKED_SCHEMA,
    Columns,
    PackedCounts,
    checked,
    columns_of,
    from_stream,
    read_words,
    symbols_of,
    to_stream,
    write_words,
)
from bpe_beam.counts.pair_counts import PAIR_SCHEMA, PairCounts
from bpe_beam.errors import DataError
from bpe_beam.training.rounds import ShardPairs, threshold
from bpe_beam.training.segments import width_of
from bpe_beam.training.trainer_limits import Size
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.rounds.task import (
    CANDIDATES,
    HOT_PAIRS,
    TABLE_BYTES,
    Held,
    PieceWork,
    Place,
    RoundTask,
    Written,
    open_blocks,
    read_blocks,
    read_file,
    round_file,
    write_file,
)
from bpe_beam.workers.split_task import piece_name

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right, count."""

_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))
_held_hot_pairs: Held[_native.HotPairs | None] = Held()


def sum_pairs(task: RoundTask, shard: int, places: Iterable[Place]) -> str:
    """Adds the pairs of a shard up; gives where its frequent pairs stand, for `cut_piece`."""
    pairs = PairCounts()
    places = once("pairs", places)
    for data in read_blocks(task.receipts.storage, places):
        pairs.add_block(from_stream(data, PAIR_SCHEMA, "a block of pairs"))
    given = round_file(task)
    hot, floor = pairs.frequent(task.floor, HOT_PAIRS // task.shards)
    best = pairs.best(CANDIDATES, given.ranks)
    files = [
        write_file(task, f"pairs/{piece_name('hot', shard, task.shards)}.arrow", to_stream(hot)),
        write_file(task, f"pairs/{piece_name('best', shard, task.shards)}.arrow", to_stream(best)),
    ]
    most = int(best.column("count")[0].as_py()) if best.num_rows else 0
    facts = {"floor": floor, "most": most, "pairs": len(pairs), "hot": hot.num_rows}
    facts["blocks"] = len(places)
    task.receipts.write_receipt(piece_name("pairs", shard, task.shards), files, facts)
    return json.dumps({**facts, **files[0]})


def cut_piece(
    task: RoundTask, element: str, pieces: Iterable[str], shards: Iterable[str]
) -> Written:
    """Cuts a piece into segments, and counts them.

    Args:
        task: The round.
        element: The piece, as `rewrite_piece` gave it.
        pieces: All pieces, likewise.
        shards: What `sum_pairs` gave.
    """
    work = PieceWork.from_json(element)
    storage = task.receipts.storage
    hot = _held_hot_pairs.get(
        (task.receipts.url, task.given), lambda: _hot_pairs(task, pieces, shards)
    )
    table = PackedCounts()
    symbols = 0
    with ExitStack() as stack:
        blocks = open_blocks(task, stack, "segments", work.number)
        for columns in read_words(storage, work.source["url"], work.source["sha256"]):
            with checked(work.source["url"]):
                cut = columns if hot is None else hot.cut(*columns, singles=task.singles)
            symbols += symbols_of(cut)
            table.add(cut)
            if table.memory_bytes > TABLE_BYTES:
                blocks.write(table.blocks(task.shards))
                table.clear()
        blocks.write(table.blocks(task.shards))
    facts = {"symbols": symbols, "blocks": len(blocks.places)}
    task.receipts.write_receipt(
        piece_name("cut", work.number, task.pieces), [blocks.facts()], facts
    )
    progress.report(task.stage, pieces=1)
    return Written(element, blocks.places, {measures.SEGMENT_BLOCK_BYTES: blocks.bytes})


def size_of(pieces: Iterable[Mapping[str, Any]]) -> Size:
    """How much all pieces have, by the facts of each."""
    rows = [(piece["words"], piece["symbols"], piece["width"]) for piece in pieces]
    return Size(*(sum(row[i] for row in rows) for i in range(3)))


def once(kind: str, places: Iterable[Place]) -> list[Place]:
    """The places of a shard's blocks.

    Raises:
        DataError: One is there twice, so that what it counts would be.
    """
    found = list(places)
    if len(set(found)) < len(found):
        raise DataError(
            f"the runner gave a block of {kind} twice: the same command goes on from the last round"
        )
    return found


def require_all(
    kind: str, made: Iterable[Mapping[str, Any]], added: Iterable[Mapping[str, Any]]
) -> None:
    """Refuses sums of which a part is missing: blocks that pieces made, and the runner lost. That
    none came twice has been seen by each shard.

    Args:
        kind: Of the blocks.
        made: The facts of the pieces that made blocks.
        added: The facts of the shards that added them up.

    Raises:
        DataError: They are not as many.
    """
    blocks, sums = (sum(int(row["blocks"]) for row in rows) for rows in (made, added))
    if blocks != sums:
        raise DataError(
            f"the workers made {blocks:,} blocks of {kind}, and the runner handed on {sums:,}: the "
            "same command goes on from the last round"
        )


def width_of_columns(columns: Columns, widths: npt.NDArray[np.uint32] | None) -> int:
    """The characters that packed symbols cover, or how many these are; see `room.Size`."""
    if widths is None:
        return symbols_of(columns)
    symbols, _ = _native.unpack_symbols(columns[0], columns[1])
    return width_of(symbols, widths)


def floor_of(task: RoundTask, words: Size, shards: Iterable[ShardPairs]) -> int | None:
    """The threshold that a round is cut by; None: nothing is cut, since all words fit the driver.

    Every worker and the driver find the same.

    Args:
        task: The round.
        words: Of the state.
        shards: What is known of each shard's pairs.
    """
    if task.room.holds(words):
        return None
    return threshold(list(shards), task.divisor)


def read_hot(task: RoundTask, files: Iterable[Mapping[str, Any]], floor: int) -> Pairs:
    """All pairs that count at least `floor`: left, right, count."""
    found = [_read_pairs(task, file) for file in files]
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *found, strict=True))
    kept = counts >= floor
    return left[kept], right[kept], counts[kept]


def read_best(
    task: RoundTask, files: Iterable[Mapping[str, Any]], ranks: npt.NDArray[np.uint32] | None
) -> tuple[Pairs, bool]:
    """The best pairs of all shards, in the tie rule's order, as far as they are known for sure;
    and whether there are no others."""
    found = [_read_pairs(task, file) for file in files]
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *found, strict=True))
    places = np.repeat(np.arange(len(found)), [len(shard[0]) for shard in found])
    by = (left, right) if ranks is None else (ranks[left], ranks[right])
    order = np.lexsort((by[1], by[0], -counts))
    # After the last of a list that was broken off, that shard's own may come.
    broken = [i for i, shard in enumerate(found) if len(shard[0]) == CANDIDATES]
    lasts = [int(np.flatnonzero(places[order] == i)[-1]) for i in broken]
    sure = order[: min(lasts, default=len(order)) + 1]
    return (left[sure], right[sure], counts[sure]), not broken


def _read_pairs(task: RoundTask, file: Mapping[str, Any]) -> Pairs:
    url = task.url(file["name"])
    data = read_file(task.receipts.storage, url, file["sha256"])
    batch = from_stream(data, PAIR_SCHEMA, url)
    left, right, counts = (batch.column(name).to_numpy() for name in PAIR_SCHEMA.names)
    return left, right, counts


def _hot_pairs(
    task: RoundTask, pieces: Iterable[str], shards: Iterable[str]
) -> _native.HotPairs | None:
    sources = [PieceWork.from_json(piece).source for piece in pieces]
    rows = [json.loads(shard) for shard in shards]
    require_all("pairs", sources, rows)
    size = size_of(sources)
    known = [ShardPairs(row["floor"], row["most"]) for row in rows]
    floor = floor_of(task, size, known)
    if floor is None:
        return None
    left, right, _ = read_hot(task, rows, floor)
    return _native.HotPairs(left, right)


def add_segments(task: RoundTask, shard: int, places: Iterable[Place]) -> str:
    """Adds the segments of a shard up and writes them; gives the piece's name."""
    table = PackedCounts()
    places = once("segments", places)
    for data in read_blocks(task.receipts.storage, places):
        table.add(columns_of(from_stream(data, PACKED_SCHEMA, "a block of segments")))
    widths = round_file(task).widths
    width = 0
    name = f"segments/{piece_name('segments', shard, task.shards)}.arrow"
    with write_words(task.receipts.storage, task.url(name)) as writer:
        for _, block in table.blocks(1):
            columns = columns_of(block)
            writer.write(columns)
            width += width_of_columns(columns, widths)
    facts = {"words": writer.words, "symbols": writer.symbols, "width": width}
    facts["blocks"] = len(places)
    piece = piece_name("segments", shard, task.shards)
    task.receipts.write_receipt(piece, [writer.facts(name)], facts)
    return piece
