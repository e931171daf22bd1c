"""Tables of the documents of a mixture: their keys, and which of them are taken.

A table is an array of records, one for each document. The steps from the documents to the order of
those that are taken are functions of tables, and each works on any part of the documents that has
all of a group (`numbered`: equal documents; `taken`: a range of keys).

1. `identified`: the identity of each document, a hash of its id or of its tokens.
2. `numbered`: a counter for equal documents of a source; or all but one are dropped.
3. `keyed`: the key of each document in each epoch.
4. `taken`: in the order of keys, the documents that a source gives.

`docs/mixtures.md` states the hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import first_few
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of
from bpe_beam.shards.mixture import SourcePart

Table = NDArray[np.void]
Hashes = NDArray[np.uint64]  # [n, 2]: the upper and the lower half of 128 bits

_WHERE = [("shard", "<u4"), ("index", "<u8")]  # the number of its shard, and its position there
_WHAT = [("length", "<u4"), ("source", "<u2"), ("part", "u1"), *_WHERE]

DOCUMENT = np.dtype([("high", "<u8"), ("low", "<u8"), ("tie", "<u8"), *_WHAT])
"""A document with its identity; `tie` orders documents of one identity, whose ids may differ."""

NUMBERED = np.dtype([("high", "<u8"), ("low", "<u8"), ("counter", "<u8"), *_WHAT])
"""A document with its identity and its number among equal documents of its source."""

KEYED = np.dtype([("high", "<u8"), ("low", "<u8"), ("epoch", "<u4"), *_WHAT])
"""A document with its key in an epoch."""

TRAIN, VALIDATION = 0, 1  # the values of `part`

_SHOWN_SOURCES = 20

_POSITION = r":[0-9]+(\+[0-9]+)?$"
"""The end of an id that `tokenize` gives to the lines of a text file: their position there."""


class SourceRange(Struct, frozen=True):
    """The tokens that are taken of a source, and the tokens of one epoch of it."""

    part: SourcePart
    tokens: int

    @property
    def epochs(self) -> range:
        """The epochs that have tokens of the part."""
        # Documents without tokens at the end of an epoch begin where the next epoch does.
        first = max(self.part.skip - 1, 0) // self.tokens
        return range(first, (self.part.end - 1) // self.tokens + 1)

    @property
    def open_epochs(self) -> tuple[int, ...]:
        """The first and the last epoch: the others are taken whole."""
        return tuple(dict.fromkeys((self.epochs[0], self.epochs[-1])))


def refuse_too_many(
    parts: Mapping[str, SourcePart], tokens: Mapping[str, int], left_out: str = ""
) -> None:
    """Refuse to take more tokens of a source than it has in its epochs.

    `left_out` says which documents do not count, if some do not.
    """
    lacking = {
        name: part for name, part in parts.items() if part.end > tokens[name] * part.max_epochs
    }
    if not lacking:
        return

    def lines() -> Iterable[str]:
        for name, part in lacking.items():
            after = f" after {part.skip:,}" if part.skip else ""
            epochs = f" in {part.max_epochs:,} epochs" if part.max_epochs > 1 else ""
            has = f"{tokens[name]:,}{epochs}{left_out}"
            yield f"{name}: {part.target:,} tokens{after}; it has {has}"

    shown = first_few([*lines()], _SHOWN_SOURCES)
    raise UsageError(
        "these sources have fewer tokens than are to be taken"
        + "".join(f"\n  {line}" for line in shown),
        remedy="take fewer tokens, or give more {max_epochs}",
    )


def refuse_nothing(tokens: int) -> None:
    """Refuse a mixture without tokens."""
    if not tokens:
        raise DataError(
            "no document with tokens begins in the tokens to take", remedy="take more tokens"
        )


# ---- hashes ----


def _hashes(values: Iterable[bytes | memoryview], person: bytes) -> Hashes:
    """Return the 128-bit hash of each value."""
    copy = blake2b(digest_size=16, person=person).copy
    digests = []
    for value in values:
        hasher = copy()
        hasher.update(value)
        digests.append(hasher.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)


def hashes_of_ids(ids: pa.Array) -> Hashes:
    """Return the identities of documents that are known by their ids."""
    return _hashes((str(each).encode("utf-8", "surrogatepass") for each in ids.to_pylist()), b"id")


def hashes_of_tokens(batch: DocumentBatch, vocab_size: int) -> Hashes:
    """Return the identities of documents that are known by their tokens."""
    kind = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
    data = memoryview(np.ascontiguousarray(batch.ids, kind).data).cast("B")
    bounds = (kind.itemsize * batch.offsets).tolist()
    return _hashes((data[start:end] for start, end in pairwise(bounds)), b"tokens")


def keys_of(seed: int, epoch: int, source: str, numbered: Table) -> Hashes:
    """Return the keys of documents of a source in an epoch.

    A key is the identity, enciphered with a secret of the seed, the epoch and the source: a Feistel
    network of four rounds, whose function is the last step of MurmurHash3. So the keys of different
    identities differ, and the cost is some 50 ns for each.
    """
    name = source.encode("utf-8", "surrogatepass")
    data = b"".join(each.to_bytes(8, "little") for each in (seed, epoch)) + name
    secret = np.frombuffer(blake2b(data, digest_size=32, person=b"key").digest(), "<u8")
    left, right = numbered["high"].copy(), numbered["low"] + numbered["counter"]
    for first, second in (secret[:2], secret[2:]):
        left ^= _mixed(right ^ first)
        right ^= _mixed(left ^ second)
    return np.stack([left, right], axis=-1)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `fmix64` of MurmurHash3 of each value."""
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values


