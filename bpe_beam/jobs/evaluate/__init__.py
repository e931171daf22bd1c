"""The evaluate job: figures of tokenizers on counted words, on texts, or in tokens folders."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryDirectory

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError, UsageError, parameter_renamed, require
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.metrics import Metrics, Tally
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
    to_csv,
)
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import is_exact
from bpe_beam.folders.artifact_names import SUMMARY_FILE
from bpe_beam.folders.folder_checks import short_names
from bpe_beam.jobs.corpus.summary import source_warnings
from bpe_beam.jobs.evaluate.tallies import CountedWords, TokensFolder
from bpe_beam.jobs.output import STDOUT, prepare_file, write_stdout
from bpe_beam.messages import did_you_mean, quoted
from bpe_beam.progress import Progress
from bpe_beam.settings.evaluate import EvaluateSettings, VocabSize
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.storage.names import absolute, escape_glob
from bpe_beam.terminal import Terminal
from bpe_beam.tokenizer.files import tokenizer_json
from bpe_beam.tokenizer.files.tiktoken_file import pretokenizer_of
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
    if settings.mixture is not None:
        from bpe_beam.jobs.evaluate.mixture import with_mixture  # few evaluations need it

        report = with_mixture(report, settings.mixture, Storage(settings.run.storage_options))
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
        if figures.mixture is not UNSET:
            row["mixture_bytes_per_token"] = figures.mixture.bytes_per_token
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


# ---- the tokenizers to compare: their names, and the sizes of their vocabularies ----

_TIKTOKEN = ".tiktoken"
_PRETOKENIZERS = "tiktoken_pretokenizers"


def unique(values: Sequence[str], parameter: str) -> None:
    """Refuse a value that is repeated."""
    whole = [redact(value) for value in values]
    repeated = next((value for value in whole if whole.count(value) > 1), None)
    require(repeated is None, f"must not repeat {repeated}", parameter)


def read_tokenizers(
    values: Sequence[str], pretokenizers: Sequence[str], storage: Storage
) -> tuple[list[str], list[Tokenizer]]:
    """Return the tokenizers that a command names, and their names."""
    unique(values, "tokenizers")
    pairs = [_named(value, storage) for value in values]
    short = iter(short_names([path for name, path in pairs if name is None]))
    names = [next(short) if name is None else name for name, _ in pairs]
    unique(names, "tokenizers")
    chosen = _chosen(pretokenizers, names)
    tokenizers = []
    used: set[str | None] = set()
    for name, (_, path) in zip(names, pairs, strict=True):
        if not path.endswith(_TIKTOKEN):
            tokenizers.append(Tokenizer.from_file(path, storage=storage))
            continue
        key = name if name in chosen else None
        used.add(key)
        pretokenizer = chosen.get(key)
        if pretokenizer is None:
            data, source = tokenizer_json.read_file(path, storage, _TIKTOKEN)
            pretokenizer = pretokenizer_of(data)
            require(
                pretokenizer is not None,
                f"must be given for {source}, which does not have the pattern that splits texts",
                _PRETOKENIZERS,
                remedy="give a name such as cl100k, or regex:PATTERN",
            )
        with parameter_renamed("pretokenizer", _PRETOKENIZERS):
            tokenizers.append(
                Tokenizer.from_tiktoken(path, pretokenizer=pretokenizer, storage=storage)
            )
    for unused, value in chosen.items():
        require(unused in used, f"has no effect: {value!r} is of no .tiktoken file", _PRETOKENIZERS)
    return names, tokenizers


def sizes_of(
    sizes: Sequence[VocabSize], names: Sequence[str], values: Sequence[str], storage: Storage
) -> dict[str, list[int]]:
    """Return the smaller sizes to evaluate of each tokenizer, by name.

    Sizes without a name are for the tokenizers that `train` wrote; for all if it wrote none: few
    people need the first merges of a published tokenizer.
    """
    of_all = [one for one in sizes if isinstance(one, int)]
    named: dict[str, list[int]] = {}
    for name, size in (one for one in sizes if not isinstance(one, int)):
        near = did_you_mean(name, names)
        require(name in names, f"must name a tokenizer, got {name!r}{near}", "vocab_sizes")
        named.setdefault(name, []).append(size)
    unnamed = names
    if of_all and len(values) > 1:
        trained = []
        for name, value in zip(names, values, strict=True):
            _, path = _named(value, storage)
            folder = path if storage.is_folder(path) else (path.rpartition("/")[0] or ".")
            if storage.exists(storage.join(folder, SUMMARY_FILE)):
                trained.append(name)
        unnamed = trained or names
    return {name: named.get(name) or (of_all if name in unnamed else []) for name in names}


def _named(value: str, storage: Storage) -> tuple[str | None, str]:
    """Return the name and the path of NAME=PATH; without a name it is None."""
    name, equals, path = value.partition("=")
    if not (equals and name and path) or "/" in name or storage.exists(value):
        return None, value
    return name, path


def _chosen(pretokenizers: Sequence[str], names: Sequence[str]) -> dict[str | None, str]:
    """Return the pre-tokenizers by the name of a tokenizer; None has the one of all others."""
    chosen: dict[str | None, str] = {}
    for value in pretokenizers:
        name, equals, rest = value.partition("=")
        key, pretokenizer = (name, rest) if equals and name in names else (None, value)
        if key in chosen:
            of = "all .tiktoken files" if key is None else key
            raise UsageError(f"must be given once for {of}, got {value!r} too", (_PRETOKENIZERS,))
        chosen[key] = pretokenizer
    return chosen


# ---- the report as an HTML page, JSON, CSV or text ----

_COLUMNS = {
    "bytes_per_token": "bytes/token",
    "tokens_per_word": "tokens/word",
    "words_kept_whole": "kept whole",
    "vocabulary_used_share": "used",
    "rare_vocabulary_share": "rare",
    "renyi_efficiency": "Rényi",
}
"""The figures of the format `text`, and their headings."""

_BY_SOURCE = ("bytes_per_token", "tokens_per_word", "words_kept_whole")
"""The figures of a source: the others depend on its size."""


class ReportOutput:
    """Writes the report of an evaluation in the format of its settings."""

    def __init__(self, settings: EvaluateSettings, storage: Storage, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._storage = storage
        self._evaluated: dict[str, tuple[Vocabulary, Tally]] = {}
        self._in_html = settings.chosen_format == "html"
        if self._in_html:  # a sample that cannot be read is refused before any work
            from bpe_beam.html_report.samples import read_samples

            self._samples = read_samples(storage, settings.samples)
        # A wrong name is refused before any work, too.
        prepare_file(storage, settings.file or STDOUT, "output")

    def keep(self, name: str, vocabulary: Vocabulary, total: Tally) -> None:
        """Keep what a page needs of a tokenizer."""
        if self._in_html:
            self._evaluated[name] = vocabulary, total

    def write(self, report: Report, words: CountedParts | None) -> None:
        """Write the report to the output, or to stdout without one."""
        output = self._settings.file
        data = self._bytes(report, words)
        if output is None:
            write_stdout(data)
        else:
            self._storage.write_bytes(output, data)

    def _bytes(self, report: Report, words: CountedParts | None) -> bytes:
        kind = self._settings.chosen_format
        if kind == "csv":
            return to_csv(report)
        if kind == "text":
            stream = sys.stdout if self._settings.file is None else io.StringIO()
            return text_of(report, Terminal(stream)).encode()
        values = msgspec.to_builtins(report)
        if kind == "json":
            return json_bytes(values)
        from bpe_beam.html_report.figures import Evaluated
        from bpe_beam.html_report.page import page, page_steps

        evaluated = [Evaluated(*self._evaluated[one.name]) for one in report.tokenizers]
        with self._progress.stage("report", page_steps(len(evaluated), words), "steps") as stage:
            content = (values, evaluated, self._samples, words)
            return page(*content, on_step=lambda: stage.advance(1))


def text_of(report: Report, terminal: Terminal) -> str:
    """Return a few figures of each tokenizer and size as aligned tables: of all text, by source."""
    vocabularies = [
        (quoted(one.name) if one.exact else f"{quoted(one.name)} (not exact)", figures)
        for one in report.tokenizers
        for figures in (*one.curve, one.figures)
    ]
    heading = ("tokenizer", "vocabulary", *_COLUMNS.values())
    rows = [heading, *(_cells(name, one.vocab_size, one.total) for name, one in vocabularies)]
    tables = [terminal.table(rows, right=range(1, len(heading)))]
    sources = sorted({source for _, one in vocabularies for source in one.sources or ()})
    if sources:
        rows = [
            (quoted(source), *_cells(name, one.vocab_size, one.sources[source], _BY_SOURCE))
            for source in sources
            for name, one in vocabularies
            if one.sources and source in one.sources
        ]
        rows.insert(0, ("source", *heading[:2], *(_COLUMNS[key] for key in _BY_SOURCE)))
        tables.append(terminal.table(rows, right=range(2, len(rows[0]))))
    return "\n".join("".join(f"{line}\n" for line in table) for table in tables)


def _cells(
    name: str, vocab_size: int, metrics: Metrics, keys: Iterable[str] = _COLUMNS
) -> tuple[str, ...]:
    values = (getattr(metrics, key, None) for key in keys)
    return name, f"{vocab_size:,}", *("-" if value is None else f"{value:.3f}" for value in values)
