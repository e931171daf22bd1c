"""Counters of what passes through, under one name with its unit on every runner."""

from __future__ import annotations

from apache_beam.metrics import Metrics
from apache_beam.metrics.metric import MetricResults, MetricsFilter

NAMESPACE = "bpe_beam"

DOCUMENTS_READ = "documents_read"
TEXT_BYTES_READ = "text_bytes_read"
RECORDS_REJECTED = "records_rejected"
WORDS_COUNTED = "words_counted"
COUNT_BLOCKS = "count_blocks"
COUNT_BLOCK_BYTES = "count_block_bytes"
UNIQUE_WORDS = "unique_words"
DOCUMENTS_TOKENIZED = "documents_tokenized"
TEXT_BYTES_TOKENIZED = "text_bytes_tokenized"
TOKENS_MADE = "tokens_made"
DOCUMENTS_WRITTEN = "documents_written"
TOKENS_WRITTEN = "tokens_written"


def counter(name: str) -> Metrics.DelegatingCounter:
    """A counter of ours."""
    return Metrics.counter(NAMESPACE, name)


def totals(metrics: MetricResults) -> dict[str, int]:
    """All counters of ours that a run kept, by name, summed over its steps."""
    sums: dict[str, int] = {}
    for result in metrics.query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
        name = result.key.metric.name
        # Of an attempt that counted nothing Beam may say None.
        sums[name] = sums.get(name, 0) + int(result.result or 0)
    return dict(sorted(sums.items()))