def usable_ids(ids: pa.Array) -> NDArray[np.bool_]:
    """Return bool[n]: which ids say which document it is, wherever it is stored."""
    positions = pc.match_substring_regex(ids, _POSITION)
    usable = pc.and_(ids.is_valid(), pc.invert(positions))
    flags: NDArray[np.bool_] = usable.fill_null(False).to_numpy(zero_copy_only=False)
    return flags


# ---- tables ----


def identified(
    identities: Hashes,
    ids: pa.Array | None,
    lengths: NDArray[np.integer],
    sources: NDArray[np.integer],
    shard: int,
    index: NDArray[np.integer],
) -> Table:
    """Return documents of a shard; `index` is int[n], their positions there."""
    table = np.zeros(len(identities), DOCUMENT)
    table["high"], table["low"] = identities.T
    if ids is not None:
        table["tie"] = hashes_of_ids(ids)[:, 0]
    table["length"], table["source"], table["part"] = lengths, sources, TRAIN
    table["shard"], table["index"] = shard, index
    return table


def numbered(table: Table, duplicates: str, names: Sequence[str], seed: int) -> Table:
    """Return all documents of some identities, with counters; dropped ones are left out.

    With `drop`, the document of the source with the smallest key in the first epoch stays.
    """
    table = table[_sorted(table, "low", "source", "tie", "shard", "index")]
    first = np.ones(len(table), np.bool_)
    same = ("high", "low", "source")
    first[1:] = np.any([table[name][1:] != table[name][:-1] for name in same], axis=0)
    starts = np.flatnonzero(first)
    result = np.empty(len(table), NUMBERED)
    for name in NUMBERED.names or ():
        if name != "counter":
            result[name] = table[name]
    result["counter"] = np.arange(len(table)) - np.repeat(starts, np.diff([*starts, len(table)]))
    if duplicates == "keep":
        return result
    result = result[first]
    if duplicates == "drop_within_sources":
        return result
    keys = np.empty((len(result), 2), np.uint64)
    for source in np.unique(result["source"]).tolist():
        chosen = result["source"] == source
        keys[chosen] = keys_of(seed, 0, names[source], result[chosen])
    order = np.lexsort([keys[:, 1], keys[:, 0], result["low"], result["high"]])
    result = result[order]
    stays = np.ones(len(result), np.bool_)
    stays[1:] = np.any([result[name][1:] != result[name][:-1] for name in same[:2]], axis=0)
    return result[stays]


def _sorted(table: Table, *others: str) -> NDArray[np.int64]:
    """Return int64[n]: the order of rows by `high`, and where it is equal by other columns."""
    high = np.ascontiguousarray(table["high"])
    order: NDArray[np.int64] = np.argsort(high)
    ascending = high[order]
    if (ascending[1:] == ascending[:-1]).any():
        order = np.lexsort([table[name] for name in (*others[::-1], "high")])
    return order


