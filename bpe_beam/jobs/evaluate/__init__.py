"""The evaluate job: figures of tokenizers on counted words, on texts, or in tokens folders."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory

from msgspec import UNSET, Struct, UnsetType

from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.report import (
    VERSION,
    Figures,
    Report,
    TokenizerReport,
    VocabularySummary,
    WordsSummary,
    check_parallel,
    check_sizes,
    derivations_of,
    report_of,
    summarize,
)
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import is_exact
from bpe_beam.jobs.corpus.summary import source_warnings
from bpe_beam.jobs.evaluate.inputs import read_tokenizers, sizes_of, unique
from bpe_beam.jobs.evaluate.output import ReportOutput
from bpe_beam.jobs.evaluate.tallies import CountedWords, TokensFolder
from bpe_beam.jobs.input_folders import short_names
from bpe_beam.progress import Progress
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute, escape_glob
from bpe_beam.tokenizer.tokenizer import Tokenizer

_AT_ONCE = 2
"""The maximum of tokenizers at once: one encodes words while the other looks at its vocabulary."""

_SHOWN = (
    "tokens",
    "bytes_per_token",
    "tokens_per_word",
    "words_kept_whole",
    "vocabulary_used_share",
    "rare_vocabulary_share",
    "renyi_efficiency",
)
"""The figures of the summary."""

_INEXACT = (
    "its figures are not exact, and cannot be compared with exact ones: it splits text differently "
    "than the counts, so each counted word is encoded as a separate text; --input has exact figures"
)


class EvaluateSummary(Struct, frozen=True):
    """The summary of `evaluate`: a few figures of each tokenizer, and of each vocabulary size."""

    job: str
    counts: str | None
    output: str | None
    warnings: list[str] | None
    words: int | None
    unique_words: int | None
    tokenizers: dict[str, dict[str, object]]
    bytes_per_token_by_source: dict[str, dict[str, float | None]] | None
    seconds: float
    tokens: list[str] | UnsetType = UNSET
    inputs: list[str] | UnsetType = UNSET


def run(settings: EvaluateSettings, progress: Progress) -> EvaluateSummary:
    """Write the report of all tokenizers to a file or to stdout."""
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    if settings.input is not None and settings.file is not None:  # it may be where inputs are
        exclude = (*settings.input.exclude, escape_glob(absolute(settings.file)))
        settings = replace(settings, input=replace(settings.input, exclude=exclude))
    output = ReportOutput(settings, storage, progress)
    if settings.tokens:
        counted, reports = None, _of_tokens(storage, settings, output, progress)
    else:
        counted, reports = _of_words(storage, settings, output, progress)
    return EvaluateSummary(
        job="evaluate",
        counts=None if settings.counts is None else redact(settings.counts),
        tokens=[redact(folder) for folder in settings.tokens] or UNSET,
        inputs=UNSET if settings.input is None else [*map(redact, settings.input.inputs)],
        output=settings.file,
        warnings=_warnings(settings, reports) or None,
        words=None if counted is None else counted.words,
        unique_words=None if counted is None else counted.unique_words,
        tokenizers={label: row for one in reports for label, row in _rows(one)},
        bytes_per_token_by_source=_by_source(reports) or None,
        seconds=round(time.monotonic() - started, 3),
    )


def _warnings(settings: EvaluateSettings, reports: Sequence[TokenizerReport]) -> list[str]:
    inexact = [f"{one.name}: {_INEXACT}" for one in reports if not one.exact]
    if settings.input is None:
        return inexact
    return [*source_warnings(settings.input, reports[0].figures.sources), *inexact]


def _of_words(
    storage: Storage, settings: EvaluateSettings, output: ReportOutput, progress: Progress
) -> tuple[WordsSummary, list[TokenizerReport]]:
    """Write the reports on the words of counts, or of texts; return them."""
    names, tokenizers = read_tokenizers(
        settings.tokenizers, settings.tiktoken_pretokenizers, storage
    )
    workers = workers_of(settings.run)
    at_once = min(_AT_ONCE, workers, len(tokenizers))
    stopped = threading.Event()

    def go_on() -> None:
        if stopped.is_set():
            raise CancelledError

    with ExitStack() as stack:
        summaries = Summaries(tokenizers, at_once if workers > 1 else 0)
        stack.callback(summaries.close)
        sizes = sizes_of(settings.vocab_sizes, names, settings.tokenizers, storage)
        named = dict(zip(names, tokenizers, strict=True))
        words = _words(storage, settings, named, sizes, stack, progress)
        manifest = words.manifest
        check_parallel(settings.parallel, manifest.sources)
        tokens_of_texts = [words.tokens_of_texts(tokenizer) for tokenizer in tokenizers]
        with progress.stage("evaluate", sum(map(words.steps, tokenizers)), "parts") as stage:

            def report(number: int) -> TokenizerReport:
                name, of_texts = names[number], tokens_of_texts[number]
                vocabulary, summary = summaries.take(number)
                # Words by other rules are looked up by the texts of tokens.
                if of_texts is not None or workers == 1:
                    summary.result()
                tallies = words.tallies(vocabulary, of_texts, partial(stage.advance, 1), go_on)
                exact = of_texts is not None or is_exact(vocabulary.tokenizer, *words.parts.rules)
                parts = vocabulary, tallies, sizes[name], summary.result
                return _report(settings, output, name, *parts, exact=exact)

            pool = ThreadPoolExecutor(at_once, "tokenizer")
            try:
                reports = [*pool.map(report, range(len(tokenizers)))]
            except BaseException as error:
                stopped.set()
                # After Ctrl-C, running calls end with the current words; nothing waits for them.
                pool.shutdown(isinstance(error, Exception), cancel_futures=True)
                raise
            pool.shutdown()
        figures = WordsSummary(
            *(getattr(manifest, name) for name in WordsSummary.__struct_fields__)
        )
        output.write(Report(VERSION, figures, reports), words.parts)
    return figures, reports


class Summaries:
    """The vocabularies of tokenizers with their summaries, the first of them begun at once.

    Memory: about 1,000 bytes for each token of a vocabulary that is begun.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer], threads: int) -> None:
        self._tokenizers = tokenizers
        self._threads = ThreadPoolExecutor(max(1, threads), "vocabulary")
        self._begun = {number: self._begin(number) for number in range(threads)}

    def take(self, number: int) -> tuple[Vocabulary, Future[VocabularySummary]]:
        """Return a vocabulary, and its summary when it is there; each once."""
        if number not in self._begun:
            self._begun[number] = self._begin(number)
        vocabulary, summary = self._begun.pop(number)
        return vocabulary.result(), summary

    def _begin(self, number: int) -> tuple[Future[Vocabulary], Future[VocabularySummary]]:
        vocabulary = self._threads.submit(Vocabulary, self._tokenizers[number])
        # Threads begin calls in their order, so no thread waits for a call that none runs.
        return vocabulary, self._threads.submit(lambda: summarize(vocabulary.result()))

    def close(self) -> None:
        """End the threads; running calls are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _words(
    storage: Storage,
    settings: EvaluateSettings,
    tokenizers: Mapping[str, Tokenizer],
    sizes: Mapping[str, list[int]],
    stack: ExitStack,
    progress: Progress,
) -> CountedWords:
    """Return the words of the counts, or of the texts; the stack removes temporary files."""
    if settings.counts is not None:
        workers = workers_of(settings.run)
        return CountedWords(CountedParts.of_folder(storage, settings.counts, workers))
    # Counts need none of its imports.
    from bpe_beam.jobs.evaluate.texts import Texts

    assert settings.input is not None
    for name, tokenizer in tokenizers.items():
        if sizes[name]:
            vocabulary = Vocabulary(tokenizer)
            check_sizes(vocabulary, derivations_of(vocabulary), sizes[name])
    folder = settings.work or stack.enter_context(TemporaryDirectory(prefix="bpe-beam-evaluate-"))
    in_memory = settings.work is None
    texts = Texts(storage, settings.input, settings.run, folder, progress, in_memory)
    return texts.words(settings.pretokenizer or "gpt2", [*tokenizers.values()])


def _of_tokens(
    storage: Storage, settings: EvaluateSettings, output: ReportOutput, progress: Progress
) -> list[TokenizerReport]:
    """Write the reports on tokens folders; return them."""
    unique(settings.tokens, "tokens")
    names = short_names(settings.tokens)
    sizes = sizes_of(settings.vocab_sizes, names, (), storage)
    folders = [TokensFolder(storage, folder) for folder in settings.tokens]
    reports = []
    shards = sum(len(folder.manifest.shards) for folder in folders)
    with progress.stage("evaluate", shards, "shards") as stage:
        for name, folder in zip(names, folders, strict=True):
            check_parallel(settings.parallel, folder.manifest.sources)
            vocabulary = Vocabulary(folder.tokenizer)
            parts = vocabulary, folder.tallies(stage.advance), sizes[name], None
            reports.append(_report(settings, output, name, *parts, exact=True))
    output.write(Report(VERSION, None, reports), None)
    return reports


def _report(
    settings: EvaluateSettings,
    output: ReportOutput,
    name: str,
    vocabulary: Vocabulary,
    tallies: Iterable[tuple[str | None, Tally]],
    sizes: Sequence[int],
    summary: Callable[[], VocabularySummary] | None,
    *,
    exact: bool,
) -> TokenizerReport:
    """Return the report of one tokenizer, and keep what the output needs; errors name it."""
    parallel = settings.parallel
    try:
        report, total = report_of(
            name, vocabulary, tallies, sizes, exact=exact, parallel=parallel, summary=summary
        )
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    output.keep(name, vocabulary, total)
    return report


def _labelled(report: TokenizerReport) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of a tokenizer by name: of each smaller vocabulary, then of all."""
    for one in report.curve:
        yield f"{report.name} at {one.vocab_size:,}", one
    yield report.name, report.figures


def _rows(report: TokenizerReport) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the lines of a tokenizer for people."""
    for label, figures in _labelled(report):
        row: dict[str, object] = {"vocab_size": figures.vocab_size}
        row |= {name: getattr(figures.total, name) for name in _SHOWN}
        of_translations = (figures.fairness or {}).get("tokens")
        if of_translations is not None:
            row["worst_to_best_source"] = of_translations.worst_to_best
            row["worst_source"] = of_translations.worst
        if figures is report.figures:
            row["never_used"] = report.unused.never_used
        if not report.exact:
            row["exact"] = False
        yield label, row


def _by_source(reports: Sequence[TokenizerReport]) -> dict[str, dict[str, float | None]]:
    """Return the bytes a token of each source, the largest first, by tokenizer and size."""
    by_source: dict[str, dict[str, float | None]] = {}
    sizes: dict[str, int] = {}
    for report in reports:
        for label, figures in _labelled(report):
            for source, metrics in (figures.sources or {}).items():
                by_source.setdefault(source, {})[label] = metrics.bytes_per_token
                sizes[source] = metrics.bytes
    return {source: by_source[source] for source in sorted(by_source, key=lambda s: (-sizes[s], s))}
