"""A merge round as its workers know it: the task, its pieces, its files.

Words, pairs and segments stand in files of the run's folder; only the places of blocks travel.
"""

from __future__ import annotations

import hashlib
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
from bpe_beam.storage import Storage
from bpe_beam.storage.names import attempted_name
from bpe_beam.training.trainer_limits import Room
from bpe_beam.workers.split_task import Receipts, piece_name, require_seen

T = TypeVar("T")

MOST_SHARDS = 1024
"""Of pairs, and of segments, by a fixed hash; up to here there are as many as pieces, so that what
a worker adds up does not grow with the corpus. Beyond, some 100 GB of unique words, it does."""

TABLE_BYTES = 128_000_000
"""What a worker's table of pairs or segments may hold before it is written out."""

HOT_PAIRS = 4_000_000
"""At most so many pairs are looked at in a round; each worker holds them, 51 bytes each at most."""

CANDIDATES = 1000
"""Best pairs of a shard that are kept in the tie rule's order."""

ROUND_FILE = "round.json"
FOLDERS = ("seen", "state", "pairs", "segments", "work")
_FILE = re.compile(r"[a-z]+-[0-9]{5,}-of-[0-9]{5,}\.(?:arrow|blocks|json)")

Place = tuple[str, int, int, int]
"""Where a block stands: the URL of its file, its first byte, its length and its CRC-32."""


@dataclass(frozen=True)
class RoundTask:
    """What the workers of a round need to know; plain and picklable.

    Attributes:
        receipts: The run's folder.
        counts: The counts folder, that the first round reads.
        manifest: Its manifest, without its inputs.
        factors: What the counts of each source are multiplied by; None: as they are.
        start: URL and SHA-256 of what the words are spelled by, see `training.start.Start`.
        given: SHA-256 of the run's `ROUND_FILE`.
        pieces: How many pieces the state has.
        floor: Pairs that count less are not looked for.
        divisor: See `training.rounds.threshold`.
        room: What the driver's learner may hold: words that fit are not cut.
        singles: Keep words and segments of one symbol.
        ambiguous: Special tokens that no word may spell, see `training.ambiguous`.
        cuts: Cut segments at all; without, only the best pairs are found.
        stage: The progress stage that pieces are reported to.
    """

    receipts: Receipts
    counts: str
    manifest: CountsManifest
    factors: Mapping[str, int] | None
    start: tuple[str, str]
    given: str
    pieces: int
    floor: int
    divisor: int
    room: Room
    singles: bool = False
    ambiguous: tuple[str, ...] = ()
    cuts: bool = True
    stage: str = "learn"

    @property
    def shards(self) -> int:
        """Of pairs, and of segments."""
        return shards_of(self.pieces)

    def url(self, name: str) -> str:
        """A file of the run's folder."""
        return self.receipts.storage.join(self.receipts.url, *name.split("/"))


@dataclass(frozen=True)
class PieceWork:
    """A piece of the state.

    Attributes:
        number: Its number.
        source: Its file of words, `url` and `sha256`; or, at first, `parts`, where they stand in
            the counts: of each part its number, and which slice of how many.
    """

    number: int
    source: dict[str, Any]

    def to_json(self) -> str:
        """The element that travels."""
        return json.dumps({"number": self.number, "source": self.source})

    @staticmethod
    def from_json(text: str) -> PieceWork:
        """What `to_json` wrote."""
        return PieceWork(**json.loads(text))


class Written(NamedTuple):
    """What comes of a piece: the piece as it stands now, the places of its blocks by shard, and
    what was measured."""

    element: str
    places: list[tuple[int, Place]]
    counts: dict[str, int]


@dataclass(frozen=True)
class RoundFile:
    """What a round applies, as a file.

    Attributes:
        batches: Merges of the round before, see `training.rounds.batches_of`.
        ranks: See `Vocabulary.ranks`.
        widths: How many characters each id covers, where that matters.
        max_length: See `Recipe.max_token_length`.
    """

    batches: list[npt.NDArray[np.uint32]]
    ranks: npt.NDArray[np.uint32] | None = None
    widths: npt.NDArray[np.uint32] | None = None
    max_length: int | None = None

    def to_bytes(self) -> bytes:
        """As JSON."""
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
        """What `to_bytes` wrote."""
        row = json.loads(data)
        return RoundFile(
            [np.array(batch, np.uint32).reshape(-1, 3) for batch in row["batches"]],
            None if row["ranks"] is None else np.array(row["ranks"], np.uint32),
            None if row["widths"] is None else np.array(row["widths"], np.uint32),
            row["max_length"],
        )


