"""A merge round as its workers know it: its settings, its files, and what a process caches of it.

Words, pairs and segments are in files of the run's folder; only references to blocks travel.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, TypeVar, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.packed_words import to_stream
from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import HashingFile, read_hashed
from bpe_beam.storage.names import attempted_name
from bpe_beam.training.trainer_limits import Room
from bpe_beam.workers.split_task import require_visible, task_name

T = TypeVar("T")

MOST_SHARDS = 1024
"""The most shards of pairs, and of segments, by a fixed hash. Up to here there are as many as word
batches, so that the shard of a worker does not grow with the corpus. With more word batches, some
100 GB of unique words, it does."""

TABLE_BYTES = 128_000_000
"""The memory of a worker's table of pairs or segments before it is written out."""

FREQUENT_PAIRS = 4_000_000
"""The most frequent pairs of a round; each worker keeps them in memory, at most 51 bytes each."""

CANDIDATES = 1000
"""The number of best pairs of a shard, in the tie rule's order."""

ROUND_FILE = "round.json"
FOLDERS = ("seen", "state", "pairs", "segments", "work")
_FILE = re.compile(r"[a-z]+-[0-9]{5,}-of-[0-9]{5,}\.(?:arrow|blocks|json)")

BlockReference = tuple[str, int, int, int]
"""A block: the URL of its file, its first byte, its length and its CRC-32."""


@dataclass(frozen=True)
class RoundTask:
    """What the workers of a round need to know; plain and picklable.

    Attributes:
        folder: The run's folder.
        counts: The counts folder, which the first round reads.
        manifest: Its manifest, without its inputs.
        factors: The factor of the counts of each source; None: 1 for all.
        start: URL and SHA-256 of the file of the `InitialVocabulary`.
        given: SHA-256 of the run's `ROUND_FILE`.
        word_batches: The number of word batches.
        floor: The least count of a frequent pair.
        divisor: See `training.rounds.threshold`.
        room: The limits of the driver's trainer: words that fit are not segmented.
        singles: Whether to keep words and segments of one symbol.
        ambiguous: Special tokens that no word may spell, see `ambiguous_tokens`.
        cuts: Whether to segment words; if false, the round finds only the best pairs.
        stage: The progress stage that gets reports.
    """

    folder: TaskFolder
    counts: str
    manifest: CountsManifest
    factors: Mapping[str, int] | None
    start: tuple[str, str]
    given: str
    word_batches: int
    floor: int
    divisor: int
    room: Room
    singles: bool = False
    ambiguous: tuple[str, ...] = ()
    cuts: bool = True
    stage: str = "learn"

    @property
    def shards(self) -> int:
        """The number of shards of pairs, and of segments."""
        return shards_of(self.word_batches)


class Written(NamedTuple):
    """The result of a task: its blocks with their shards, and metrics by name."""

    blocks: list[tuple[int, BlockReference]]
    counts: dict[str, int]


@dataclass(frozen=True)
class RoundFile:
    """The merges and the settings of a round, as a file.

    Attributes:
        batches: Merges of the round before, see `training.rounds.batches_of`.
        ranks: See `Vocabulary.ranks`.
        widths: uint32, the number of characters of each symbol, by id; None without `max_length`.
        max_length: See `Recipe.max_token_length`.
    """

    batches: list[npt.NDArray[np.uint32]]
    ranks: npt.NDArray[np.uint32] | None = None
    widths: npt.NDArray[np.uint32] | None = None
    max_length: int | None = None

    def to_bytes(self) -> bytes:
        """Return the file's content, as JSON."""
        return json.dumps(
            {
                "batches": [batch.tolist() for batch in self.batches],
                "ranks": None if self.ranks is None else self.ranks.tolist(),
                "widths": None if self.widths is None else self.widths.tolist(),
                "max_length": self.max_length,
            }
        ).encode()

    @staticmethod
    def from_bytes(data: bytes) -> RoundFile:
        """Read the content that `to_bytes` returned."""
        row = json.loads(data)
        return RoundFile(
            [np.array(batch, np.uint32).reshape(-1, 3) for batch in row["batches"]],
            None if row["ranks"] is None else np.array(row["ranks"], np.uint32),
            None if row["widths"] is None else np.array(row["widths"], np.uint32),
            row["max_length"],
        )


def is_round_file(name: str) -> bool:
    """Return whether a round writes files of such a name, in one of its `FOLDERS`."""
    return _FILE.fullmatch(attempted_name(name) or name) is not None


def seen_file(part: int, parts: int) -> str:
    """Return the name of the file of the symbols of a part's words.

    Args:
        part: The part's number, from 0.
        parts: The number of parts of the counts.
    """
    return f"seen/{task_name('seen', part, parts)}.json"


