"""A merge round as its workers know it: its settings, its files, and what travels.

The words of a corpus are kept in word batches, a file each. The first round makes them from the
parts of the counts; each round writes them again with the last round's merges applied. Words, pairs
and segments are in files of the run's folder; only references to blocks travel.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bpe_beam import json_structs
from bpe_beam.counts import round_files
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile, read_hashed
from bpe_beam.training.merges.rounds import ShardPairs, threshold
from bpe_beam.training.merges.words import Room, Size
from bpe_beam.training.unigram.segments import SegmentRules
from bpe_beam.workers.split_task import require_visible, task_name

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
Ids = npt.NDArray[np.uint32]

_MAXIMUM_SHARDS = 1024
"""The maximum number of shards of pairs, and of segments, by a fixed hash. Below it there are as
many as word batches, so that a shard does not grow with the corpus up to some 100 GB of unique
words."""

TABLE_BYTES = 128_000_000
"""The memory of a worker's table of pairs or segments before it is written out."""

FREQUENT_PAIRS = 4_000_000
"""The most frequent pairs of a round; each worker keeps them in memory, at most 51 bytes each."""

CANDIDATES = 1000
"""The number of best pairs of a shard, in the tie rule's order."""

STAGE = "learn"
"""The progress stage that gets reports."""

ROUND_FILE = "round.json"
FOLDERS = ("seen", "state", "pairs", "segments", "work")
_FILE = re.compile(r"[a-z]+-[0-9]{5,}-of-[0-9]{5,}\.(?:arrow|blocks|json)")

BlockReference = tuple[str, int, int, int]
"""A block: the URL of its file, its first byte, its length and its CRC-32."""


class WordsTask(Struct, frozen=True):
    """The settings of workers that read the words of the counts; plain and picklable.

    Attributes:
        counts: The counts folder; its manifest has no inputs here.
        factors: The factor of the counts of each source; None: 1 for all.
    """

    folder: TaskFolder
    counts: str
    manifest: CountsManifest
    factors: Mapping[str, int] | None
    word_batches: int


class RoundTask(WordsTask, frozen=True):
    """The settings of a round for its workers, which read the counts in the first round.

    Attributes:
        start: URL and SHA-256 of the file of the `InitialVocabulary`.
        floor: The minimum count of a frequent pair.
        divisor: See `training.merges.rounds.threshold`.
        room: The limits of the driver's trainer: words that fit are not segmented.
        singles: Whether to keep words and segments of one symbol.
        ambiguous: Special tokens that no word may spell, see `ambiguous_tokens`.
        segments: How to cut words of the counts first, for a vocabulary of pieces; None: not.
    """

    start: tuple[str, str]
    round_file_sha256: str
    floor: int
    divisor: int
    room: Room
    singles: bool
    ambiguous: tuple[str, ...]
    segments: SegmentRules | None = None

    @property
    def shards(self) -> int:
        """The number of shards of pairs, and of segments."""
        return min(self.word_batches, _MAXIMUM_SHARDS)


class Element(Struct, frozen=True):
    """An element that travels between the workers of a round, as text."""

    def to_json(self) -> str:
        return json.dumps(msgspec.to_builtins(self))  # a file's name may have lone surrogates

    @classmethod
    def from_json(cls, text: str) -> Self:
        return json_structs.convert(json.loads(text), cls)


class PartSlice(NamedTuple):
    """A slice of a part of the counts: the numbers of the part and the slice, and of how many."""

    part: int
    number: int
    slices: int


class WordBatchTask(Element, frozen=True):
    """The task of writing a word batch again.

    The first round reads slices of the counts, later rounds a file, by its URL and its SHA-256.
    """

    number: int
    slices: tuple[PartSlice, ...] = ()
    file: tuple[str, str] | None = None


class WordBatch(Element, frozen=True, kw_only=True):
    """A word batch as a round has written it.

    Attributes:
        width: The characters that its symbols cover, if these are limited; else the symbols.
        weight: Its symbols, each weighted by the count of its word.
        singles: Words dropped because they are one symbol now, weighted by their counts.
        all_words: In the first round, the words of the counts, weighted by their counts.
        all_bytes: In the first round, the bytes of these words.
        blocks: The number of the blocks of pairs that were counted in it.
        file: Its file in the run's folder; in an element that travels, named by its URL.
    """

    words: int
    symbols: int
    width: int = 0
    weight: int = 0
    singles: int = 0
    all_words: int = 0
    all_bytes: int = 0
    blocks: int
    file: FileInfo


