"""The train job: a counts folder, or a corpus, to a tokenizer.

The job resolves its settings once (`plan.py`), trains (`trainer.py` decides where), and publishes
the tokenizer. A corpus is counted first, into the folder `counts` of the output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec
from msgspec import UNSET

from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import SUMMARY_FILE, TOKENIZER_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_checks import same_folder
from bpe_beam.folders.output_folder import COUNTS, OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.train import summary
from bpe_beam.jobs.train.plan import ROUNDS, TrainingPlan, plan_training
from bpe_beam.jobs.train.trainer import Trainer
from bpe_beam.jobs.train.training_warnings import training_warnings
from bpe_beam.progress import Progress
from bpe_beam.settings.train import TrainingSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import with_checksum
from bpe_beam.tokenizer.files import transformers_files
from bpe_beam.tokenizer.files.vocab_files import vocab_txt
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.tokenizer_parts import continued, tokenizer_of

_FILES = {
    "bpe": ("vocab.json", "merges.txt", TOKENIZER_FILE),
    "prefix_bpe": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "wordpiece": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "word_level": ("vocab.json", TOKENIZER_FILE),
    "unigram": (TOKENIZER_FILE,),
    "mingram": (TOKENIZER_FILE,),
}
_SENTENCEPIECE_FILE = "tokenizer.model"
_FOR_TRANSFORMERS = (transformers_files.CONFIG_FILE, transformers_files.SPECIAL_TOKENS_FILE)


def run(
    settings: TrainingSettings, progress: Progress, *, parts: int | None = None
) -> summary.TrainSummary:
    """Train a tokenizer, and return the summary, which is also written as `summary.json`.

    With `parts`, the words are a sample: so many parts of the counts.
    """
    started = time.monotonic()
    plan = plan_training(settings, Storage(settings.run.storage_options))
    if parts is not None:
        plan = plan.with_parts(parts)
    if plan.counts is None:
        folder, counting = _count_corpus(plan, progress)
    else:
        # The trainer may refuse the settings. It must do so before the folder is claimed, since
        # overwriting removes what is in the folder; a finished folder needs no trainer.
        finished = plan.storage.exists(plan.storage.join(settings.folder, SUMMARY_FILE))
        if settings.run.overwrite or not finished:
            Trainer(plan)
        folder = _claim(plan, {"counts_manifest": plan.counts.sha256}, progress)
        counting = {}
    if folder.finished:
        return _finished_before(plan, folder, started)
    counted = time.monotonic()
    trainer, learned = _train(plan, folder, progress)
    tokenizer = _learned_tokenizer(trainer.plan, learned)
    warnings = training_warnings(trainer.plan, tokenizer, learned)
    files = _write_files(trainer.plan, folder, tokenizer, warnings)
    result = summary.summary_of(trainer, learned, tokenizer, warnings, counting)
    ended = time.monotonic()
    result = msgspec.structs.replace(
        result,
        files=files,
        job_fingerprint=folder.fingerprint,
        counting_seconds=None if settings.counts else round(counted - started, 3),
        learning_seconds=round(ended - counted, 3),
        seconds=round(ended - started, 3),
        **summary.measured_rows(counting, trainer.measured),
    )
    folder.finish(SUMMARY_FILE, with_checksum(result))
    _remove_rounds(plan)
    return msgspec.structs.replace(result, **dict.fromkeys(summary.OF_THE_FILE, UNSET))


def train_in_memory(
    settings: TrainingSettings, counts: WordCounts, progress: Progress
) -> tuple[Tokenizer, list[str]]:
    """Return a tokenizer trained from counts in memory, and warnings; write nothing."""
    trainer = Trainer(plan_training(settings, Storage(settings.run.storage_options), counts))
    learned = trainer.train(progress)
    tokenizer = _learned_tokenizer(trainer.plan, learned)
    return tokenizer, training_warnings(trainer.plan, tokenizer, learned)


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
        if trainer is not None:
            _remove_rounds(plan, with_commits=False)
        if not plan.storage.exists(plan.rounds):
            folder.release()
        raise


def _remove_rounds(plan: TrainingPlan, *, with_commits: bool = True) -> None:
    """Remove the words between rounds, if there are any."""
    if plan.storage.exists(plan.rounds):
        # Imported here because a training in this process needs none of them.
        from bpe_beam.jobs.train.commits import holds_commits, remove_rounds

        if with_commits or not holds_commits(plan.storage, plan.rounds):
            remove_rounds(plan.storage, plan.rounds)


def _finished_before(
    plan: TrainingPlan, folder: OutputFolder, started: float
) -> summary.TrainSummary:
    """Return the summary of a folder that an earlier run finished."""
    _remove_rounds(plan)
    before = summary.read_summary(plan.storage.read_bytes(folder.path(SUMMARY_FILE)))
    of_the_run = (
        *summary.OF_THE_FILE,
        "jobs",
        "counting_seconds",
        "learning_seconds",
        *summary.MEASURED,
    )
    return msgspec.structs.replace(
        before,
        output=plan.settings.folder,
        was_finished_before=True,
        **dict.fromkeys(of_the_run, UNSET),
        seconds=round(time.monotonic() - started, 3),
        next=summary.next_commands(plan.settings),
    )


def _restore(data: bytes) -> RestoredFolder:
    """Return a finished folder; if a file is missing or damaged, the job trains again."""
    before = summary.read_summary(data)
    task = RestoredTask(tuple(before.files or ()), None)
    return RestoredFolder(before.job_fingerprint or None, {"tokenizer": task})


def _count_corpus(plan: TrainingPlan, progress: Progress) -> tuple[OutputFolder, Rows]:
    """Claim the output, count the corpus into it, and return rows of the count job's summary."""
    # Imported here because training from counts needs none of them.
    from bpe_beam.jobs import count
    from bpe_beam.jobs.corpus import input as corpus_input

    settings, storage, counting = plan.settings, plan.storage, plan.counting
    assert settings.input is not None
    corpus = count.plan_of(counting, storage, settings.folder)
    corpus_input.check_early(storage, corpus, settings.input)
    words = {
        "normalizer": settings.corpus_normalizer,
        "pretokenizer": settings.corpus_pretokenizer,
        **corpus_input.identity(settings.input, corpus),
    }
    folder = _claim(plan, words, progress)
    if folder.finished and not storage.exists(counting.output):
        return folder, {}
    rows = msgspec.to_builtins(
        count.run(counting, progress, plan=corpus, added_tokens=plan.added_tokens)
    )
    names = (*summary.OF_INPUT_FILES, *summary.MEASURED)
    return folder, {key: rows[key] for key in names if key in rows}


