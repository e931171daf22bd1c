"""The evaluate job: what tokenizers do to the words of a counts folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.evaluation.counted import tallies_of_counts
from bpe_beam.evaluation.report import (
    VERSION,
    Figures,
    Report,
    TokenizerReport,
    WordsFacts,
    report_of,
    to_csv,
)
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.jobs.standard_streams import write_stdout
from bpe_beam.jobs.tokenizer_names import short_names
from bpe_beam.progress import Progress
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.tokenizer.tokenizer import Tokenizer

_INEXACT = (
    "the tokenizer splits text in another way than the counts: each counted word is encoded as a "
    "text of its own"
)


class EvaluateSummary(Struct, frozen=True):
    """The summary of `evaluate`: a few figures of each tokenizer, and of each vocabulary size."""

    job: str
    counts: str
    output: str | None
    warnings: list[str] | None
    words: int
    unique_words: int
    tokenizers: dict[str, dict[str, Any]]
    seconds: float


def run(settings: EvaluateSettings, progress: Progress) -> EvaluateSummary:
    """Write the report of all tokenizers to a file or to stdout.

    Raises:
        UsageError: A tokenizer does not have a vocabulary of a wanted size.
        DataError: A tokenizer lacks a symbol of a word.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    manifest = read_manifest(storage, settings.counts)
    tokenizers = [Tokenizer.from_file(path, storage=storage) for path in settings.tokenizers]
    names = _names(settings.tokenizers)
    parts = len(manifest.parts) * len(tokenizers)
    with progress.stage("evaluate", parts, "parts") as stage:
        reports = [
            _report(storage, settings, manifest, name, tokenizer, lambda: stage.advance(1))
            for name, tokenizer in zip(names, tokenizers, strict=True)
        ]
    facts = WordsFacts(
        manifest.normalizer,
        manifest.pretokenizer,
        manifest.documents,
        manifest.words,
        manifest.unique_words,
    )
    _write(storage, settings.output, Report(VERSION, facts, reports))
    return EvaluateSummary(
        job="evaluate",
        counts=redact(settings.counts),
        output=settings.output,
        warnings=[f"{one.name}: {_INEXACT}" for one in reports if not one.exact] or None,
        words=manifest.words,
        unique_words=manifest.unique_words,
        tokenizers={label: row for one in reports for label, row in _rows(one)},
        seconds=round(time.monotonic() - started, 3),
    )


def _report(
    storage: Storage,
    settings: EvaluateSettings,
    manifest: CountsManifest,
    name: str,
    tokenizer: Tokenizer,
    on_part: Callable[[], None],
) -> TokenizerReport:
    """Return the report of one tokenizer; errors name it."""
    vocabulary = Vocabulary(tokenizer)
    encoder = WordEncoder(tokenizer, manifest.normalizer, manifest.pretokenizer)
    try:
        tallies = tallies_of_counts(
            storage,
            settings.counts,
            manifest,
            vocabulary,
            encoder,
            workers=workers_of(settings.run),
            on_part=on_part,
        )
        return report_of(name, vocabulary, tallies, settings.vocab_sizes, exact=encoder.exact)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _names(paths: tuple[str, ...]) -> list[str]:
    """Return a short name for each tokenizer.

    Raises:
        UsageError: A tokenizer is listed twice.
    """
    whole = [redact(path) for path in paths]
    if len(set(whole)) < len(whole):
        repeated = next(path for path in whole if whole.count(path) > 1)
        raise UsageError(f"must not repeat {repeated}", ("tokenizers",))
    return short_names(paths)


def _write(storage: Storage, output: str | None, report: Report) -> None:
    if output is not None and output.endswith(".csv"):
        storage.write_bytes(output, to_csv(report))
        return
    data = json_bytes(msgspec.to_builtins(report))
    if output is None:
        write_stdout(data)
    else:
        storage.write_bytes(output, data)


def _rows(report: TokenizerReport) -> list[tuple[str, dict[str, Any]]]:
    """Return the lines of a tokenizer for people: its own, and one for each vocabulary size."""
    rows = [(report.name, {**_few(report.figures), "never_used": report.unused.never_used})]
    for figures in report.curve:
        rows.append((f"{report.name} at {figures.vocab_size:,}", _few(figures)))
    return rows


def _few(figures: Figures) -> dict[str, Any]:
    total = figures.total
    row: dict[str, Any] = {
        "vocab_size": figures.vocab_size,
        "bytes_per_token": total.bytes_per_token,
        "tokens_per_word": total.tokens_per_word,
        "words_kept_whole": total.words_kept_whole,
        "vocabulary_used_share": total.vocabulary_used_share,
        "renyi_efficiency": total.renyi_efficiency,
    }
    fair = (figures.fairness or {}).get("tokens_per_word")
    if fair is not None:
        row["worst_to_best_source"] = fair.worst_to_best
    return row
