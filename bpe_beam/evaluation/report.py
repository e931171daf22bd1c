"""The report of an evaluation: the figures of tokenizers on the same words, as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.derivations import Derivations
from bpe_beam.evaluation.metrics import Fairness, Metrics, fairness, metrics_of
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.unused_tokens import UnusedTokens, unused_tokens
from bpe_beam.evaluation.vocabulary import Flags, Vocabulary, tokens_by_script
from bpe_beam.tokenizer.models import BPE

VERSION = 1
"""The version of the report's JSON."""

COSTS = ("tokens", "tokens_per_word", "tokens_per_character", "tokens_per_byte")
"""The costs whose fairness is in a report."""


class Figures(Struct, frozen=True):
    """The figures of one vocabulary.

    Attributes:
        vocab_size: The number of its tokens.
        total: Those of all words.
        sources: Those of each source, sorted by name; None without sources.
        fairness: By cost, how unequal it is over the sources; None without two sources. That of
            `tokens` is the parity of languages if the sources are translations of one text.
    """

    vocab_size: int
    total: Metrics
    sources: dict[str, Metrics] | None
    fairness: dict[str, Fairness | None] | None


class TokenizerReport(Struct, frozen=True):
    """The report of one tokenizer.

    Attributes:
        name: Its name.
        fingerprint: The SHA-256 of its file.
        model: The type of its model.
        exact: Whether the tokens are those of the corpus: see `WordEncoder`.
        figures: Those of the whole vocabulary.
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


class WordsFacts(Struct, frozen=True):
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
        words: The words.
        tokenizers: A report of each tokenizer.
    """

    version: int
    words: WordsFacts
    tokenizers: list[TokenizerReport]


def report_of(
    name: str,
    vocabulary: Vocabulary,
    tallies: Mapping[str | None, Tally],
    vocab_sizes: Sequence[int],
    *,
    exact: bool,
) -> TokenizerReport:
    """Return the report of a tokenizer.

    Args:
        name: Its name.
        vocabulary: Its tokens.
        tallies: The tallies by source; without sources, the only key is None.
        vocab_sizes: The sizes of smaller vocabularies.
        exact: See `TokenizerReport`.

    Raises:
        UsageError: As `check_vocab_sizes`.
    """
    model = vocabulary.tokenizer.spec.model
    derivations = Derivations(vocabulary) if isinstance(model, BPE) else None
    check_vocab_sizes(vocabulary, derivations, vocab_sizes)
    tallies = {source: tallies[source] for source in sorted(tallies, key=str)}
    curve = []
    if derivations is not None and vocab_sizes:
        sizes = sorted(set(vocab_sizes))
        smaller = {source: derivations.shrunk(one, sizes) for source, one in tallies.items()}
        for size in sizes:
            by_source = {source: found[size] for source, found in smaller.items()}
            curve.append(_figures(vocabulary, by_source, size, derivations.within(size)))
    total = _total(tallies, len(vocabulary))
    return TokenizerReport(
        name=name,
        fingerprint=vocabulary.tokenizer.fingerprint,
        model=model.json_type,
        exact=exact,
        figures=_figures(vocabulary, tallies, len(vocabulary)),
        tokens_by_script=tokens_by_script(vocabulary),
        unused=unused_tokens(vocabulary, total.tokens, derivations),
        curve=curve,
    )


def check_vocab_sizes(
    vocabulary: Vocabulary, derivations: Derivations | None, sizes: Sequence[int]
) -> None:
    """Refuse sizes of which the tokenizer has no vocabulary.

    Args:
        vocabulary: The tokens.
        derivations: Their merges; None if the model is not BPE.
        sizes: The sizes.

    Raises:
        UsageError: The model is not BPE, a size is not between that without merges and the whole
            one, or the first merges are no tokenizer of their own.
    """
    if not sizes:
        return
    if derivations is None:
        raise UsageError(
            "must not be set for a tokenizer that is not BPE: only merges have an order",
            ("vocab_sizes",),
        )
    least, most = derivations.least_size, len(vocabulary)
    for size in sizes:
        require(
            least <= size <= most,
            f"must be from {least:,}, the size without merges, to {most:,}, that of the tokenizer, "
            f"got {size:,}",
            "vocab_sizes",
        )
    derivations.check_order()


def _total(tallies: Mapping[str | None, Tally], size: int) -> Tally:
    total = Tally.empty(size)
    for tally in tallies.values():
        total.add(tally)
    return total


def _figures(
    vocabulary: Vocabulary,
    tallies: Mapping[str | None, Tally],
    size: int,
    within: Flags | None = None,
) -> Figures:
    """Return the figures of tallies by source, for a vocabulary of a size."""

    def metrics(tally: Tally) -> Metrics:
        return metrics_of(
            tally, size, vocabulary.single_byte, vocabulary.partial, vocabulary.unknown
        )

    total = metrics(_total(tallies, len(vocabulary)))
    if None in tallies:
        return Figures(size, total, None, None)
    sources = {str(source): metrics(tally) for source, tally in tallies.items()}
    costs = {
        cost: fairness({source: cost_of(cost, one) for source, one in sources.items()})
        for cost in COSTS
    }
    return Figures(size, total, sources, costs)


def cost_of(cost: str, metrics: Metrics) -> float | None:
    """Return a cost of a source.

    Args:
        cost: One of COSTS.
        metrics: The figures of the source.
    """
    divisors = {
        "tokens": 1,
        "tokens_per_word": metrics.words,
        "tokens_per_character": metrics.characters,
        "tokens_per_byte": metrics.bytes,
    }
    return metrics.tokens / divisors[cost] if divisors[cost] else None


def to_csv(report: Report) -> bytes:
    """Return the figures of a report as CSV: a row for each tokenizer, size and source.

    The row of all sources has no source.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [each.name for each in msgspec.structs.fields(Metrics)]
    writer.writerow(["tokenizer", "vocab_size", "source", *names])
    for tokenizer in report.tokenizers:
        for figures in (*tokenizer.curve, tokenizer.figures):
            for source, metrics in _rows(figures):
                values = msgspec.structs.astuple(metrics)
                writer.writerow([tokenizer.name, figures.vocab_size, source, *values])
    return file.getvalue().encode()


def _rows(figures: Figures) -> Iterator[tuple[str, Metrics]]:
    yield "", figures.total
    yield from (figures.sources or {}).items()
