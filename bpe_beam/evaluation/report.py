"""The report of an evaluation: the figures of tokenizers on the same words, as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.metrics import Fairness, Metrics, Tally, fairness, metrics_of, ratio
from bpe_beam.evaluation.smaller_vocabularies import Derivations
from bpe_beam.evaluation.unused_tokens import UnusedTokens, unused_tokens
from bpe_beam.evaluation.vocabulary import Vocabulary, tokens_by_script
from bpe_beam.messages import list_few
from bpe_beam.tokenizer.components.models import BPE

VERSION = 1
"""The version of the report's JSON."""

COSTS: dict[str, Callable[[Metrics], int]] = {
    "tokens_per_word": lambda metrics: metrics.words,
    "tokens_per_character": lambda metrics: metrics.characters,
    "tokens_per_byte": lambda metrics: metrics.bytes,
    "tokens": lambda metrics: 1,
}
"""The divisors of the costs whose fairness is in a report; `tokens` only of translations."""


class MixtureFigures(Struct, frozen=True):
    """The figures of a mixture, whose sources have shares of its tokens; None if unknown."""

    bytes_per_token: float | None
    tokens_per_word: float | None


class Figures(Struct, frozen=True):
    """The figures of one vocabulary.

    Attributes:
        sources: The figures of each source, sorted by name; None without sources.
        fairness: By cost, how unequal it is over the sources; None without two sources. If the
            sources are translations of one text, `tokens` is among them: the parity of languages.
        premiums: The tokens of each source over the tokens of one chosen source, if the sources are
            translations of one text; None: they are not.
        mixture: The figures of a mixture of the sources, if one was given.
    """

    vocab_size: int
    total: Metrics
    sources: dict[str, Metrics] | None
    fairness: dict[str, Fairness | None] | None
    premiums: dict[str, float | None] | None = None
    mixture: MixtureFigures | UnsetType = UNSET


class TokenizerReport(Struct, frozen=True):
    """The report of one tokenizer; `curve` has smaller vocabularies, sorted by their sizes."""

    name: str
    fingerprint: str
    model: str
    exact: bool
    figures: Figures
    tokens_by_script: dict[str, int]
    unused: UnusedTokens
    curve: list[Figures]


class WordsSummary(Struct, frozen=True):
    """The words of a report: their rules by name, and how many there are."""

    normalizer: str
    pretokenizer: str
    documents: int
    words: int
    unique_words: int


class Report(Struct, frozen=True):
    """The report of an evaluation; `words` is None of tokens without their text."""

    version: int
    words: WordsSummary | None
    tokenizers: list[TokenizerReport]


class VocabularySummary(NamedTuple):
    """What a report needs of a vocabulary; `derivations` is None if the model is not BPE."""

    derivations: Derivations | None
    tokens_by_script: dict[str, int]


def summarize(vocabulary: Vocabulary) -> VocabularySummary:
    """Return what a report needs of a vocabulary. Cost: about 1 microsecond a token.

    The texts and bytes of its tokens, which words may need, are there afterwards.
    """
    _ = vocabulary.texts, vocabulary.position_of_id, vocabulary.single_byte, vocabulary.partial
    return VocabularySummary(derivations_of(vocabulary), tokens_by_script(vocabulary))


def report_of(
    name: str,
    vocabulary: Vocabulary,
    tallies: Iterable[tuple[str | None, Tally]],
    vocab_sizes: Sequence[int],
    *,
    exact: bool,
    parallel: str | None = None,
    summary: Callable[[], VocabularySummary] | None = None,
) -> tuple[TokenizerReport, Tally]:
    """Return the report of a tokenizer, and the tally of all sources."""
    summary = summary or cache(lambda: summarize(vocabulary))
    if vocab_sizes:
        check_sizes(vocabulary, summary().derivations, vocab_sizes)
    whole = _Sources(vocabulary, len(vocabulary))
    sizes = sorted(set(vocab_sizes) - {len(vocabulary)})  # that size is the tokenizer itself
    smaller = {size: _Sources(vocabulary, size) for size in sizes}
    for source, tally in tallies:
        whole.add(source, tally)
        if sizes and (merges := summary().derivations) is not None:
            for size, shrunk in merges.shrunk(tally, sizes).items():
                smaller[size].add(source, shrunk)
    derivations, scripts = summary()
    report = TokenizerReport(
        name=name,
        fingerprint=vocabulary.tokenizer.fingerprint,
        model=vocabulary.tokenizer.spec.model.json_type,
        exact=exact,
        figures=whole.figures(parallel),
        tokens_by_script=scripts,
        unused=unused_tokens(vocabulary, whole.total.tokens, derivations),
        curve=[smaller[size].figures(parallel) for size in sizes],
    )
    return report, whole.total


