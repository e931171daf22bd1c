"""An estimate of the work of a count job, for the time left.

Stored bytes are no even measure: a word that a split has not had before costs far more than another
one, and in the end the words of all splits are merged. How many words there will be is known from
the splits that are counted, and from those that are being counted: in natural text the number of
different words grows like a power of its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bpe_beam.progress import Snapshot

_FOUND, _WRITTEN, _MERGED = 65.0, 65.0, 110.0
"""The stored bytes that are read and counted in the time that a split's new word takes: when it is
found, when it is written, and when it is merged with those of the other splits."""
_GROWTH = 0.7
"""The power of a text's length with which the number of its different words grows."""
_LEAST_SHARE = 0.02
"""The least share of a split from which the words of the whole split are estimated."""


@dataclass(frozen=True)
class CountingWork:
    """Estimates the work of a count job, in stored bytes; called with a snapshot of its stage.

    The stage has the counters `_split_bytes` and `_words_written` of splits that are counted,
    `_words_found` of all splits of this run, and `parts_written`.

    Attributes:
        parts: The number of parts that are to be written.
        before: The stored bytes of splits that earlier runs counted.
        split_bytes: The stored bytes of a split.
        at_once: How many splits are counted at once.
    """

    parts: int
    before: int
    split_bytes: float
    at_once: int

    def __call__(self, now: Snapshot) -> tuple[float, float]:
        """Return the work that is done, and all work."""
        counters, total = now.counters, float(now.total or 0)
        found, written = counters.get("_words_found", 0), counters.get("_words_written", 0)
        counted = counters.get("_split_bytes", 0)
        words = total * self._words_per_byte(now.done - self.before - counted, counted, now)
        merged = words * counters.get("parts_written", 0) / self.parts
        done = now.done + _FOUND * max(found, written) + _WRITTEN * written + _MERGED * merged
        # Earlier runs have found and written the words of the splits that they counted.
        new = words * (1 - self.before / max(1.0, total))
        left = max(0.0, new - max(found, written)), max(0.0, new - written)
        expected = _FOUND * left[0] + _WRITTEN * left[1] + _MERGED * (words - merged)
        return done, done + max(0.0, total - now.done) + expected

    def _words_per_byte(self, reading: int, counted: int, now: Snapshot) -> float:
        """Return the words that splits have for each stored byte, found in each split anew."""
        written = now.counters.get("_words_written", 0)
        found = max(0, now.counters.get("_words_found", 0) - written)
        share = min(1.0, max(_LEAST_SHARE, reading / (self.at_once * max(1.0, self.split_bytes))))
        splits = max(0, reading) / share
        return (written + found / math.pow(share, _GROWTH)) / max(1.0, counted + splits)
