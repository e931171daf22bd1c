"""Histograms of the words of a counts folder: by their counts, and by their lengths."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.counts.word_table import weighted_total

_TENS = 10 ** np.arange(19, dtype=np.int64)
"""The minimum counts of the rows of `by_count`."""

_LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 21, 31, 51, 101], np.int64)
"""The minimum lengths of the rows of `by_characters`."""


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