class PairShard(Element, frozen=True):
    """A shard of pairs, as its receipt has it, and as it travels to the workers.

    `frequent` has all pairs that count at least `floor`. `best_count` is 0 without pairs. `blocks`
    is the number of the blocks that were added up.
    """

    frequent: FileInfo
    floor: int
    best_count: int
    pairs: int
    blocks: int


class SegmentedStats(Struct, frozen=True):
    """The stats of a word batch that was divided into segments: the number of blocks."""

    blocks: int


class SegmentStats(Struct, frozen=True):
    """The stats of a shard of segments, its words, and of the blocks that were added up."""

    words: int
    symbols: int
    width: int
    blocks: int


def size_of(rows: Iterable[WordBatch | SegmentStats]) -> Size:
    """Return the size of word batches, or of shards of segments, in total."""
    sizes = [(row.words, row.symbols, row.width) for row in rows]
    return Size(*(sum(size[i] for size in sizes) for i in range(3)))


class RoundFile(Struct, frozen=True):
    """The settings of a round, and the merges of the round before, see `batches_of`, as a file.

    `widths` has the number of characters of each symbol, by id; it is None without `max_length`.
    """

    batches: list[Ids]
    ranks: Ids | None
    widths: Ids | None
    max_length: int | None

    def to_bytes(self) -> bytes:
        return msgspec.json.encode(self, enc_hook=np.ndarray.tolist)

    @staticmethod
    def from_bytes(data: bytes) -> RoundFile:
        return json_structs.decode(data, RoundFile, lambda _, ids: np.array(ids, np.uint32))


def is_round_file(name: str) -> bool:
    """Return whether a round writes files of such a name, in one of its `FOLDERS`."""
    return _FILE.fullmatch(name) is not None


def seen_file(part: int, parts: int) -> str:
    """Return the name of the file of the symbols of a part's words."""
    return f"seen/{task_name('seen', part, parts)}.json"


_lock = threading.RLock()
_cached: dict[str, object] = {}
_cached_round = ""


def once_a_round(task: WordsTask, name: str, make: Callable[[], T]) -> T:
    """Return a value that this process makes once for all tasks of a round or a pass."""
    global _cached_round
    with _lock:
        if _cached_round != task.folder.url:  # each round has a folder of its own
            _cached.clear()
            _cached_round = task.folder.url
        if name not in _cached:
            _cached[name] = make()
        return cast(T, _cached[name])


def forget_round() -> None:
    """Drop what this process has in memory of a round."""
    with _lock:
        _cached.clear()


def round_file(task: RoundTask) -> RoundFile:
    """Return the merges and settings of the round."""

    def read() -> RoundFile:
        storage, url = task.folder.storage, task.folder.path(ROUND_FILE)
        require_visible(storage, task.folder.url, task.counts)
        return RoundFile.from_bytes(read_hashed(storage, url, task.round_file_sha256))

    return once_a_round(task, "file", read)


Blocks = tuple[int, Iterable[BlockReference]]
"""A shard's number, and where its blocks are."""

Pairs = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Left, right and count of each pair."""

_AGAIN = "run the same command again, which continues from the last round"
_NO_PAIRS = (np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))


class BlocksFile:
    """A word batch's file of blocks, which appears when the stack ends; the references by shard."""

    def __init__(self, task: RoundTask, stack: ExitStack, kind: str, number: int) -> None:
        self._name = f"work/{task_name(kind, number, task.word_batches)}.blocks"
        self._url = task.folder.path(self._name)
        self._file = HashingFile(stack.enter_context(task.folder.storage.create(self._url)))
        self._shards = task.shards
        self.references: list[tuple[int, BlockReference]] = []

    def take(
        self, table: round_files.PairCounts | round_files.PackedCounts, above: int = 0
    ) -> None:
        """Move the content of a table to the file, if it takes more than `above` bytes."""
        if table.memory_bytes > above:
            for shard, block in table.blocks(self._shards):
                data = round_files.to_stream(block)
                start = self._file.bytes
                self._file.write(data)
                self.references.append((shard, (self._url, start, len(data), crc32(data))))
            table.clear()

    def info(self) -> FileInfo:
        """Return the description of the bytes written so far."""
        return FileInfo.written(self._name, self._file)


