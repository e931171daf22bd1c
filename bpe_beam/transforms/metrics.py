"""Counters and distributions of Beam, under the names of `workers/metric_names.py` on every runner.

A runner that repeats a task after a failure may count it twice. The exact numbers of what a job
wrote are in its manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apache_beam.metrics import Metrics
from apache_beam.metrics.metric import MetricResults, MetricsFilter

NAMESPACE = "bpe_beam"


def counter(name: str) -> Metrics.DelegatingCounter:
    """Return a counter in the namespace of this package."""
    return Metrics.counter(NAMESPACE, name)


def record(counts: Mapping[str, int], values: Mapping[str, int]) -> None:
    """Add to counters and distributions; must be called within a call of a DoFn.

    Args:
        counts: The numbers to add, by name of the counter.
        values: One value for each distribution, by its name.
    """
    for name, count in counts.items():
        Metrics.counter(NAMESPACE, name).inc(count)
    for name, value in values.items():
        Metrics.distribution(NAMESPACE, name).update(value)


@dataclass
class Measured:
    """The metrics of pipelines, added up.

    Attributes:
        counters: Sums by name, each above 0: Prism does not report a counter of 0.
        distributions: `count`, `sum`, `min` and `max` by name.
    """

    counters: dict[str, int] = field(default_factory=dict)
    distributions: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, metrics: MetricResults) -> None:
        """Add the metrics of one pipeline, over all of its steps."""
        found = metrics.query(MetricsFilter().with_namespace(NAMESPACE))
        # Some runners name a counter without a value.
        for result in (each for each in found["counters"] if each.result):
            name = result.key.metric.name
            self.counters[name] = self.counters.get(name, 0) + int(result.result)
        for result in (each for each in found["distributions"] if each.result is not None):
            self._add_distribution(result.key.metric.name, result.result)

    def rate(self, name: str, seconds: float) -> int | None:
        """Return a counter's sum per second; None without the counter or the time.

        Args:
            name: The counter's name.
            seconds: The seconds that the pipeline took.
        """
        found = self.counters.get(name)
        return round(found / seconds) if found and seconds > 0 else None

    def _add_distribution(self, name: str, more: Any) -> None:
        if more is None or not more.count:
            return
        empty = {"count": 0, "sum": 0, "min": int(more.min), "max": int(more.max)}
        total = self.distributions.get(name, empty)
        self.distributions[name] = {
            "count": total["count"] + int(more.count),
            "sum": total["sum"] + int(more.sum),
            "min": min(total["min"], int(more.min)),
            "max": max(total["max"], int(more.max)),
        }

    def to_json(self) -> dict[str, Any]:
        """Return both for a summary, sorted by name; None where nothing was measured."""
        return {
            "counters": dict(sorted(self.counters.items())) or None,
            "distributions": dict(sorted(self.distributions.items())) or None,
        }
