"""The most frequent words of a counts folder, for people, on stdout; and histograms of words.

Memory: the words of one partition, and the most frequent words so far.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.counts.part_files import added_up, read_part
from bpe_beam.counts.word_table import weighted_total
from bpe_beam.jobs.counts import shared
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.show import ShowCountsSettings
from bpe_beam.storage import Storage

_MAX_COLUMNS = 8

_TENS = 10 ** np.arange(19, dtype=np.int64)  # the minimum counts of the rows of `by_count`

_LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 21, 31, 51, 101], np.int64)
"""The minimum lengths of the rows of `by_characters`."""


class Word(msgspec.Struct):
    """A frequent word of the chosen sources, with its count in each that has it."""

    word: str
    count: int
    sources: dict[str, int] | UnsetType = UNSET
    share: float | None = None  # `count` over all words of the chosen sources; None without words


class ShowCountsSummary(msgspec.Struct, frozen=True):
    """The summary of `counts show`; `words_of_sources` counts the words of the chosen sources."""

    job: str
    folder: str
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    words_of_sources: int | None
    most_frequent_words: list[Word]


def run(settings: ShowCountsSettings, _progress: Progress) -> ShowCountsSummary:
    """Write the most frequent words to stdout; return them with totals."""
    storage = Storage(settings.run.storage_options)
    manifest = read_manifest(storage, settings.folder)
    sources = shared.known_sources(manifest, settings.sources)
    rows = most_frequent(
        storage, settings.folder, manifest, sources, settings.top, settings.min_count
    )
    total = manifest.words
    if manifest.sources is not None:
        total = sum(manifest.sources[name].words for name in sources)
    for row in rows:
        row.share = row.count / total if total else None
    columns = list(sources[:_MAX_COLUMNS]) if len(sources) > 1 else []
    print("\n".join(_lines(rows, columns)))
    if len(sources) > _MAX_COLUMNS:
        print(f"{len(sources):,} sources; these are the first {_MAX_COLUMNS}: choose others")
    return ShowCountsSummary(
        job="counts show",
        folder=settings.folder,
        documents=manifest.documents,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        words_of_sources=None if manifest.sources is None else total,
        most_frequent_words=rows,
    )


def most_frequent(
    storage: Storage,
    folder: str,
    manifest: CountsManifest,
    sources: Collection[str],
    top: int,
    min_count: int = 1,
    *,
    on_words: Callable[[pa.Table], None] = lambda words: None,
) -> list[Word]:
    """Return the most frequent words of a counts folder, ties in the order of their bytes.

    Cost: reads every part; memory for one part.
    """
    factors = {name: int(name in sources) for name in manifest.sources or ()}
    best: list[Word] = []
    for part in manifest.parts:
        counted = read_part(storage, folder, manifest, part)
        words = added_up(counted, manifest.with_places, factors)
        on_words(words)
        words = words.filter(pc.greater_equal(words["count"], min_count))
        words = words.select(["word", "count"]).sort_by(
            [("count", "descending"), ("word", "ascending")]
        )
        rows = [Word(**row) for row in words.slice(0, top).to_pylist()]
        if part.sources is not None:
            _add_sources(rows, counted, sources)
        # Python compares characters as UTF-8 compares bytes.
        best = sorted([*best, *rows], key=lambda row: (-row.count, row.word))[:top]
    return best


def _add_sources(
    rows: list[Word], by_source: Mapping[str | None, pa.Table], sources: Collection[str]
) -> None:
    wanted = pa.array([row.word for row in rows], pa.large_string())
    by_row: list[dict[str, int]] = [{} for _ in rows]
    for source, words in by_source.items():
        if source is not None and source in sources:
            positions = pc.index_in(wanted, words["word"])
            counts = words["count"].combine_chunks().take(positions).to_pylist()
            for counted, count in zip(by_row, counts, strict=True):
                if count is not None:
                    counted[source] = count
    for row, counted in zip(rows, by_row, strict=True):
        row.sources = counted


def _lines(rows: list[Word], columns: list[str]) -> list[str]:
    """Return aligned columns: count, share, the count of each source, and the word, quoted."""
    heads = ["count", "share", *(name if name.isprintable() else repr(name) for name in columns)]
    cells = [
        [
            f"{row.count:,}",
            "" if row.share is None else f"{row.share:.4%}",
            *(f"{(row.sources or {}).get(name, 0):,}" for name in columns),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    words = ["word", *(repr(row.word) for row in rows)]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), word])
        for line, word in zip([heads, *cells], words, strict=True)
    ]


class WordHistograms:
    """Words by count and by length; words are added table by table."""

    def __init__(self) -> None:
        self._counts = np.zeros((len(_TENS), 2), object)
        self._lengths = np.zeros((len(_LENGTHS), 2), object)

    def add(self, words: pa.Table) -> None:
        """Add words that were not added before."""
        counts = words["count"].to_numpy()
        _add(self._counts, np.searchsorted(_TENS, counts, "right") - 1, counts)
        lengths = pc.utf8_length(words["word"]).to_numpy()
        _add(self._lengths, np.searchsorted(_LENGTHS, lengths, "right") - 1, counts)

    @property
    def by_count(self) -> dict[str, dict[str, int]]:
        """Unique words, and words with each occurrence counted, by how often a word occurs."""
        return _rows(self._counts, _TENS)

    @property
    def by_characters(self) -> dict[str, dict[str, int]]:
        """The same by the number of characters of a word."""
        return _rows(self._lengths, _LENGTHS)


def _add(sums: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> None:
    """Add to the sums of rows; they are whole numbers of Python, which have no limit."""
    for row in np.unique(rows).tolist():
        of_row = counts[rows == row]
        sums[row] += (len(of_row), weighted_total(np.ones_like(of_row), of_row))


def _rows(sums: np.ndarray, minimums: np.ndarray) -> dict[str, dict[str, int]]:
    """Return the rows between the first and the last that have words, by their bounds."""
    filled = np.flatnonzero(sums[:, 0])
    rows = {}
    for row in range(filled[0], filled[-1] + 1) if len(filled) else ():
        last = int(minimums[row + 1]) - 1 if row + 1 < len(minimums) else None
        first = int(minimums[row])
        bounds = f"{first:,}" if last == first else f"{first:,} to {last:,}" if last else ""
        rows[bounds or f"{first:,} or more"] = {
            "unique_words": int(sums[row, 0]),
            "words": int(sums[row, 1]),
        }
    return rows
