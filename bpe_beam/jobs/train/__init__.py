"""The train job: a counts folder, or a corpus, to a tokenizer.

The job resolves its settings once (`plan.py`), trains (`trainer.py` decides where), and publishes
the tokenizer. A corpus is counted first, into the folder `counts` of the output.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.weights import Weights
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import SUMMARY_FILE, TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import COUNTS, OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.jobs.corpus.summary import (
    loss_warnings,
    losses_summary,
    source_facts,
    source_warnings,
)
from bpe_beam.jobs.input_folders import same_folder
from bpe_beam.jobs.train.added_tokens import added_token_warnings
from bpe_beam.jobs.train.commits import holds_merges, remove_rounds
from bpe_beam.jobs.train.plan import ROUNDS, TrainingPlan, plan_training
from bpe_beam.jobs.train.tokens_by_source import tokens_by_source
from bpe_beam.jobs.train.trainer import Trainer
from bpe_beam.messages import command, shortened
from bpe_beam.progress import Progress
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.field import typed_options
from bpe_beam.settings.train import TrainingSettings, TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import Sha256, read_signed, to_struct, with_checksum
from bpe_beam.tokenizer.files import sentencepiece_writing
from bpe_beam.tokenizer.files.sentencepiece_writing import ROLES, SENTENCEPIECE_FILE
from bpe_beam.tokenizer.files.transformers_files import (
    CHAT_TEMPLATE_FILE,
    CONFIG_FILE,
    SPECIAL_TOKENS_FILE,
    ModelInput,
    special_tokens_map,
    tokenizer_config,
)
from bpe_beam.tokenizer.files.vocab_files import vocab_txt
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import is_nearly_characters
from bpe_beam.training.merges.continue_training import continued
from bpe_beam.training.merges.native_trainer import MAX_TEXT, TrainingResult
from bpe_beam.training.recipe import DEFAULT_TIE_BREAK, BpeRecipe, Recipe
from bpe_beam.training.tokenizer_parts import tokenizer_of

_LONG_TOKEN = 1_000
"""A token of more characters than this is worth a warning."""

_SHOWN_INPUTS = 3
_MEASURED = ("runner", "workers", "counters", "distributions")
"""The rows of the count job's summary and of a trainer that say how pipelines ran."""

_OF_THE_FILE = ("files", "job_fingerprint")
"""The rows that only `summary.json` has."""

_OF_INPUT_FILES = (
    "files_excluded",
    "duplicate_inputs",
    "links_not_followed",
    "files_passed_over",
    "by_format",
    "files_read_by_one_worker",
)
"""The rows of the count job's summary about the input, which this job's summary repeats."""

_FILES = {
    "bpe": ("vocab.json", "merges.txt", TOKENIZER_FILE),
    "prefix_bpe": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "wordpiece": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "word_level": ("vocab.json", TOKENIZER_FILE),
}
_FOR_TRANSFORMERS = (CONFIG_FILE, SPECIAL_TOKENS_FILE)


class TrainSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a training; UNSET is left out of the JSON.

    Attributes:
        last_merge_count: How often the last merged pair occurs; with weights maybe a fraction.
        runner: How the pipelines of this run ran, if any did; so `workers`, `counters` and
            `distributions`.
        files: The tokenizer's files; only in `summary.json`.
        job_fingerprint: The fingerprint of the job in `__job`; only in `summary.json`.
    """

    job: str = "train"
    output: str
    was_finished_before: bool | UnsetType = UNSET
    counts: str
    warnings: list[str] | None
    files_excluded: int | UnsetType | None = UNSET
    duplicate_inputs: Any = UNSET
    links_not_followed: Any = UNSET
    files_passed_over: Any = UNSET
    by_format: Any = UNSET
    files_read_by_one_worker: Any = UNSET
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    sources: dict[str, dict[str, Any]] | None
    weights: dict[str, dict[str, Any]] | None = None
    rejects: int
    lost: Any = None
    model: str
    vocab_size: int
    merges: int
    last_merge_count: int | float | None
    bytes_per_token: float | UnsetType | None = UNSET
    weighted_bytes_per_token: float | UnsetType | None = UNSET
    fingerprint: str
    merge_rounds: str
    merge_rounds_because: str | UnsetType = UNSET
    rounds: Any = UNSET
    jobs: int | UnsetType = UNSET
    counting_seconds: float | UnsetType | None = UNSET
    learning_seconds: float | UnsetType = UNSET
    seconds: float = 0.0
    runner: str | UnsetType = UNSET
    workers: int | UnsetType | None = UNSET
    counters: dict[str, int] | UnsetType | None = UNSET
    distributions: dict[str, Any] | UnsetType | None = UNSET
    next: list[str]
    files: list[FileInfo] | UnsetType = UNSET
    job_fingerprint: Sha256 | UnsetType = UNSET


def run(settings: TrainSettings, progress: Progress) -> TrainSummary:
    """Train a tokenizer; the summary is also written as `summary.json`.

    Returns:
        The summary.
    """
    started = time.monotonic()
    plan = plan_training(settings, Storage(settings.run.storage_options))
    return _run(plan, progress, started)


def train_from_parts(settings: TrainingSettings, parts: int, progress: Progress) -> TrainSummary:
    """Train as `run` does, but from the first parts of the counts only: a sample of their words.

    Returns:
        The summary.
    """
    started = time.monotonic()
    plan = plan_training(settings, Storage(settings.run.storage_options))
    assert plan.counts is not None
    manifest = plan.counts.manifest
    kept = manifest.parts[:parts]
    manifest = msgspec.structs.replace(
        manifest,
        parts=kept,
        unique_words=sum(part.unique_words for part in kept),
        word_bytes=sum(part.word_bytes for part in kept),
    )
    counts = dataclasses.replace(plan.counts, manifest=manifest)
    return _run(dataclasses.replace(plan, counts=counts), progress, started)


def _run(plan: TrainingPlan, progress: Progress, started: float) -> TrainSummary:
    """Train by a plan; `started` is when the job did, by the monotonic clock."""
    settings = plan.settings
    if plan.counts is None:
        folder, counting = _count_corpus(plan, progress)
    else:
        folder, counting = _claim_beside_counts(plan, plan.counts.sha256, progress), {}
    if folder.finished:
        return _finished_before(plan, folder, started)
    counted = time.monotonic()
    trainer, learned = _train(plan, folder, progress)
    summary = _publish(trainer, learned, folder, counting)
    ended = time.monotonic()
    summary = msgspec.structs.replace(
        summary,
        counting_seconds=None if settings.counts else round(counted - started, 3),
        learning_seconds=round(ended - counted, 3),
        seconds=round(ended - started, 3),
        **_measured(counting, trainer.measured),
    )
    folder.finish(SUMMARY_FILE, with_checksum(summary))
    remove_rounds(plan.storage, plan.rounds)
    return msgspec.structs.replace(summary, **dict.fromkeys(_OF_THE_FILE, UNSET))


def train_in_memory(
    settings: TrainingSettings, counts: WordCounts, progress: Progress
) -> tuple[Tokenizer, list[str]]:
    """Train a tokenizer from counts in memory, and write nothing.

    Returns:
        The tokenizer, and warnings about it.
    """
    trainer = Trainer(plan_training(settings, Storage(settings.run.storage_options), counts))
    learned = trainer.train(progress)
    tokenizer = _tokenizer_of(trainer.plan, learned)
    recipe = trainer.plan.recipe
    tokenizer = Tokenizer(tokenizer.spec, _model_input_of(trainer.plan))
    warnings = _warnings(settings, counts.manifest, recipe, tokenizer, learned)
    return tokenizer, [*added_token_warnings(trainer.plan), *warnings]


def _claim_beside_counts(
    plan: TrainingPlan, counts_sha256: str, progress: Progress
) -> OutputFolder:
    # The trainer may refuse the settings. It must do so before the folder is claimed, since
    # overwriting removes what is in the folder; a finished folder needs no trainer.
    finished = plan.storage.exists(plan.storage.join(plan.settings.folder, SUMMARY_FILE))
    if plan.settings.run.overwrite or not finished:
        Trainer(plan)
    return _claim(plan, {"counts_manifest": counts_sha256}, progress)


def _train(
    plan: TrainingPlan, folder: OutputFolder, progress: Progress
) -> tuple[Trainer, TrainingResult]:
    """Train; if the words do not allow it, free the folder for other settings."""
    trainer = None
    try:
        if plan.counts is None:
            plan = plan.with_counts(plan.storage.join(plan.settings.folder, COUNTS))
        trainer = Trainer(plan)
        return trainer, trainer.train(progress)
    except UsageError:
        # A run with other settings may use the folder, unless this one has learned merges, from
        # which the same settings continue.
        if trainer is not None and not holds_merges(plan.storage, plan.rounds):
            remove_rounds(plan.storage, plan.rounds)
        if not plan.storage.exists(plan.rounds):
            folder.release()
        raise


def _tokenizer_of(plan: TrainingPlan, learned: TrainingResult) -> Tokenizer:
    recipe, base, counts = plan.recipe, plan.base_tokenizer, plan.counts
    assert counts is not None
    if base is not None and isinstance(recipe, BpeRecipe):
        return continued(base, learned, recipe)
    names = (counts.manifest.normalizer, counts.manifest.pretokenizer)
    return tokenizer_of(learned, recipe, *names)


def _publish(
    trainer: Trainer, learned: TrainingResult, folder: OutputFolder, counting: Mapping[str, Any]
) -> TrainSummary:
    """Write the tokenizer's files, and return the summary without times and what was measured."""
    plan = trainer.plan
    settings, recipe, counts = plan.settings, plan.recipe, plan.counts
    assert counts is not None
    manifest, weights = counts.manifest, counts.weights
    tokenizer = _tokenizer_of(plan, learned)
    warnings = added_token_warnings(plan)
    warnings += _warnings(settings, manifest, recipe, tokenizer, learned)
    if settings.input is not None:
        warnings += source_warnings(settings.input, manifest.sources)
    warnings += loss_warnings(manifest.lost, sum(size for _, size in manifest.inputs))
    tokens = tokens_by_source(plan, tokenizer)
    files = _write(plan, folder, tokenizer, warnings)
    return TrainSummary(
        output=settings.folder,
        counts=counts.folder,
        warnings=warnings or None,
        **{name: value for name, value in counting.items() if name not in _MEASURED},
        documents=manifest.documents,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        sources=source_facts(manifest, tokens),
        weights=weights.summary(
            {name: totals.text_bytes for name, totals in (manifest.sources or {}).items()}
        )
        if weights
        else None,
        rejects=sum(manifest.rejects.values()),
        lost=losses_summary(manifest.lost),
        model=settings.model,
        vocab_size=tokenizer.vocab_size,
        merges=len(learned.merges),
        last_merge_count=_last_count(learned, weights),
        bytes_per_token=_bytes_per_token(learned) if weights is None else UNSET,
        weighted_bytes_per_token=UNSET if weights is None else _bytes_per_token(learned),
        fingerprint=tokenizer.fingerprint,
        **trainer.summary,
        next=_next(settings),
        files=files,
        job_fingerprint=folder.fingerprint,
    )


