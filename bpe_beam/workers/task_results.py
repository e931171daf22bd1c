"""The results of tasks, and sums of their metrics: the counters and distributions of a summary.

The names of metrics are in `metric_names.py`. A runner that repeats a task after a failure may
count it twice; the manifest of the job has the exact numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from bpe_beam.storage.json_file import JsonObject


class TaskResult(NamedTuple):
    """The result of a task.

    Attributes:
        outputs: The elements for the next step.
        counts: Amounts to add to counters, by name.
        values: One value for each distribution, by name.
    """

    outputs: list[Any]
    counts: Mapping[str, int] = {}
    values: Mapping[str, int] = {}


class MetricSums:
    """Sums of metrics.

    Attributes:
        counters: Sums by name.
        distributions: `count`, `sum`, `min` and `max` by name.
    """

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.distributions: dict[str, dict[str, int]] = {}

    def record(self, result: TaskResult) -> None:
        """Add the metrics of one task."""
        self.counters.update(result.counts)
        for name, value in result.values.items():
            self.add_values(name, count=1, total=value, minimum=value, maximum=value)

    def add_values(self, name: str, *, count: int, total: int, minimum: int, maximum: int) -> None:
        """Add values to a distribution."""
        before = self.distributions.get(
            name, {"count": 0, "sum": 0, "min": minimum, "max": maximum}
        )
        self.distributions[name] = {
            "count": before["count"] + count,
            "sum": before["sum"] + total,
            "min": min(before["min"], minimum),
            "max": max(before["max"], maximum),
        }

    def rate(self, name: str, seconds: float) -> int | None:
        """Return a counter's sum per second; None without the counter or the time."""
        total = self.counters[name]
        return round(total / seconds) if total and seconds > 0 else None

    def to_json(self) -> JsonObject:
        """Return both for a summary, sorted by name; None without any.

        Counters of 0 are left out, since Prism reports none.
        """
        return {
            "counters": dict(sorted((+self.counters).items())) or None,
            "distributions": dict(sorted(self.distributions.items())) or None,
        }