def _claim(plan: TrainingPlan, words: Mapping[str, object], progress: Progress) -> OutputFolder:
    """Claim the output for this job; `words` is its identity's part about the words."""
    settings = plan.settings
    counts = plan.storage.join(settings.folder, COUNTS)
    counts_inside = settings.counts is None or same_folder(settings.counts, counts)
    return claim_folder(
        plan.storage,
        settings.folder,
        {"job": "train", **plan.identity, **words},
        _file_names(plan),
        settings.run.overwrite,
        final=SUMMARY_FILE,
        restore=_restore,
        warn=progress.warn,
        # Folders of an earlier run that was killed or refused the words; and the counts.
        ignored=(ROUNDS, *((COUNTS,) if counts_inside else ())),
    )


def _file_names(plan: TrainingPlan) -> tuple[str, ...]:
    template = () if plan.chat_template is None else (transformers_files.CHAT_TEMPLATE_FILE,)
    sentencepiece = (_SENTENCEPIECE_FILE,) if plan.for_sentencepiece else ()
    return (*_FILES[plan.settings.model], *sentencepiece, *_FOR_TRANSFORMERS, *template)


def _learned_tokenizer(plan: TrainingPlan, learned: TrainingResult) -> Tokenizer:
    settings, recipe, base, counts = plan.settings, plan.recipe, plan.base_tokenizer, plan.counts
    assert counts is not None
    if base is not None and isinstance(recipe, BpeRecipe):
        tokenizer = continued(base, learned, recipe)
    else:
        manifest = counts.manifest
        tokenizer = tokenizer_of(learned, recipe, manifest.normalizer, manifest.pretokenizer)
    template = plan.chat_template
    templates = {} if template is None else {"default": template.decode()}
    model_input = transformers_files.ModelInput(
        settings.roles, settings.model_max_length, templates
    )
    return Tokenizer(tokenizer.spec, model_input)


def _write_files(
    plan: TrainingPlan, folder: OutputFolder, tokenizer: Tokenizer, warnings: list[str]
) -> list[FileInfo]:
    """Write the tokenizer's files, except those whose format cannot represent its tokens."""
    spec, roles, model_input = tokenizer.spec, plan.settings.roles, tokenizer.model_input
    contents: dict[str, Callable[[], bytes]] = {
        "vocab.json": tokenizer.vocab_json,
        "vocab.txt": lambda: vocab_txt(spec.model),
        "merges.txt": tokenizer.merges_txt,
        TOKENIZER_FILE: lambda: tokenizer.json_bytes,
        _SENTENCEPIECE_FILE: lambda: _sentencepiece_model(tokenizer, roles),
        transformers_files.CONFIG_FILE: lambda: transformers_files.tokenizer_config(
            spec, model_input
        ),
        transformers_files.SPECIAL_TOKENS_FILE: lambda: transformers_files.special_tokens_map(
            spec, model_input
        ),
        transformers_files.CHAT_TEMPLATE_FILE: lambda: plan.chat_template or b"",
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


def _sentencepiece_model(tokenizer: Tokenizer, roles: Mapping[str, str]) -> bytes:
    from bpe_beam.tokenizer.files import sentencepiece_file

    known = {role: roles[role] for role in sentencepiece_file.ROLES if role in roles}
    return sentencepiece_file.write(tokenizer.spec, known)
