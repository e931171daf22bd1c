"""Counters and distributions of Beam, under the names of `workers/metric_names.py` on every runner.

A runner that does a piece twice, after a failure, may count it twice; what a job wrote stands in
its manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apache_beam.metrics import Metrics
from apache_beam.metrics.metric import MetricResults, MetricsFilter

NAMESPACE = "bpe_beam"


def counter(name: str) -> Metrics.DelegatingCounter:
    """A counter of ours."""
    return Metrics.counter(NAMESPACE, name)


def record(counts: Mapping[str, int], values: Mapping[str, int]) -> None:
    """Adds to counters, and a value to each of some distributions; within a DoFn's call.

    Args:
        counts: What to add, by the counter's name.
        values: A value each, by the distribution's name.
    """
    for name, count in counts.items():
        Metrics.counter(NAMESPACE, name).inc(count)
    for name, value in values.items():
        Metrics.distribution(NAMESPACE, name).update(value)


@dataclass
class Measured:
    """What pipelines measured, added up.

    Attributes:
        counters: Sums by name, each above 0: Prism does not report a counter of 0.
        distributions: `count`, `sum`, `min` and `max` by name.
    """

    counters: dict[str, int] = field(default_factory=dict)
    distributions: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, metrics: MetricResults) -> None:
        """Adds what one pipeline kept, over all of its steps."""
        found = metrics.query(MetricsFilter().with_namespace(NAMESPACE))
        # Some runners name a counter without a value.
        for result in (each for each in found["counters"] if each.result):
            name = result.key.metric.name
            self.counters[name] = self.counters.get(name, 0) + int(result.result)
        for result in (each for each in found["distributions"] if each.result is not None):
            self._add_distribution(result.key.metric.name, result.result)

    def rate(self, name: str, seconds: float) -> int | None:
        """Return a counter's sum for each second; None without the counter or the time.

        Args:
            name: The counter's name.
            seconds: How long the work took.
        """
        found = self.counters.get(name)
        return round(found / seconds) if found and seconds > 0 else None

    def _add_distribution(self, name: str, more: Any) -> None:
        if more is None or not more.count:
            return
        old = self.distributions.get(name)
        self.distributions[name] = {
            "count": int(more.count) + (old["count"] if old else 0),
            "sum": int(more.sum) + (old["sum"] if old else 0),
            "min": min(int(more.min), old["min"] if old else int(more.min)),
            "max": max(int(more.max), old["max"] if old else int(more.max)),
        }

    def to_json(self) -> dict[str, Any]:
        """Both, sorted by name, for a summary; None where nothing was measured."""
        return {
            "counters": dict(sorted(self.counters.items())) or None,
            "distributions": dict(sorted(self.distributions.items())) or None,
        }
