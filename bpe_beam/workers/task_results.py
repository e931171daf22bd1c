"""The results of tasks, and sums of their metrics: the counters and distributions of a summary.

A runner that repeats a task after a failure may count it twice; the manifest of the job has the
exact numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bpe_beam.storage.json_file import JsonObject

Metric = Literal[
    "count_block_bytes",
    "count_blocks",
    "dead_letters",
    "documents_before_update",
    "documents_late",
    "documents_read",
    "documents_repeated",
    "documents_tokenized",
    "documents_written",
    "files_changed",
    "files_left_out",
    "files_taken",
    "pair_block_bytes",
    "records_rejected",
    "segment_block_bytes",
    "stored_bytes_lost",
    "text_bytes_read",
    "text_bytes_tokenized",
    "tokens_made",
    "tokens_written",
    "unique_words",
    "windows_finished",
    "windows_over_limit",
    "words_counted",
    "words_rewritten",
]
"""A counter: its name ends with its unit, or is the unit."""


class TaskResult(NamedTuple):
    """The elements for the next step, amounts for counters, a value for each distribution."""

    outputs: list[Any]
    counts: Mapping[Metric, int] = {}
    values: Mapping[str, int] = {}


class MetricSums:
    """Sums of metrics by name: of a distribution, `count`, `sum`, `min` and `max`."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.distributions: dict[str, dict[str, int]] = {}

    def record(self, result: TaskResult) -> None:
        self.counters.update(result.counts)
        for name, value in result.values.items():
            self.add_values(name, count=1, total=value, minimum=value, maximum=value)

    def add_values(self, name: str, *, count: int, total: int, minimum: int, maximum: int) -> None:
        values = {"count": 0, "sum": 0, "min": minimum, "max": maximum}
        values = self.distributions.setdefault(name, values)
        values["count"] += count
        values["sum"] += total
        values["min"] = min(values["min"], minimum)
        values["max"] = max(values["max"], maximum)

    def rate(self, name: Metric, seconds: float) -> int | None:
        """Return a counter's sum per second; None without the counter or the time."""
        total = self.counters[name]
        return round(total / seconds) if total and seconds > 0 else None

    def to_json(self) -> JsonObject:
        """Return both for a summary, but counters of 0, which Prism does not report."""
        return {
            "counters": dict(sorted((+self.counters).items())) or None,
            "distributions": dict(sorted(self.distributions.items())) or None,
        }
