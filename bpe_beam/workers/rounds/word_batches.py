"""The elements and the results of a merge round's tasks, as they travel and as receipts have them.

The words of a corpus are kept in word batches, a file each. The first round makes them from the
parts of the counts; each round writes them anew with the last round's merges applied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.training.trainer_limits import Size


class PartSlice(NamedTuple):
    """A slice of a part of the counts: the part's number, the slice's number, and of how many."""

    part: int
    number: int
    slices: int


@dataclass(frozen=True)
class CountsSource:
    """The words of a word batch before the first round.

    Attributes:
        slices: Where they are in the counts.
    """

    slices: tuple[PartSlice, ...]


@dataclass(frozen=True)
class FileSource:
    """The words of a word batch after a round.

    Attributes:
        url: Their file.
        sha256: The SHA-256 of the file, in hex.
    """

    url: str
    sha256: str


@dataclass(frozen=True)
class WordBatchTask:
    """The task of writing a word batch anew.

    Attributes:
        number: The word batch's number, from 0.
        source: Its words.
    """

    number: int
    source: CountsSource | FileSource

    def to_json(self) -> str:
        """Return the task as the text that travels to a worker."""
        return json.dumps([self.number, *asdict(self.source).values()])

    @staticmethod
    def from_json(text: str) -> WordBatchTask:
        """Read what `to_json` returned."""
        number, first, *rest = json.loads(text)
        if rest:
            return WordBatchTask(number, FileSource(first, *rest))
        return WordBatchTask(number, CountsSource(tuple(PartSlice(*row) for row in first)))


@dataclass(frozen=True)
class WordBatchStats:
    """What a receipt says of a word batch.

    Attributes:
        words: The number of its words.
        symbols: The number of their symbols.
        width: The characters that they cover, where these are limited; else their symbols.
        weight: Their symbols, each weighted by the count of its word.
        singles: Words dropped because they are one symbol now, weighted by their counts.
        all_words: In the first round, the words of the counts, weighted by their counts.
        all_bytes: In the first round, the bytes of these words.
        blocks: The number of the blocks of pairs that were counted in it.
    """

    words: int
    symbols: int
    width: int
    weight: int
    singles: int
    all_words: int
    all_bytes: int
    blocks: int

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> WordBatchStats:
        """Read the stats of a receipt, or of a word batch of a commit; other keys are ignored.

        Commits of earlier versions of the package lack some values: they are 0.
        """
        return WordBatchStats(**{name: value.get(name, 0) for name in _STATS})


_STATS = tuple(WordBatchStats.__dataclass_fields__)


@dataclass(frozen=True)
class WordBatch:
    """A word batch as a round has written it.

    Attributes:
        file: Its file; in an element that travels, the name is the file's URL.
        stats: What is known of it.
    """

    file: FileInfo
    stats: WordBatchStats

    def to_json(self) -> dict[str, object]:
        """Return the word batch as JSON values."""
        return {**self.file.to_json(), **asdict(self.stats)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> WordBatch:
        """Read what `to_json` returned."""
        return WordBatch(FileInfo.from_json(value), WordBatchStats.from_json(value))


@dataclass(frozen=True)
class PairStats:
    """What a receipt says of a shard of pairs.

    Attributes:
        floor: The count down to which all pairs are in the file of frequent pairs.
        most: The count of the best pair; 0 without pairs.
        pairs: The number of pairs.
        hot: The number of pairs in the file of frequent pairs.
        blocks: The number of the blocks that were added up.
    """

    floor: int
    most: int
    pairs: int
    hot: int
    blocks: int


@dataclass(frozen=True)
class PairShard:
    """A shard of pairs as it travels to the workers that segment words.

    Attributes:
        hot: Its file of frequent pairs.
        stats: What is known of it.
    """

    hot: FileInfo
    stats: PairStats

    def to_json(self) -> str:
        """Return the shard as the text that travels to workers."""
        return json.dumps([self.hot.to_json(), asdict(self.stats)])

    @staticmethod
    def from_json(text: str) -> PairShard:
        """Read what `to_json` returned."""
        hot, stats = json.loads(text)
        return PairShard(FileInfo.from_json(hot), PairStats(**stats))


@dataclass(frozen=True)
class SegmentedStats:
    """What a receipt says of a word batch that was cut into segments.

    Attributes:
        symbols: The number of the segments' symbols.
        blocks: The number of the blocks of segments.
    """

    symbols: int
    blocks: int


@dataclass(frozen=True)
class SegmentStats:
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
