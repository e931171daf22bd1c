"""The report of an evaluation: the figures of tokenizers on the same words, as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.derivations import Derivations
from bpe_beam.evaluation.metrics import Fairness, Metrics, fairness, metrics_of, ratio
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.unused_tokens import UnusedTokens, unused_tokens
from bpe_beam.evaluation.vocabulary import Vocabulary, tokens_by_script
from bpe_beam.messages import list_few
from bpe_beam.tokenizer.components.models import BPE

VERSION = 1
"""The version of the report's JSON."""

COSTS = ("tokens_per_word", "tokens_per_character", "tokens_per_byte")
"""The costs whose fairness is in a report; of translations of one text `tokens` is one, too."""


class Figures(Struct, frozen=True):
    """The figures of one vocabulary.

    Attributes:
        vocab_size: The number of its tokens.
        total: The figures of all words.
        sources: The figures of each source, sorted by name; None without sources.
        fairness: By cost, how unequal it is over the sources; None without two sources. If the
            sources are translations of one text, `tokens` is among them: the parity of languages.
        premiums: The tokens of each source over the tokens of one chosen source, if the sources are
            translations of one text; None: they are not.
    """

    vocab_size: int
    total: Metrics
    sources: dict[str, Metrics] | None
    fairness: dict[str, Fairness | None] | None
    premiums: dict[str, float | None] | None = None


class TokenizerReport(Struct, frozen=True):
    """The report of one tokenizer.

    Attributes:
        name: Its name.
        fingerprint: The SHA-256 of its file.
        model: The type of its model.
        exact: Whether the tokens equal the corpus's: see `WordEncoder`.
        figures: The figures of the whole vocabulary.
        tokens_by_script: The number of tokens of each script.
        unused: Tokens that the vocabulary could do without.
        curve: The figures of smaller vocabularies, in the order of their sizes.
    """

    name: str
    fingerprint: str
    model: str
    exact: bool
    figures: Figures
    tokens_by_script: dict[str, int]
    unused: UnusedTokens
    curve: list[Figures]


class WordsSummary(Struct, frozen=True):
    """The words of a report.

    Attributes:
        normalizer: Their normalizer by name.
        pretokenizer: Their pre-tokenizer by name.
        documents: The number of documents.
        words: The number of words, each occurrence counted.
        unique_words: The number of words, each counted once.
    """

    normalizer: str
    pretokenizer: str
    documents: int
    words: int
    unique_words: int


class Report(Struct, frozen=True):
    """The report of an evaluation.

    Attributes:
        version: The version of this form.
        words: The words; None of tokens without their text.
        tokenizers: A report of each tokenizer.
    """

    version: int
    words: WordsSummary | None
    tokenizers: list[TokenizerReport]


class VocabularySummary(NamedTuple):
    """What a report needs of a vocabulary, whatever the words are.

    Attributes:
        derivations: Its merges; None if the model is not BPE.
        tokens_by_script: See `TokenizerReport`.
    """

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
) -> TokenizerReport:
    """Return the report of a tokenizer."""
    summary = summary or partial(summarize, vocabulary)
    known = None
    if vocab_sizes:
        known = summary()
        check_sizes(vocabulary, known.derivations, vocab_sizes)
    whole = _Sources(vocabulary, len(vocabulary))
    sizes = sorted(set(vocab_sizes) - {len(vocabulary)})  # that size is the tokenizer itself
    smaller = {size: _Sources(vocabulary, size) for size in sizes}
    for source, tally in tallies:
        whole.add(source, tally)
        if known is not None and known.derivations is not None and sizes:
            for size, shrunk in known.derivations.shrunk(tally, sizes).items():
                smaller[size].add(source, shrunk)
    derivations, scripts = known or summary()
    return TokenizerReport(
        name=name,
        fingerprint=vocabulary.tokenizer.fingerprint,
        model=vocabulary.tokenizer.spec.model.json_type,
        exact=exact,
        figures=whole.figures(parallel),
        tokens_by_script=scripts,
        unused=unused_tokens(vocabulary, whole.total.tokens, derivations),
        curve=[smaller[size].figures(parallel) for size in sizes],
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
    least, most = derivations.least_size, len(vocabulary)
    for size in sizes:
        require(
            least <= size <= most,
            f"must be from {least:,}, the size without merges, to {most:,}, the tokenizer's size, "
            f"got {size:,}",
            "vocab_sizes",
        )
    derivations.check_order()


def check_parallel(parallel: str | None, sources: Collection[str] | None) -> None:
    """Refuse a source that there is not."""
    if parallel is not None and parallel not in (sources or ()):
        known = list_few(sorted(sources)) if sources else "none"
        raise UsageError(f"must be one of the sources, {known}, got {parallel!r}", ("parallel",))


class _Sources:
    """The figures of a vocabulary, while sources are added.

    Attributes:
        total: The tally of all sources.
    """

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
            cost: fairness({source: cost_of(cost, one) for source, one in sources.items()})
            for cost in (COSTS if parallel is None else (*COSTS, "tokens"))
        }
        premiums = None if parallel is None else _premiums(sources, parallel)
        return Figures(self._size, total, sources, costs, premiums)

    def _metrics_of(self, tally: Tally) -> Metrics:
        tokens = self._vocabulary
        return metrics_of(tally, self._size, tokens.single_byte, tokens.partial, tokens.unknown)


def _premiums(sources: Mapping[str, Metrics], parallel: str) -> dict[str, float | None]:
    """Return the tokens of each source over the tokens of one."""
    base = sources[parallel].tokens
    return {source: ratio(one.tokens, base) for source, one in sources.items()}


def cost_of(cost: str, metrics: Metrics) -> float | None:
    """Return a cost of a source."""
    divisors = {
        "tokens": 1,
        "tokens_per_word": metrics.words,
        "tokens_per_character": metrics.characters,
        "tokens_per_byte": metrics.bytes,
    }
    return metrics.tokens / divisors[cost] if divisors[cost] else None


def to_csv(report: Report) -> bytes:
    """Return the figures of a report as CSV: a row for each tokenizer, size and source.

    The row of all sources has no source. The last column says whether the figures are exact.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [each.name for each in msgspec.structs.fields(Metrics)]
    writer.writerow(["tokenizer", "vocab_size", "source", *names, "exact"])
    for tokenizer in report.tokenizers:
        for figures in (*tokenizer.curve, tokenizer.figures):
            for source, metrics in _rows(figures):
                values = msgspec.structs.astuple(metrics)
                exact = "true" if tokenizer.exact else "false"
                writer.writerow([tokenizer.name, figures.vocab_size, source, *values, exact])
    return file.getvalue().encode()


def _rows(figures: Figures) -> Iterator[tuple[str, Metrics]]:
    yield "", figures.total
    yield from (figures.sources or {}).items()
