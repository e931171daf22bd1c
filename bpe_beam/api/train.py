"""`bpe_beam.train` and `bpe_beam.count`: from texts, files or counts in a few lines of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpe_beam.api.arguments import Values, documented, settings_of, values_of
from bpe_beam.api.count_texts import count_texts
from bpe_beam.api.inputs import FIRST, files_in, number_of_texts, sources_of
from bpe_beam.api.job_calls import run_of, show_warnings, temporary_folder
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.counts.word_table import WordRules
from bpe_beam.engines.run import default_workers
from bpe_beam.errors import UsageError
from bpe_beam.progress import Progress
from bpe_beam.settings import common
from bpe_beam.settings.count import CountSettings, WordSettings
from bpe_beam.settings.train import TrainingSettings, TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bpe_beam.jobs.train.plan import TrainingPlan


@documented(TrainSettings)
def train(
    texts_or_paths: Any = None,
    *,
    workers: int | None = None,
    progress: bool | str = False,
    **options: Any,
) -> Tokenizer:
    """Train a tokenizer, and return it; nothing stays on disk.

    It knows the roles of its special tokens, such as `eos_token`; `save_pretrained` writes them.
    `bpe-beam train` with the same options writes the same tokenizer, to the byte::

        tokenizer = bpe_beam.train(texts, vocab_size=32000, special_tokens=["<|endoftext|>"])
        tokenizer = bpe_beam.train("data/*.jsonl.gz", vocab_size=32000, pretokenizer="llama3")
        tokenizer = bpe_beam.train(counts, vocab_size=64000)  # of bpe_beam.count

    Texts are read once, as they come, and counted on threads; a generator is never in memory as a
    whole. Files are counted as on the command line, in a temporary folder. The folder is removed,
    unless training fails because of unusable records, which it then contains.

    Args:
        texts_or_paths: Texts: an iterable of str, of bytes in UTF-8, or of lists of them; Arrow
            strings. A mapping of names to such texts has sources, for `weights`. Files: one str or
            Path (a path, a URL, a folder, a glob, or @FILE, a list of them), or a list of Path;
            several as str with `inputs=[...]`. Counts: what `bpe_beam.count` returned; a counts
            folder with `counts=DIR`.
        workers: The number of threads; None: the number of cores.
        progress: Whether to show the progress on stderr; or how: "bar", "plain" or "json".
        **options: The options below.

    Returns:
        The tokenizer. Warnings of the command line are raised as Python warnings.

    Raises:
        UsageError: An option is invalid; a ValueError.
        DataError: The texts are empty or not UTF-8, or files cannot be read.
        TypeError: An argument is not an option.
    """
    values = values_of("train", TrainSettings, options)
    run, shown = run_of("train", workers, progress, values)
    files = None if texts_or_paths is None else files_in(texts_or_paths, values)
    if files is not None or texts_or_paths is None:
        inputs = values if files is None else {**values, "inputs": files}
        tokenizer, messages = _trained_on_files(inputs, run, shown)
    else:
        tokenizer, messages = _trained_in_memory(texts_or_paths, values, run, shown)
    show_warnings(messages)
    return tokenizer


@documented(CountSettings)
def count(
    texts_or_paths: Any = None,
    *,
    workers: int | None = None,
    progress: bool | str = False,
    **options: Any,
) -> WordCounts:
    """Count the words of texts or files, for any number of trainings; nothing stays on disk::

        counts = bpe_beam.count(texts, pretokenizer="cl100k")
        small = bpe_beam.train(counts, vocab_size=8000)
        large = bpe_beam.train(counts, vocab_size=64000, min_frequency=2)

    Args:
        texts_or_paths: Texts or files, as in `bpe_beam.train`.
        workers: The number of threads; None: the number of cores.
        progress: Whether to show the progress on stderr; or how: "bar", "plain" or "json".
        **options: The options below.

    Returns:
        The counts, in memory.

    Raises:
        UsageError: An option is invalid; a ValueError.
        DataError: The texts are empty or not UTF-8, or files cannot be read.
        TypeError: An argument is not an option.
    """
    values = values_of("count", CountSettings, options)
    run, shown = run_of("count", workers, progress, values)
    files = None if texts_or_paths is None else files_in(texts_or_paths, values)
    if files is None and texts_or_paths is not None:
        if isinstance(texts_or_paths, WordCounts):
            raise UsageError("must be texts or files, got counts", (FIRST,))
        rules = _rules_of(settings_of(WordSettings, values))
        return _counts_of(texts_or_paths, rules, run, shown)
    inputs = values if files is None else {**values, "inputs": files}
    from bpe_beam.jobs import count as job

    with temporary_folder() as folder:
        output = str(folder / "counts")
        settings = settings_of(CountSettings, {**inputs, "run": run, "output": output})
        show_warnings(getattr(job.run(settings, shown), "warnings", None))
        return WordCounts.read(Storage(), output)


def _rules_of(
    settings: TrainingSettings | WordSettings, plan: TrainingPlan | None = None
) -> WordRules:
    """Return the rules that split texts; with the plan of a training, for its base tokenizer."""
    if isinstance(settings, WordSettings):
        normalizer, pretokenizer = settings.normalizer, settings.pretokenizer
    else:
        normalizer, pretokenizer = settings.corpus_normalizer, settings.corpus_pretokenizer
    return WordRules(
        normalizer,
        pretokenizer,
        settings.special_tokens if plan is None else plan.extracted,
        settings.tie_break == "first_seen",
        () if plan is None else plan.added_tokens,
    )


def _counts_of(
    texts_or_paths: Any, rules: WordRules, run: common.RunSettings, shown: Progress
) -> WordCounts:
    sources = sources_of(texts_or_paths)
    with shown.stage("count", number_of_texts(sources), "documents") as stage:
        return count_texts(rules, sources, run.workers or default_workers(), stage)


def _trained_in_memory(
    texts_or_paths: Any, values: Values, run: common.RunSettings, shown: Progress
) -> tuple[Tokenizer, list[str] | None]:
    """Return a tokenizer of counts or texts, and warnings about it."""
    # Imported here, like the jobs below: files need other modules than texts.
    from bpe_beam.jobs.train import train_in_memory
    from bpe_beam.jobs.train.plan import plan_training

    settings = settings_of(TrainingSettings, {**values, "run": run})
    counts = texts_or_paths
    if not isinstance(counts, WordCounts):
        if None in sources_of(texts_or_paths):
            for name in ("weights", "temperature"):
                if getattr(settings, name):
                    remedy = "give a mapping of names to texts"
                    raise UsageError("must have sources", (name,), remedy)
        # Settings that cannot be trained are refused before the first text is read.
        plan = plan_training(settings, Storage(settings.run.storage_options))
        counts = _counts_of(texts_or_paths, _rules_of(settings, plan), run, shown)
    return train_in_memory(settings, counts, shown)


def _trained_on_files(
    values: Values, run: common.RunSettings, shown: Progress
) -> tuple[Tokenizer, list[str] | None]:
    """Return the tokenizer of the command line's job, in a temporary folder, and its warnings."""
    from bpe_beam.jobs import train as job

    with temporary_folder() as folder:
        output = str(folder / "tokenizer")
        settings = settings_of(TrainSettings, {**values, "run": run, "output": output})
        messages = job.run(settings, shown).warnings
        tokenizer = Tokenizer.from_file(f"{output}/tokenizer.json")
        return Tokenizer(tokenizer.spec, tokenizer.model_input), messages