def read_blocks(storage: Storage, references: Iterable[BlockReference]) -> Iterator[bytes]:
    """Yield the bytes of blocks, each file opened once."""
    for url, blocks in groupby(sorted(references), itemgetter(0)):
        with storage.open(url) as file:
            for _, start, size, crc in blocks:
                file.seek(start)
                data = file.read(size)
                if crc32(data) != crc:
                    problem = f"the block at byte {start} is not the one that was written"
                    raise DataError(f"{url}: {problem}")
                yield data


def unique_blocks(kind: str, references: Iterable[BlockReference]) -> list[BlockReference]:
    """Return the blocks of a shard, after a check that none appears twice."""
    blocks = list(references)
    if len(set(blocks)) < len(blocks):
        raise DataError(f"the runner returned a block of {kind} twice: {_AGAIN}")
    return blocks


def require_all(
    kind: str,
    written: Iterable[WordBatch | SegmentedStats],
    added: Iterable[PairShard | SegmentStats],
) -> None:
    """Check that the runner lost no block: shards must have added up all that were written."""
    blocks, sums = sum(row.blocks for row in written), sum(row.blocks for row in added)
    if blocks != sums:
        problem = f"the workers wrote {blocks:,} blocks of {kind}, and the runner returned {sums:,}"
        raise DataError(f"{problem}: {_AGAIN}")


def floor_of(task: RoundTask, words: Size, shards: Iterable[PairShard]) -> int | None:
    """Return the minimum count of a frequent pair; None if all words fit the driver undivided.

    Every worker and the driver get the same value.
    """
    if task.room.fits(words):
        return None
    return threshold([ShardPairs(row.floor, row.best_count) for row in shards], task.divisor)


def read_frequent(task: RoundTask, shards: Iterable[PairShard], floor: int) -> Pairs:
    """Return all pairs that count at least `floor`: left, right, count."""
    left, right, counts = _joined(_read_pairs(task, row.frequent) for row in shards)
    kept = counts >= floor
    return left[kept], right[kept], counts[kept]


def read_best(
    task: RoundTask, files: Iterable[FileInfo], ranks: npt.NDArray[np.uint32] | None
) -> tuple[Pairs, bool]:
    """Return the best pairs in the tie rule's order, as far as it is certain; and whether no
    other pair exists.
    """
    listed = [_read_pairs(task, file) for file in files]
    left, right, counts = _joined(listed)
    shards = np.repeat(np.arange(len(listed)), [len(pairs[0]) for pairs in listed])
    by = (left, right) if ranks is None else (ranks[left], ranks[right])
    order = np.lexsort((by[1], by[0], -counts))
    # A shard that lists CANDIDATES pairs may have more, which sort after its last listed one. So
    # the order is certain up to the first of these last pairs.
    partial = [i for i, pairs in enumerate(listed) if len(pairs[0]) == CANDIDATES]
    lasts = [int(np.flatnonzero(shards[order] == i)[-1]) for i in partial]
    sure = order[: min(lasts, default=len(order)) + 1]
    return (left[sure], right[sure], counts[sure]), not partial


def _read_pairs(task: RoundTask, file: FileInfo) -> Pairs:
    url = task.folder.path(file.name)
    batch = round_files.from_stream(
        read_hashed(task.folder.storage, url, file.sha256), round_files.PAIR_SCHEMA, url
    )
    left, right, counts = (batch.column(name).to_numpy() for name in round_files.PAIR_SCHEMA.names)
    return left, right, counts


def _joined(pairs: Iterable[Pairs]) -> Pairs:
    left, right, counts = map(np.concatenate, zip(_NO_PAIRS, *pairs, strict=True))
    return left, right, counts
