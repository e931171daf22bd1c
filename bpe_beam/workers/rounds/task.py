"""A merge round as its workers know it: its settings, its files, and what travels.

The words of a corpus are kept in word batches, a file each. The first round makes them from the
parts of the counts; each round writes them again with the last round's merges applied. Words, pairs
and segments are in files of the run's folder; only references to blocks travel.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bpe_beam import json_structs
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.training.merges.words import Room, Size
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


@dataclass(frozen=True)
class RoundTask:
    """The settings of a round for its workers; plain and picklable.

    Attributes:
        counts: The counts folder, which the first round reads; its manifest has no inputs here.
        factors: The factor of the counts of each source; None: 1 for all.
        start: URL and SHA-256 of the file of the `InitialVocabulary`.
        floor: The minimum count of a frequent pair.
        divisor: See `training.merges.rounds.threshold`.
        room: The limits of the driver's trainer: words that fit are not segmented.
        singles: Whether to keep words and segments of one symbol.
        ambiguous: Special tokens that no word may spell, see `ambiguous_tokens`.
    """

    folder: TaskFolder
    counts: str
    manifest: CountsManifest
    factors: Mapping[str, int] | None
    start: tuple[str, str]
    round_file_sha256: str
    word_batches: int
    floor: int
    divisor: int
    room: Room
    singles: bool
    ambiguous: tuple[str, ...]

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

    Attributes:
        number: The word batch's number, from 0.
        slices: The words in the first round: slices of the counts.
        file: The words in later rounds: the URL of their file, and its SHA-256.
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

    Attributes:
        frequent: The file of all pairs that count at least `floor`.
        best_count: The count of the best pair; 0 without pairs.
        blocks: The number of the blocks that were added up.
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
    """The merges and the settings of a round, as a file.

    Attributes:
        batches: Merges of the round before, see `training.merges.rounds.batches_of`.
        ranks: See `Vocabulary.ranks`.
        widths: The number of characters of each symbol, by id; None without `max_length`.
        max_length: See `Recipe.max_token_length`.
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


def once_a_round(task: RoundTask, name: str, make: Callable[[], T]) -> T:
    """Return a value that this process makes once for all tasks of a round."""
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
