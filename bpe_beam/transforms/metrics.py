"""Beam's counters and distributions, with the same names (`Metric`) on every runner."""

from __future__ import annotations

import pyarrow as pa
from apache_beam.metrics import Metrics
from apache_beam.metrics.metric import MetricResults, MetricsFilter

from bpe_beam.workers.task_results import Metric, MetricSums, TaskResult

NAMESPACE = "bpe_beam"


def counter(name: Metric) -> Metrics.DelegatingCounter:
    """Return a counter in the namespace of this package."""
    return Metrics.counter(NAMESPACE, name)


def count_tokens(ids: pa.LargeListArray) -> None:
    """Count documents and their tokens; must be called within a call of a DoFn."""
    counter("documents_tokenized").inc(len(ids))
    counter("tokens_made").inc(len(ids.flatten()))


def record(result: TaskResult) -> None:
    """Add the metrics of one task; must be called within a call of a DoFn."""
    for metric, count in result.counts.items():
        counter(metric).inc(count)
    for name, value in result.values.items():
        Metrics.distribution(NAMESPACE, name).update(value)


def add_metrics(measured: MetricSums, metrics: MetricResults) -> None:
    """Add the metrics of one pipeline, over all of its steps."""
    results = metrics.query(MetricsFilter().with_namespace(NAMESPACE))
    # Some runners name a metric without a value.
    for each in results["counters"]:
        measured.counters[each.key.metric.name] += int(each.result or 0)
    for each in results["distributions"]:
        values = each.result
        if values is not None and values.count:
            measured.add_values(
                each.key.metric.name,
                count=int(values.count),
                total=int(values.sum),
                minimum=int(values.min),
                maximum=int(values.max),
            )