def sums_by_source(table: Table, sources: int) -> NDArray[np.int64]:
    """Return int64[2 parts, sources, 2]: the documents and the tokens of each part and source."""
    cells = table["part"].astype(np.int64) * sources + table["source"]
    documents = np.bincount(cells, minlength=2 * sources)
    tokens = np.zeros(2 * sources, np.int64)
    np.add.at(tokens, cells, table["length"].astype(np.int64))
    return np.stack([documents, tokens], axis=-1).reshape(2, sources, 2)


def keyed(table: Table, source: int, part: int, epoch: int, name: str, seed: int) -> Table:
    """Return the documents of a source and a part with their keys in an epoch."""
    chosen = table[(table["source"] == source) & (table["part"] == part)]
    result = np.empty(len(chosen), KEYED)
    for field, _ in _WHAT:
        result[field] = chosen[field]
    result["epoch"] = epoch
    result["high"], result["low"] = keys_of(seed, epoch, name, chosen).T
    return result


def slots(ranges: Sequence[SourceRange | None]) -> dict[tuple[int, int], int]:
    """Return a number for each source and each of its open epochs."""
    pairs = (
        (source, epoch)
        for source, each in enumerate(ranges)
        if each is not None
        for epoch in each.open_epochs
    )
    return {pair: number for number, pair in enumerate(pairs)}


def slots_of(table: Table, ranges: Sequence[SourceRange | None]) -> NDArray[np.int64]:
    """Return int64[n]: the slot of each document; -1 if all documents of its epoch are taken."""
    epochs, numbers = np.full((2, len(ranges), 2), -1)
    for (source, epoch), number in slots(ranges).items():
        each = ranges[source]
        assert each is not None
        column = int(epoch != each.epochs[0])
        epochs[source, column], numbers[source, column] = epoch, number
    rows = table["source"]
    is_open = (epochs[rows] == table["epoch"][:, np.newaxis]) & (table["part"] == TRAIN)[:, None]
    result: NDArray[np.int64] = np.where(is_open, numbers[rows], -1).max(axis=1, initial=-1)
    return result


def tokens_by_slot(
    table: Table, ranges: Sequence[SourceRange | None], partitions: int
) -> NDArray[np.int64]:
    """Return int64[slots, partitions]: the tokens in each range of keys."""
    numbers = slots_of(table, ranges)
    counted = numbers >= 0
    sums = np.zeros((len(slots(ranges)), partitions), np.int64)
    at = numbers[counted], partitions_of(table[counted], partitions)
    np.add.at(sums, at, table["length"][counted].astype(np.int64))
    return sums


def partitions_of(table: Table, count: int) -> NDArray[np.int64]:
    """Return int64[n]: the range of keys, or of identities, of each row, from 0 to `count` - 1."""
    upper = table["high"] >> np.uint64(32)
    numbers: NDArray[np.int64] = (upper * np.uint64(count) >> np.uint64(32)).astype(np.int64)
    return numbers


def taken(table: Table, ranges: Sequence[SourceRange | None], before: NDArray[np.int64]) -> Table:
    """Return the documents of a range of keys that are taken, in the order of their keys.

    A document of a source is taken if it begins within the source's part: if the tokens of smaller
    keys, and of earlier epochs, are at least `skip` and less than `skip + target`. Documents for
    validation are all taken. `before` is int64[slots], the tokens with keys before this range.
    """
    table = table[_sorted(table, "low", "source", "epoch", "shard", "index")]
    numbers = slots_of(table, ranges)
    chosen = numbers < 0
    by_slot = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[by_slot], np.arange(len(before) + 1))
    for (source, epoch), number in slots(ranges).items():
        rows = by_slot[bounds[number] : bounds[number + 1]]
        each = ranges[source]
        assert each is not None
        starts = epoch * each.tokens + before[number] + bounds_of(table["length"][rows])[:-1]
        chosen[rows] = (starts >= each.part.skip) & (starts < each.part.end)
    return table[chosen]