def mixed_report(report: TokenizerReport, shares: Mapping[str, Fraction]) -> TokenizerReport:
    """Return a report with the figures of a mixture, by the shares of sources in its tokens."""

    def mixed(figures: Figures) -> Figures:
        sources = {name: (figures.sources or {})[name] for name in shares}
        mixture = MixtureFigures(None, None)
        if all(one.tokens for one in sources.values()):
            each = [(shares[name] / one.tokens, one) for name, one in sources.items()]
            size = sum((part * one.bytes for part, one in each), Fraction(0))
            words = sum((part * one.words for part, one in each), Fraction(0))
            mixture = MixtureFigures(
                float(size) if size else None, float(1 / words) if words else None
            )
        return msgspec.structs.replace(figures, mixture=mixture)

    return msgspec.structs.replace(
        report, figures=mixed(report.figures), curve=[mixed(each) for each in report.curve]
    )


def derivations_of(vocabulary: Vocabulary) -> Derivations | None:
    """Return the merges of tokens; None if the model is not BPE."""
    is_bpe = isinstance(vocabulary.tokenizer.spec.model, BPE)
    return Derivations(vocabulary) if is_bpe else None


def check_sizes(
    vocabulary: Vocabulary, derivations: Derivations | None, sizes: Sequence[int]
) -> None:
    """Refuse sizes without a vocabulary."""
    if derivations is None:
        raise UsageError(
            "must not be set for a tokenizer that is not BPE: only merges have an order",
            ("vocab_sizes",),
        )
    minimum, maximum = derivations.minimum_size, len(vocabulary)
    for size in sizes:
        require(
            minimum <= size <= maximum,
            f"must be from {minimum:,}, the size without merges, to {maximum:,}, the tokenizer's "
            f"size, got {size:,}",
            "vocab_sizes",
        )
    derivations.check_order()


def check_parallel(parallel: str | None, sources: Collection[str] | None) -> None:
    """Refuse a source that there is not."""
    if parallel is not None and parallel not in (sources or ()):
        known = list_few(sorted(sources)) if sources else "none"
        raise UsageError(f"must be one of the sources, {known}, got {parallel!r}", ("parallel",))


class _Sources:
    """The figures of a vocabulary, while sources are added; `total` is the tally of all."""

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        self._vocabulary = vocabulary
        self._size = size
        self._metrics: dict[str | None, Metrics] = {}
        self.total = Tally.empty(len(vocabulary))

    def add(self, source: str | None, tally: Tally) -> None:
        """Add a source; None is all text, without sources."""
        self.total.add(tally)
        self._metrics[source] = self._metrics_of(tally)

    def figures(self, parallel: str | None) -> Figures:
        """Return the figures; see `report_of`."""
        total = self._metrics_of(self.total)
        if None in self._metrics:
            return Figures(self._size, total, None, None)
        sources = {str(source): self._metrics[source] for source in sorted(self._metrics, key=str)}
        costs = {
            cost: fairness({source: ratio(one.tokens, of(one)) for source, one in sources.items()})
            for cost, of in COSTS.items()
            if cost != "tokens" or parallel is not None
        }
        premiums = None
        if parallel is not None:
            base = sources[parallel].tokens
            premiums = {source: ratio(one.tokens, base) for source, one in sources.items()}
        return Figures(self._size, total, sources, costs, premiums)

    def _metrics_of(self, tally: Tally) -> Metrics:
        tokens = self._vocabulary
        return metrics_of(tally, self._size, tokens.single_byte, tokens.partial, tokens.unknown)


def to_csv(report: Report) -> bytes:
    """Return the figures of a report as CSV: a row for each tokenizer, size and source.

    The row of all sources has no source. The last column says whether the figures are exact.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [each.name for each in msgspec.structs.fields(Metrics)]
    writer.writerow(["tokenizer", "vocab_size", "source", *names, "exact"])
    for tokenizer in report.tokenizers:
        exact = "true" if tokenizer.exact else "false"
        for figures in (*tokenizer.curve, tokenizer.figures):
            for source, metrics in {"": figures.total, **(figures.sources or {})}.items():
                values = msgspec.structs.astuple(metrics)
                writer.writerow([tokenizer.name, figures.vocab_size, source, *values, exact])
    return file.getvalue().encode()