def is_round_file(name: str) -> bool:
    """Whether a round wrote a file of this name, in one of its `FOLDERS`."""
    return _FILE.fullmatch(attempted_name(name) or name) is not None


def seen_file(part: int, parts: int) -> str:
    """The name of the file of what a part's words have."""
    return f"seen/{piece_name('seen', part, parts)}.json"


def piece_file(number: int, pieces: int) -> str:
    """The name of a piece's file of words."""
    return f"state/{piece_name('words', number, pieces)}.arrow"


def shards_of(pieces: int) -> int:
    """How many shards a state of so many pieces has."""
    return min(pieces, MOST_SHARDS)


def names_of(pieces: int, parts: int) -> list[str]:
    """All files that a round may write in its run's folder."""
    shards = shards_of(pieces)
    return [
        ROUND_FILE,
        *(seen_file(i, parts) for i in range(parts)),
        *(piece_file(i, pieces) for i in range(pieces)),
        *(f"work/{piece_name('pairs', i, pieces)}.blocks" for i in range(pieces)),
        *(f"work/{piece_name('segments', i, pieces)}.blocks" for i in range(pieces)),
        *(f"pairs/{piece_name('hot', i, shards)}.arrow" for i in range(shards)),
        *(f"pairs/{piece_name('best', i, shards)}.arrow" for i in range(shards)),
        *(f"segments/{piece_name('segments', i, shards)}.arrow" for i in range(shards)),
    ]


class BlocksFile:
    """Blocks of a piece, one after another, and where each stands."""

    def __init__(self, file: BinaryIO, url: str, name: str) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._url = url
        self._name = name
        self.bytes = 0
        self.places: list[tuple[int, Place]] = []

    def write(self, blocks: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        """Appends blocks."""
        for shard, block in blocks:
            data = to_stream(block)
            self._file.write(data)
            self._hash.update(data)
            self.places.append((shard, (self._url, self.bytes, len(data), crc32(data))))
            self.bytes += len(data)

    def facts(self) -> dict[str, Any]:
        """The file as receipts name it."""
        return {"name": self._name, "bytes": self.bytes, "sha256": self._hash.hexdigest()}


def open_blocks(task: RoundTask, stack: ExitStack, kind: str, number: int) -> BlocksFile:
    """Begins the file of a piece's blocks; it appears whole at the stack's end."""
    name = f"work/{piece_name(kind, number, task.pieces)}.blocks"
    url = task.url(name)
    return BlocksFile(stack.enter_context(task.receipts.storage.create(url)), url, name)


def read_blocks(storage: Storage, places: Iterable[Place]) -> Iterator[bytes]:
    """The bytes of blocks, each file opened once.

    Raises:
        DataError: A block is not what was written.
    """
    opened = ""
    with ExitStack() as stack:
        for url, start, size, crc in sorted(places):
            if url != opened:
                stack.close()
                file = stack.enter_context(storage.open(url))
                opened = url
            file.seek(start)
            data = file.read(size)
            if crc32(data) != crc:
                raise DataError(f"{url}: the block at byte {start} is not what was written")
            yield data


def write_file(task: RoundTask, name: str, data: bytes) -> dict[str, Any]:
    """Writes a file of the run's folder; gives it as receipts name it."""
    task.receipts.storage.write_bytes(task.url(name), data)
    return {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read_file(storage: Storage, url: str, sha256: str) -> bytes:
    """A small file.

    Raises:
        DataError: It is not the file that was written.
    """
    data = storage.read_bytes(url)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"{url} is not the file that was written: its SHA-256 differs")
    return data


class Held(Generic[T]):
    """What all pieces of a round share in a process: made once, forgotten at the next round.

    Several threads of a process work on one round; they wait until it is made.
    """

    every: ClassVar[list[Held[Any]]] = []

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: tuple[str, ...] = ()
        self._value: T | None = None
        self.every.append(self)

    def get(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """What was made for this key, or is made now. The key must tell the content, not its place
        alone: a process may work for one job after the other."""
        with self._lock:
            if key != self._key:
                self.forget()
                self._value = make()
                self._key = key
            return cast(T, self._value)

    def forget(self) -> None:
        """Lets go of it."""
        with self._lock:
            self._key, self._value = (), None


_round_file: Held[RoundFile] = Held()


def round_file(task: RoundTask) -> RoundFile:
    """What the round applies. Cost: read once a process."""
    url = task.url(ROUND_FILE)

    def read() -> RoundFile:
        require_seen(task.receipts.storage, task.receipts.url, task.counts)
        return RoundFile.from_bytes(read_file(task.receipts.storage, url, task.given))

    return _round_file.get((url, task.given), read)