def _finished_before(plan: TrainingPlan, folder: OutputFolder, started: float) -> TrainSummary:
    """Return the summary of a folder that an earlier run finished."""
    remove_rounds(plan.storage, plan.rounds)
    data = plan.storage.read_bytes(folder.path(SUMMARY_FILE))
    before = _read_summary(data)
    of_the_run = (*_OF_THE_FILE, "jobs", "counting_seconds", "learning_seconds", *_MEASURED)
    return msgspec.structs.replace(
        before,
        output=plan.settings.folder,
        was_finished_before=True,
        **dict.fromkeys(of_the_run, UNSET),
        seconds=round(time.monotonic() - started, 3),
        next=_next(plan.settings),
    )


def _measured(counting: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pipelines of counting and of training measured; their names differ."""
    measured = {name: counting[name] for name in _MEASURED if name in counting} | {**training}
    for name in ("counters", "distributions") if measured else ():
        measured[name] = {**(counting.get(name) or {}), **(training.get(name) or {})} or None
    return measured


def _file_names(plan: TrainingPlan) -> tuple[str, ...]:
    """Return the names of the tokenizer's files."""
    template = () if plan.chat_template is None else (CHAT_TEMPLATE_FILE,)
    sentencepiece = (SENTENCEPIECE_FILE,) if plan.for_sentencepiece else ()
    return (*_FILES[plan.settings.model], *sentencepiece, *_FOR_TRANSFORMERS, *template)


def _model_input_of(plan: TrainingPlan) -> ModelInput:
    template = plan.chat_template
    templates = {} if template is None else {"default": template.decode()}
    return ModelInput(plan.settings.roles, plan.settings.model_max_length, templates)


def _write(
    plan: TrainingPlan, folder: OutputFolder, tokenizer: Tokenizer, warnings: list[str]
) -> list[FileInfo]:
    """Write the tokenizer's files, except those whose format cannot represent its tokens."""
    spec, settings = tokenizer.spec, plan.settings
    model_input = _model_input_of(plan)
    contents: dict[str, Callable[[], bytes]] = {
        "vocab.json": tokenizer.vocab_json,
        "vocab.txt": lambda: vocab_txt(spec.model),
        "merges.txt": tokenizer.merges_txt,
        TOKENIZER_FILE: lambda: tokenizer.json_bytes,
        SENTENCEPIECE_FILE: lambda: sentencepiece_writing.write(
            spec, {role: settings.roles[role] for role in ROLES if role in settings.roles}
        ),
        CONFIG_FILE: lambda: tokenizer_config(spec, model_input),
        SPECIAL_TOKENS_FILE: lambda: special_tokens_map(spec, model_input),
        CHAT_TEMPLATE_FILE: lambda: plan.chat_template or b"",
    }
    files = []
    for name in _file_names(plan):
        try:
            data = contents[name]()
        except UsageError as error:
            warnings.append(f"not written: {error}; tokenizer.json contains everything")
            continue
        plan.storage.write_bytes(folder.path(name), data)
        files.append(FileInfo.of(name, data))
    return files


def _restore(summary: bytes) -> RestoredFolder:
    """Return a finished folder; if a file is missing or damaged, the job trains again."""
    found = _read_summary(summary)
    files = tuple(found.files or ())
    return RestoredFolder(found.job_fingerprint or None, {"tokenizer": RestoredTask(files, None)})


def _read_summary(data: bytes) -> TrainSummary:
    return to_struct(read_signed(data, SUMMARY_FILE, 1), TrainSummary, SUMMARY_FILE)


def _count_corpus(plan: TrainingPlan, progress: Progress) -> tuple[OutputFolder, dict[str, Any]]:
    """Claim the output, count the corpus into it, and return rows of the count job's summary."""
    # Imported here because training from counts needs none of them.
    from bpe_beam.jobs import count
    from bpe_beam.jobs.corpus import input as corpus_input

    settings, storage = plan.settings, plan.storage
    assert settings.input is not None
    counting = count_settings(plan)
    corpus = count.plan_of(counting, storage, settings.folder)
    corpus_input.check_first_records(storage, corpus, settings.input)
    words = {
        "normalizer": settings.corpus_normalizer,
        "pretokenizer": settings.corpus_pretokenizer,
        **corpus_input.identity(settings.input, corpus),
    }
    folder = _claim(plan, words, progress)
    if folder.finished and not storage.exists(counting.output):
        return folder, {}
    counted = msgspec.to_builtins(
        count.run(counting, progress, plan=corpus, added_tokens=plan.added_tokens)
    )
    return folder, {key: counted[key] for key in (*_OF_INPUT_FILES, *_MEASURED) if key in counted}


def count_settings(plan: TrainingPlan) -> CountSettings:
    """Return the settings of counting the corpus into the output."""
    settings = plan.settings
    assert settings.input is not None
    return CountSettings(
        input=settings.input,
        output=plan.storage.join(settings.folder, COUNTS),
        run=settings.run,
        normalizer=settings.corpus_normalizer,
        pretokenizer=settings.corpus_pretokenizer,
        special_tokens=plan.extracted,
        tie_break=settings.tie_break or DEFAULT_TIE_BREAK,
    )


def _claim(plan: TrainingPlan, words: dict[str, Any], progress: Progress) -> OutputFolder:
    """Claim the output for this job; `words` is its identity's part about the words."""
    settings = plan.settings
    counts = plan.storage.join(settings.folder, COUNTS)
    counts_inside = settings.counts is None or same_folder(settings.counts, counts)
    return OutputFolder.claim(
        plan.storage,
        settings.folder,
        {"job": "train", **plan.identity, **words},
        _file_names(plan),
        settings.run.overwrite,
        final=SUMMARY_FILE,
        restore=_restore,
        warn=progress.warn,
        # Folders of an earlier run that was killed or refused the words; and the counts.
        beside=(ROUNDS, *((COUNTS,) if counts_inside else ())),
    )


def _bytes_per_token(learned: TrainingResult) -> float | None:
    """Return the bytes of the counted words over the number of their tokens."""
    found = learned.totals.bytes_per_token if learned.totals is not None else None
    return None if found is None else round(found, 4)


def _last_count(learned: TrainingResult, weights: Weights | None) -> int | float | None:
    """Return how often the last merged pair occurs; with weights maybe a fraction."""
    if not len(learned.counts):
        return None
    count, unit = int(learned.counts[-1]), 1 if weights is None else weights.unit
    return count if unit == 1 else count / unit


def _warnings(
    settings: TrainingSettings,
    manifest: CountsManifest,
    recipe: Recipe,
    tokenizer: Tokenizer,
    learned: TrainingResult,
) -> list[str]:
    """Return the warnings about the result."""
    warnings = []
    added = [t for t in recipe.special_tokens if t not in manifest.special_tokens]
    if added:
        warnings.append(
            f"{', '.join(added)}: not extracted when the text was counted; where the corpus has "
            "them, they were counted as plain text: count with --special-token to extract them"
        )
    longest = max(tokenizer.vocab.keys() - set(recipe.specials), key=len, default="")
    if len(longest) > _LONG_TOKEN and settings.model != "word_level":
        warnings.append(
            f"the longest token has {len(longest):,} characters, {shortened(longest)}: the text "
            "repeats it; max_token_length limits the length"
        )
    if learned.text_full:
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"the merges have {MAX_TEXT:,} bytes in total, which is the limit; set "
            "max_token_length"
        )
    elif settings.model == "wordpiece" and is_nearly_characters(learned):
        warnings.append(
            f"{_bytes_per_token(learned):.2f} bytes a token: nearly single characters, since the "
            "likelihood prefers pairs of rare ones; set a higher min_frequency (now "
            f"{settings.min_frequency:,}), or the model prefix_bpe, which is what Hugging Face "
            "calls WordPiece training"
        )
    elif tokenizer.vocab_size < settings.vocab_size:
        left = "word" if settings.model == "word_level" else "pair"
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"no other {left} is frequent enough"
        )
    return warnings


def _next(settings: TrainingSettings) -> list[str]:
    tokenizer = f"{settings.folder}/tokenizer.json"
    reading = ["--input", "INPUT"]
    if settings.input is not None and len(settings.input.inputs) <= _SHOWN_INPUTS:
        reading = typed_options(settings.input)
    around = [
        word
        for flag, role in (("--prepend", "bos_token"), ("--append", "eos_token"))
        if (token := settings.roles.get(role)) is not None
        for word in (flag, token)
    ]
    return [
        command("inspect", tokenizer),
        command("encode", "--tokenizer", tokenizer, "--show", "Hello world"),
        command("tokenize", "--tokenizer", tokenizer, *reading, *around, "--output", "tokens"),
    ]