def words_file(number: int, word_batches: int) -> str:
    """Return the name of the file of a word batch.

    Args:
        number: The word batch's number, from 0.
        word_batches: The number of word batches.
    """
    return f"state/{task_name('words', number, word_batches)}.arrow"


def shards_of(word_batches: int) -> int:
    """Return the number of shards of a round with this number of word batches."""
    return min(word_batches, MOST_SHARDS)


def names_of(word_batches: int, parts: int) -> list[str]:
    """Return the names of all files that a round may write in its run's folder.

    Args:
        word_batches: The number of word batches.
        parts: The number of parts of the counts.
    """
    shards = shards_of(word_batches)
    return [
        ROUND_FILE,
        *(seen_file(i, parts) for i in range(parts)),
        *(words_file(i, word_batches) for i in range(word_batches)),
        *(f"work/{task_name('pairs', i, word_batches)}.blocks" for i in range(word_batches)),
        *(f"work/{task_name('segments', i, word_batches)}.blocks" for i in range(word_batches)),
        *(f"pairs/{task_name('hot', i, shards)}.arrow" for i in range(shards)),
        *(f"pairs/{task_name('best', i, shards)}.arrow" for i in range(shards)),
        *(f"segments/{task_name('segments', i, shards)}.arrow" for i in range(shards)),
    ]


class BlocksFile:
    """The file of a word batch's blocks, one after another, and their references.

    Args:
        file: Open for writing.
        url: Its URL.
        name: Its name in the run's folder.

    Attributes:
        references: The shard of each block, and the block.
    """

    def __init__(self, file: BinaryIO, url: str, name: str) -> None:
        self._file = HashingFile(file)
        self._url = url
        self._name = name
        self.references: list[tuple[int, BlockReference]] = []

    def write(self, blocks: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        """Append blocks with their shards."""
        for shard, block in blocks:
            data = to_stream(block)
            start = self._file.bytes
            self._file.write(data)
            self.references.append((shard, (self._url, start, len(data), crc32(data))))

    def info(self) -> FileInfo:
        """Return the description of the bytes written so far."""
        return FileInfo.written(self._name, self._file)


def open_blocks(task: RoundTask, stack: ExitStack, kind: str, number: int) -> BlocksFile:
    """Return the open file of a word batch's blocks; it appears whole when the stack ends.

    Args:
        task: The round.
        stack: Closes the file.
        kind: `pairs` or `segments`.
        number: The word batch's number.
    """
    name = f"work/{task_name(kind, number, task.word_batches)}.blocks"
    url = task.folder.path(name)
    return BlocksFile(stack.enter_context(task.folder.storage.create(url)), url, name)


def read_blocks(storage: Storage, references: Iterable[BlockReference]) -> Iterator[bytes]:
    """Yield the bytes of blocks, each file opened once.

    Args:
        storage: The storage client.
        references: The blocks.

    Raises:
        DataError: A block is not the one that was written.
    """
    opened = ""
    with ExitStack() as stack:
        for url, start, size, crc in sorted(references):
            if url != opened:
                stack.close()
                file = stack.enter_context(storage.open(url))
                opened = url
            file.seek(start)
            data = file.read(size)
            if crc32(data) != crc:
                raise DataError(f"{url}: the block at byte {start} is not the one that was written")
            yield data


def write_file(task: RoundTask, name: str, data: bytes) -> FileInfo:
    """Write a file of the run's folder.

    Args:
        task: The round.
        name: The file's name in the run's folder.
        data: Its content.

    Returns:
        The file as receipts have it.
    """
    task.folder.storage.write_bytes(task.folder.path(name), data)
    return FileInfo.of(name, data)


class RoundCache(Generic[T]):
    """A value that all tasks of a round share in a process: made once, dropped at the next round.

    Several threads of a process run tasks of one round; they wait until it is made.

    Attributes:
        every: All caches of the process.
    """

    every: ClassVar[list[RoundCache[Any]]] = []

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: tuple[str, ...] = ()
        self._value: T | None = None
        self.every.append(self)

    def get(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """Return the value that was made for this key, or make it now.

        Args:
            key: Everything that the value depends on; hashes of content, not URLs alone, since a
                process may run tasks of one job after another.
            make: Makes the value.
        """
        with self._lock:
            if key != self._key:
                self.forget()
                self._value = make()
                self._key = key
            return cast(T, self._value)

    def forget(self) -> None:
        """Drop the value."""
        with self._lock:
            self._key, self._value = (), None


_round_file: RoundCache[RoundFile] = RoundCache()


def round_file(task: RoundTask) -> RoundFile:
    """Return the round's file. Cost: read once a process."""
    url = task.folder.path(ROUND_FILE)

    def read() -> RoundFile:
        require_visible(task.folder.storage, task.folder.url, task.counts)
        return RoundFile.from_bytes(read_hashed(task.folder.storage, url, task.given))

    return _round_file.get((url, task.given), read)
