"""`bpe_beam.evaluate`: the figures of tokenizers on texts, files or counts.

The command line's job evaluates files. Texts in memory are read once: their words are counted, and
their tokens are exact. Memory: the unique words of one source and some MB of its texts. Several
tokenizers also take two integers for each token of each of them and each source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import msgspec

from bpe_beam.api.arguments import Values, documented, settings_of, values_of
from bpe_beam.api.inputs import files_in, refuse_reading_options, sources_of
from bpe_beam.api.job_calls import run_of, show_warnings, temporary_folder
from bpe_beam.api.text_tallies import tallies_of_texts
from bpe_beam.counts.manifest import read_manifest
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts
from bpe_beam.evaluation.report import check_parallel, report_of
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.folders.folder_kind import COUNTS, kind_of
from bpe_beam.messages import shortened
from bpe_beam.progress import Progress
from bpe_beam.settings.common import DEFAULT_PRETOKENIZER, RunSettings
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer

Figures: TypeAlias = dict[str, Any]
"""The report of one tokenizer, as the JSON of `bpe-beam evaluate` has it."""

K = TypeVar("K")

_FIRST = "texts_or_counts"
_OF_THE_COMMAND = frozenset(
    {"tokenizers", "tiktoken_pretokenizers", "counts", "tokens", "work", "format", "samples"}
)
"""The options that a call from Python does not have."""


@overload
def evaluate(tokenizers: Tokenizer, texts_or_counts: Any = ..., **options: Any) -> Figures: ...
@overload
def evaluate(
    tokenizers: Sequence[Tokenizer], texts_or_counts: Any = ..., **options: Any
) -> list[Figures]: ...
@overload
def evaluate(
    tokenizers: Mapping[K, Tokenizer], texts_or_counts: Any = ..., **options: Any
) -> dict[K, Figures]: ...
@documented(EvaluateSettings, without=_OF_THE_COMMAND)
def evaluate(
    tokenizers: Tokenizer | Sequence[Tokenizer] | Mapping[Any, Tokenizer],
    texts_or_counts: Any = None,
    *,
    vocab_sizes: Sequence[int | str] | int | str = (),
    workers: int | None = None,
    progress: bool | str = False,
    **options: Any,
) -> Figures | list[Figures] | dict[Any, Figures]:
    """Return figures of tokenizers: tokens per word, words kept whole, unused tokens::

        figures = bpe_beam.evaluate(tokenizer, texts)
        print(figures["figures"]["total"]["tokens_per_word"])
        figures = bpe_beam.evaluate(tokenizer, "data/*.jsonl.gz")

        by_name = bpe_beam.evaluate({"32k": small, "64k": large}, counts)  # of bpe_beam.count
        print(by_name["64k"]["figures"]["total"]["bytes_per_token"])

    Args:
        tokenizers: A tokenizer; or several: a sequence, or a mapping of names to tokenizers.
        texts_or_counts: Texts: an iterable of str, of bytes in UTF-8, or of lists of them; Arrow
            strings. A mapping of names to such texts has sources, which get figures of their own.
            Files: one str or Path (a path, a URL, a folder, a glob, or @FILE, a list of them), or a
            list of Path; several as str with `inputs=[...]`. Counts: what `bpe_beam.count`
            returned, or the path or URL of a folder that `bpe-beam count` wrote.
        vocab_sizes: Sizes of smaller vocabularies to report too, made of the first merges, such as
            `[16000, "32k"]`; only for BPE.
        workers: The number of threads for files; None: the number of cores.
        progress: Whether to show the progress of files on stderr; or how: "bar", "plain" or "json".
        **options: The options below.

    Returns:
        The report of a tokenizer as `bpe-beam evaluate` writes it in JSON: under `figures` the
        figures of the whole vocabulary, under `curve` a list of the figures of smaller sizes, each
        with `vocab_size`, `total`, `sources` and `fairness`. docs/evaluate.md defines them. Of a
        sequence of tokenizers a list of reports in the same order, of a mapping a dict of reports
        by name.

    Raises:
        UsageError: An argument is invalid, a tokenizer has no vocabulary of a size, or no source
            has the name `parallel`.
        DataError: A text is not UTF-8, a vocabulary lacks a symbol of a word, the counts are
            damaged, or files cannot be read.
        TypeError: An argument is not an option.
    """
    names, each = _several(tokenizers)
    values = _checked({**options, "vocab_sizes": vocab_sizes})
    run, shown = run_of("evaluate", workers, progress, values)
    reports, messages = _reports(names, each, texts_or_counts, values, run, shown)
    show_warnings(messages)
    if isinstance(tokenizers, Tokenizer):
        return reports[0]
    if isinstance(tokenizers, Mapping):
        return dict(zip(tokenizers, reports, strict=True))
    return reports


def _checked(options: Values) -> Values:
    """Return the values of options; refuse sizes of one tokenizer, which only the command has."""
    values = values_of("evaluate", EvaluateSettings, options, without=_OF_THE_COMMAND)
    named = next((one for one in values.get("vocab_sizes", ()) if not isinstance(one, int)), None)
    require(named is None, f"must be sizes without names, got {named!r}", "vocab_sizes")
    return values


def _reports(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    texts_or_counts: object,
    values: Values,
    run: RunSettings,
    shown: Progress,
) -> tuple[list[Figures], list[str] | None]:
    """Return the report of each tokenizer, and warnings."""
    files = None
    if texts_or_counts is not None or "inputs" not in values:
        files = files_in(texts_or_counts, values, _FIRST)
    words = _counts_of(texts_or_counts, files, values, Storage(run.storage_options))
    if words is not None:
        return _on_counts(names, tokenizers, words, values), None
    if texts_or_counts is not None and files is None:
        return _on_texts(names, tokenizers, texts_or_counts, values), None
    inputs = values if files is None else {**values, "inputs": files}
    return _on_files(names, tokenizers, inputs, run, shown)


def _several(tokenizers: object) -> tuple[list[str], list[Tokenizer]]:
    """Return the names of tokenizers, and the tokenizers."""
    several = [tokenizers] if isinstance(tokenizers, Tokenizer) else tokenizers
    if isinstance(several, Mapping):
        names, each = [*map(str, several)], [*several.values()]
    else:
        each = [*several] if isinstance(several, (list, tuple)) else []
        names = [one.fingerprint[:12] for one in each if isinstance(one, Tokenizer)]
    if not each or not all(isinstance(one, Tokenizer) for one in each):
        raise UsageError(
            "must be a Tokenizer, a sequence of them, or a mapping of names to them, got "
            + shortened(repr(tokenizers)),
            ("tokenizers",),
            "Tokenizer.from_file reads a file, Tokenizer.from_pretrained a folder",
        )
    return names, each


def _counts_of(
    argument: object, files: tuple[str, ...] | None, values: Mapping[str, Any], storage: Storage
) -> CountedParts | None:
    """Return the words of counts in memory or in a folder; None of texts and files."""
    if isinstance(argument, WordCounts):
        words = CountedParts.in_memory(argument)
    elif files is not None and len(files) == 1 and _is_counts_folder(storage, files[0]):
        words = CountedParts.of_folder(storage, files[0], read_manifest(storage, files[0]))
        refuse_reading_options(values)
    else:
        return None
    require("pretokenizer" not in values, "has no effect on counts", "pretokenizer")
    return words


def _is_counts_folder(storage: Storage, path: str) -> bool:
    return storage.is_folder(path) and kind_of(storage, path) == COUNTS


def _on_counts(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    words: CountedParts,
    values: Mapping[str, Any],
) -> list[Figures]:
    manifest = words.manifest
    check_parallel(values.get("parallel"), manifest.sources)
    reports = []
    for name, tokenizer in zip(names, tokenizers, strict=True):
        vocabulary = Vocabulary(tokenizer)
        encoder = WordEncoder(tokenizer, manifest.normalizer, manifest.pretokenizer)
        tallies = tallies_of_counts(words, vocabulary, encoder)
        reports.append(_report(name, vocabulary, tallies, values, exact=encoder.exact))
    return reports


def _on_texts(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    texts: object,
    values: Mapping[str, Any],
) -> list[Figures]:
    sources = sources_of(texts, _FIRST)
    check_parallel(values.get("parallel"), {str(name) for name in sources if name is not None})
    vocabularies = [Vocabulary(tokenizer) for tokenizer in tokenizers]
    pretokenizer = values.get("pretokenizer", DEFAULT_PRETOKENIZER)
    rows: Iterable[tuple[str | None, list[Tally]]]
    rows = tallies_of_texts(vocabularies, sources, pretokenizer)
    if len(vocabularies) > 1:  # the texts are read once
        rows = [*rows]
    return [
        _report(name, vocabulary, ((one, row[number]) for one, row in rows), values, exact=True)
        for number, (name, vocabulary) in enumerate(zip(names, vocabularies, strict=True))
    ]


def _report(
    name: str,
    vocabulary: Vocabulary,
    tallies: Iterable[tuple[str | None, Tally]],
    values: Mapping[str, Any],
    *,
    exact: bool,
) -> Figures:
    sizes, parallel = values.get("vocab_sizes", ()), values.get("parallel")
    report = report_of(name, vocabulary, tallies, sizes, exact=exact, parallel=parallel)
    figures: Figures = msgspec.to_builtins(report)
    return figures


def _on_files(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    values: Mapping[str, Any],
    run: RunSettings,
    shown: Progress,
) -> tuple[list[Figures], list[str] | None]:
    """Return the reports of the command line's job, and its warnings."""
    from bpe_beam.jobs import evaluate as job

    with temporary_folder() as folder:
        labels = []
        for number, tokenizer in enumerate(tokenizers):
            path = folder / f"{number}.json"
            path.write_bytes(tokenizer.json_bytes)
            labels.append(f"{number}={path}")
        output = folder / "report.json"
        settings = settings_of(
            EvaluateSettings,
            {**values, "tokenizers": tuple(labels), "output": str(output), "run": run},
        )
        messages = job.run(settings, shown).warnings
        reports: list[Figures] = json.loads(output.read_bytes())["tokenizers"]
    return [{**row, "name": name} for name, row in zip(names, reports, strict=True)], messages
