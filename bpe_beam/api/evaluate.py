"""`bpe_beam.evaluate`: the figures of tokenizers on texts, files or counts.

The command line's job evaluates files. Texts in memory are read once: their words are counted, and
they are encoded for tokenizers that split text differently. Memory: the unique words, some MB of
texts, and two integers for each token of such a tokenizer and each source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import msgspec
import pyarrow as pa

from bpe_beam.api.arguments import Values, documented, settings_of, values_of
from bpe_beam.api.count_texts import count_texts
from bpe_beam.api.inputs import files_in, number_of_texts, refuse_reading_options, sources_of
from bpe_beam.api.job_calls import run_of, show_warnings, temporary_folder
from bpe_beam.api.text_batches import Batch, batches_of
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.counts.word_table import WordRules
from bpe_beam.engines.run import default_workers
from bpe_beam.errors import UsageError, require
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.report import check_parallel, report_of
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import is_exact
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

TokensOfTexts: TypeAlias = dict[int, dict[str | None, Tally]]
"""The tokens of texts by source, of tokenizers by number."""

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
        workers: The number of threads for texts and files; None: the number of cores.
        progress: Whether to show the progress on stderr; or how: "bar", "plain" or "json".
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
        DataError: There is no text, a text is not UTF-8, a vocabulary lacks a symbol of a word, the
            counts are damaged, or files cannot be read.
        TypeError: An argument is not an option.
    """
    names, each = _several(tokenizers)
    values = values_of(
        "evaluate",
        EvaluateSettings,
        {**options, "vocab_sizes": vocab_sizes},
        without=_OF_THE_COMMAND,
    )
    named = next((one for one in values.get("vocab_sizes", ()) if not isinstance(one, int)), None)
    require(named is None, f"must be sizes without names, got {named!r}", "vocab_sizes")
    run, shown = run_of("evaluate", workers, progress, values)
    files, messages = None, None
    if texts_or_counts is not None or "inputs" not in values:
        files = files_in(texts_or_counts, values, _FIRST)
    words = _counts_of(texts_or_counts, files, values, Storage(run.storage_options))
    if words is not None:
        reports = _on_counts(names, each, words, values)
    elif texts_or_counts is not None and files is None:
        reports = _on_texts(names, each, texts_or_counts, values, run, shown)
    else:
        inputs = values if files is None else {**values, "inputs": files}
        reports, messages = _on_files(names, each, inputs, run, shown)
    show_warnings(messages)
    if isinstance(tokenizers, Tokenizer):
        return reports[0]
    if isinstance(tokenizers, Mapping):
        return dict(zip(tokenizers, reports, strict=True))
    return reports


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
    argument: object, files: tuple[str, ...] | None, values: Values, storage: Storage
) -> CountedParts | None:
    """Return the words of counts in memory or in a folder; None of texts and files."""
    if isinstance(argument, WordCounts):
        words = CountedParts.in_memory(argument)
    elif (
        files is not None
        and len(files) == 1
        and storage.is_folder(files[0])
        and kind_of(storage, files[0]) == COUNTS
    ):
        words = CountedParts.of_folder(storage, files[0])
        refuse_reading_options(values)
    else:
        return None
    require("pretokenizer" not in values, "has no effect on counts", "pretokenizer")
    return words


def _on_counts(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    words: CountedParts,
    values: Values,
    tokens: TokensOfTexts | None = None,
) -> list[Figures]:
    """Return the report of each tokenizer on counted words; on texts with their own tokens."""
    sizes, parallel = values.get("vocab_sizes", ()), values.get("parallel")
    check_parallel(parallel, words.manifest.sources)

    def report(number: int, name: str, tokenizer: Tokenizer) -> Figures:
        vocabulary = Vocabulary(tokenizer)
        of_texts = (tokens or {}).get(number)

        def tallies() -> Iterator[tuple[str | None, Tally]]:
            for source, tally in tallies_of_counts(words, vocabulary, with_tokens=of_texts is None):
                if of_texts is not None:
                    tally.tokens += of_texts[source].tokens
                yield source, tally

        exact = of_texts is not None or is_exact(tokenizer, *words.rules)
        made, _ = report_of(name, vocabulary, tallies(), sizes, exact=exact, parallel=parallel)
        if (mixture := values.get("mixture")) is not None:
            from bpe_beam.jobs.evaluate.mixture import with_mixture

            made = with_mixture(made, mixture, Storage(values.get("storage_options", {})))
        figures: Figures = msgspec.to_builtins(made)
        return figures

    return [report(*row) for row in zip(range(len(names)), names, tokenizers, strict=True)]


def _on_texts(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    texts: object,
    values: Values,
    run: RunSettings,
    shown: Progress,
) -> list[Figures]:
    """Return the report of each tokenizer on texts, which are read once."""
    sources = sources_of(texts, _FIRST)
    check_parallel(values.get("parallel"), {str(name) for name in sources if name is not None})
    rules = WordRules(pretokenizer=values.get("pretokenizer", DEFAULT_PRETOKENIZER))
    inexact = {
        number: Vocabulary(tokenizer)
        for number, tokenizer in enumerate(tokenizers)
        if not is_exact(tokenizer, rules.normalizer, rules.pretokenizer)
    }
    tokens: TokensOfTexts = {
        number: {source: Tally.empty(len(vocabulary)) for source in sources}
        for number, vocabulary in inexact.items()
    }

    def encoded_too(source: str | None) -> Iterator[Batch]:
        for batch in batches_of(sources[source]):
            array = _as_arrow(batch) if inexact else batch
            for number, vocabulary in inexact.items():
                ids = vocabulary.tokenizer.encode_batch(array, output="arrow")
                tokens[number][source].add_ids(vocabulary, ids)
            yield batch

    workers = run.workers or default_workers()
    with shown.stage("count", number_of_texts(sources), "documents") as stage:
        counts = count_texts(rules, {one: encoded_too(one) for one in sources}, workers, stage)
    return _on_counts(names, tokenizers, CountedParts.in_memory(counts, workers), values, tokens)


def _as_arrow(batch: Batch) -> pa.Array:
    """Return Arrow strings; empty ones if a text is invalid, which counting refuses."""
    if isinstance(batch, pa.Array):
        return batch
    try:
        return pa.array(batch, pa.large_string())
    except (UnicodeError, pa.ArrowInvalid):
        return pa.array([""] * len(batch), pa.large_string())


def _on_files(
    names: Sequence[str],
    tokenizers: Sequence[Tokenizer],
    values: Values,
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
