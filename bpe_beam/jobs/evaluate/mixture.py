"""The figures of a mixture of sources, in the report of a tokenizer."""

from __future__ import annotations

from bpe_beam.errors import parameter_renamed, require
from bpe_beam.evaluation.report import TokenizerReport, mixed_report
from bpe_beam.shards.mixture import read_mixture
from bpe_beam.storage import Storage


def with_mixture(report: TokenizerReport, file: str, storage: Storage) -> TokenizerReport:
    """Return a report with the figures of the mixture in a file."""
    options, sources = read_mixture(storage, file), report.figures.sources
    require(
        sources is not None,
        "must have sources, and these words or tokens have none",
        "mixture",
        remedy="name the sources with {sources} or {source_field}, or count by source",
    )
    with parameter_renamed("share", "mixture"), parameter_renamed("tokens_of", "mixture"):
        return mixed_report(report, options.shares([*(sources or ())]))
