"""The elements and the results of a merge round's tasks, as they travel and as receipts have them.

The words of a corpus are kept in word batches, a file each. The first round makes them from the
parts of the counts; each round writes them again with the last round's merges applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage.json_file import Count, Sha256
from bpe_beam.training.trainer_limits import Size

if TYPE_CHECKING:
    from typing_extensions import Self


class Element(Struct, frozen=True):
    """What travels between the workers of a round, as text."""

    def to_json(self) -> str:
        """Return the text."""
        return json.dumps(msgspec.to_builtins(self))  # a file's name may have lone surrogates

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text that `to_json` returned."""
        return msgspec.convert(json.loads(text), cls)


class PartSlice(NamedTuple):
    """A slice of a part of the counts: the part's number, the slice's number, and of how many."""

    part: int
    number: int
    slices: int


class CountsSource(Struct, frozen=True, tag="counts"):
    """The words of a word batch before the first round.

    Attributes:
        slices: The slices of the counts that they are in.
    """

    slices: tuple[PartSlice, ...]


class FileSource(Struct, frozen=True, tag="file"):
    """The words of a word batch after a round.

    Attributes:
        url: Their file.
        sha256: The SHA-256 of the file, in hex.
    """

    url: str
    sha256: str


class WordBatchTask(Element, frozen=True):
    """The task of writing a word batch again.

    Attributes:
        number: The word batch's number, from 0.
        source: Its words.
    """

    number: int
    source: CountsSource | FileSource


class WordBatchStats(Element, frozen=True, kw_only=True):
    """What a receipt says of a word batch. Commits of earlier versions lack some values.

    Attributes:
        words: The number of its words.
        symbols: The number of their symbols.
        width: The characters that they cover, if these are limited; else their symbols.
        weight: Their symbols, each weighted by the count of its word.
        singles: Words dropped because they are one symbol now, weighted by their counts.
        all_words: In the first round, the words of the counts, weighted by their counts.
        all_bytes: In the first round, the bytes of these words.
        blocks: The number of the blocks of pairs that were counted in it.
    """

    words: int = 0
    symbols: int = 0
    width: int = 0
    weight: int = 0
    singles: int = 0
    all_words: int = 0
    all_bytes: int = 0
    blocks: int = 0


class WordBatch(WordBatchStats, frozen=True, kw_only=True):
    """A word batch as a round has written it, with its stats.

    Attributes:
        name: The name of its file in the run's folder; in an element that travels, the file's URL.
        bytes: The size of the file.
        sha256: The SHA-256 of the file.
    """

    name: str
    bytes: Count
    sha256: Sha256

    @staticmethod
    def of(file: FileInfo, stats: WordBatchStats) -> WordBatch:
        """Return a word batch.

        Args:
            file: Its file.
            stats: Its stats.
        """
        return WordBatch(**asdict(file), **asdict(stats))

    @property
    def file(self) -> FileInfo:
        """The file of the word batch."""
        return FileInfo(self.name, self.bytes, self.sha256)


class PairStats(Struct, frozen=True):
    """What a receipt says of a shard of pairs.

    Attributes:
        floor: The least count of the pairs in the file of frequent pairs, which has all of them.
        most: The count of the best pair; 0 without pairs.
        pairs: The number of pairs.
        frequent: The number of pairs in the file of frequent pairs.
        blocks: The number of the blocks that were added up.
    """

    floor: int
    most: int
    pairs: int
    frequent: int
    blocks: int


class PairShard(Element, frozen=True):
    """A shard of pairs as it travels to the workers that segment words.

    Attributes:
        frequent: Its file of frequent pairs.
        stats: What is known of it.
    """

    frequent: FileInfo
    stats: PairStats


class SegmentedStats(Struct, frozen=True):
    """What a receipt says of a word batch that was divided into segments.

    Attributes:
        symbols: The number of the segments' symbols.
        blocks: The number of the blocks of segments.
    """

    symbols: int
    blocks: int


class SegmentStats(Struct, frozen=True):
    """What a receipt says of a shard of segments.

    Attributes:
        words: The number of segments.
        symbols: The number of their symbols.
        width: See `WordBatchStats`.
        blocks: The number of the blocks that were added up.
    """

    words: int
    symbols: int
    width: int
    blocks: int


def size_of(rows: Iterable[WordBatchStats | SegmentStats]) -> Size:
    """Return the size of word batches, or of shards of segments, in total."""
    sizes = [(row.words, row.symbols, row.width) for row in rows]
    return Size(*(sum(size[i] for size in sizes) for i in range(3)))
