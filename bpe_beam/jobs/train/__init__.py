"""The train job: a counts folder, or a corpus, to a tokenizer.

From a corpus the counts come first, into the folder `counts` of the output, where they stay: other
vocabulary sizes can be learned from them at once. `train_learning.py` decides where merges are
learned.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from bpe_beam.counts.manifest import CountsManifest, read_manifest
from bpe_beam.counts.weights import Weights
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.output_folder import COUNTS, OutputFolder
from bpe_beam.jobs.corpus_checks import loss_warnings, losses_summary
from bpe_beam.jobs.counts.shared import manifest_hash, same_folder
from bpe_beam.jobs.source_summary import source_facts, source_warnings
from bpe_beam.jobs.train.recipe import check_vocab_size, identity_of, recipe_of, tokenizer_from
from bpe_beam.jobs.train.trainer import ROUNDS, Learning, clear_rounds, holds_merges
from bpe_beam.jobs.train.weights import (
    tokens_by_source,
    weights_identity,
    weights_of,
)
from bpe_beam.messages import shortened
from bpe_beam.progress import Progress
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.tokenizer.vocab_files import vocab_txt
from bpe_beam.training.initial_vocabulary import check_distributed
from bpe_beam.training.native_trainer import MAX_TEXT, Learned
from bpe_beam.training.recipe import Recipe
from bpe_beam.training.wordpiece import is_nearly_characters

_LONG_TOKEN = 1_000
"""Characters of a token that people are told of."""

_SUMMARY = "summary.json"
_SUMS = ("counters", "distributions")
_MEASURED = ("runner", "workers", *_SUMS)
_OF_COUNTING = ("files_excluded", "duplicate_inputs", "files_read_by_one_worker", *_MEASURED)
"""What the summary repeats of the count job's."""

_OF_THE_RUN = ("job", "output", "files", "jobs", "counting_seconds", "learning_seconds", *_MEASURED)
"""What is not said again of a finished job: it tells of the run that finished it."""

_FILES = {
    "bpe": ("vocab.json", "merges.txt", TOKENIZER_FILE),
    "prefix_bpe": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "wordpiece": ("vocab.json", "vocab.txt", TOKENIZER_FILE),
    "word_level": ("vocab.json", TOKENIZER_FILE),
}


def run(settings: TrainSettings, progress: Progress) -> dict[str, Any]:
    """Trains a tokenizer.

    Args:
        settings: What to do.
        progress: Where it is shown.

    Returns:
        The summary; also written as `summary.json`.

    Raises:
        UsageError: Settings that cannot work, an output folder that is not free.
        DataError: A corpus that is empty or has too many rejects; storage that fails.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    old = None
    if settings.continue_from is not None:
        old = Tokenizer.from_file(settings.continue_from, storage=storage)
    inputs: dict[str, Any] = {}
    learning: Learning | None = None
    if settings.counts is None:
        names = (str(settings.normalizer), str(settings.pretokenizer))
        recipe = recipe_of(settings, *names, settings.special_tokens, old)
        check_vocab_size(recipe, old)
        if settings.merge_rounds == "distributed":
            check_distributed(recipe)
        identity = _identity(settings, recipe, old)
        folder, counts, inputs = _train_on_corpus(settings, storage, identity, progress)
    else:
        counts = settings.counts
        if same_folder(counts, settings.output):
            # Or --overwrite would remove the counts before they are read.
            raise UsageError(f"output {settings.output} is the counts' own folder: give another")
        manifest = read_manifest(storage, counts)
        weights = weights_of(settings, manifest)
        recipe = _recipe(settings, manifest, old)
        check_vocab_size(recipe, old)
        identity = _identity(settings, recipe, old)
        # Before the folder is claimed, or --overwrite would remove what it holds for nothing; what
        # is finished there is told whatever it would take to learn it again.
        if settings.run.overwrite or not _is_finished(settings, storage):
            learning = Learning(settings, storage, counts, manifest, weights, recipe, old)
        folder = _claim(settings, storage, {**identity, **_counts_identity(storage, counts)})
    if folder.finished:
        clear_rounds(settings, storage)
        before = json.loads(storage.read_bytes(folder.path(_SUMMARY)))
        return {
            "job": "train",
            "output": settings.output,
            "was_finished_before": True,
            **{name: value for name, value in before.items() if name not in _OF_THE_RUN},
            "seconds": round(time.monotonic() - started, 3),
            "next": _next(settings),
        }
    counted = time.monotonic()
    manifest = read_manifest(storage, counts)
    try:
        weights = weights_of(settings, manifest)
        if learning is None:
            learning = Learning(settings, storage, counts, manifest, weights, recipe, old)
        learned = learning.learn(progress)
    except UsageError:
        # What the words do not allow: another try, with other settings, finds the folder free. But
        # merges that were learned stay, and so does the claim of the settings that go on from them.
        rounds = storage.join(settings.output, ROUNDS)
        if learning is not None and not holds_merges(settings, storage):
            clear_rounds(settings, storage)
        if not storage.exists(rounds):
            folder.release()
        raise
    names = (manifest.normalizer, manifest.pretokenizer)
    tokenizer = tokenizer_from(learned, recipe, *names, old)
    warnings = _warnings(settings, manifest, recipe, tokenizer, learned)
    if settings.input is not None:
        warnings += source_warnings(settings.input, manifest.sources)
    warnings += loss_warnings(manifest.lost, sum(size for _, size in manifest.inputs))
    tokens = tokens_by_source(storage, counts, manifest, tokenizer, recipe)
    files = _write(storage, folder, tokenizer, _FILES[settings.model], warnings)
    ended = time.monotonic()
    counting = {name: inputs.pop(name) for name in _MEASURED if name in inputs}
    summary = {
        "job": "train",
        "output": settings.output,
        "counts": counts,
        "warnings": warnings or None,
        **inputs,
        "documents": manifest.documents,
        "text_bytes": manifest.text_bytes,
        "words": manifest.words,
        "unique_words": manifest.unique_words,
        "sources": source_facts(manifest, tokens),
        "weights": weights.facts() if weights else None,
        "rejects": sum(manifest.rejects.values()),
        "lost": losses_summary(manifest.lost),
        "model": settings.model,
        "vocab_size": tokenizer.vocab_size,
        "merges": len(learned.merges),
        "last_merge_count": _last_count(learned, weights),
        "bytes_per_token": _bytes_per_token(learned),
        "fingerprint": tokenizer.fingerprint,
        **learning.facts,
        "counting_seconds": None if settings.counts else round(counted - started, 3),
        "learning_seconds": round(ended - counted, 3),
        "seconds": round(ended - started, 3),
        **_measured(counting, learning.measured),
        "next": _next(settings),
    }
    folder.finish(_SUMMARY, json_bytes({**summary, "files": files}))
    clear_rounds(settings, storage)
    return summary


def _measured(counting: dict[str, Any], learning: dict[str, Any]) -> dict[str, Any]:
    """What the pipelines of both measured; their names differ."""
    sums = {name: {**(counting.get(name) or {}), **(learning.get(name) or {})} for name in _SUMS}
    found = {name: values or None for name, values in sums.items()}
    return {**counting, **learning, **found} if counting or learning else {}


def _is_finished(settings: TrainSettings, storage: Storage) -> bool:
    """Whether the output looks as if some training has finished there."""
    return storage.exists(storage.join(settings.output, _SUMMARY))


def _write(
    storage: Storage,
    folder: OutputFolder,
    tokenizer: Tokenizer,
    names: tuple[str, ...],
    warnings: list[str],
) -> list[dict[str, Any]]:
    """Writes the tokenizer's files; those that cannot hold its tokens are left out."""
    contents: dict[str, Callable[[], bytes]] = {
        "vocab.json": tokenizer.vocab_json,
        "vocab.txt": lambda: vocab_txt(tokenizer.spec.model),
        "merges.txt": tokenizer.merges_txt,
        TOKENIZER_FILE: lambda: tokenizer.to_json().encode(),
    }
    files = []
    for name in names:
        try:
            data = contents[name]()
        except UsageError as error:
            warnings.append(f"not written: {error}; tokenizer.json holds it all")
            continue
        storage.write_bytes(folder.path(name), data)
        digest = hashlib.sha256(data).hexdigest()
        files.append({"name": name, "bytes": len(data), "sha256": digest})
    return files


def _restore(summary: bytes) -> dict[str, Any]:
    """What a finished folder holds; if a file of it is gone, it is learned again."""
    return {"tokenizer": {"files": json.loads(summary)["files"], "facts": None}}


def _train_on_corpus(
    settings: TrainSettings, storage: Storage, identity: dict[str, Any], progress: Progress
) -> tuple[OutputFolder, str, dict[str, Any]]:
    """Claims the output, and counts the corpus into it unless all is finished; what is said of the
    input's files comes third."""
    # Beam is loaded only here: from counts, training needs none of it.
    from bpe_beam.jobs import corpus_input, count
    from bpe_beam.jobs.corpus_checks import check_first_records

    assert settings.input is not None
    counts = storage.join(settings.output, COUNTS)
    counting = CountSettings(
        input=settings.input,
        output=counts,
        run=settings.run,
        normalizer=str(settings.normalizer),
        pretokenizer=str(settings.pretokenizer),
        special_tokens=settings.special_tokens,
        tie_break=settings.tie_break or "lowest_id",
    )
    plan = corpus_input.plan_of(
        storage, settings.input, output=settings.output, with_places=counting.with_places
    )
    check_first_records(storage, plan, settings.input)
    identity = {
        **identity,
        "normalizer": settings.normalizer,
        "pretokenizer": settings.pretokenizer,
        **corpus_input.identity(settings.input, plan),
    }
    folder = _claim(settings, storage, identity)
    if not folder.finished:
        counted = count.run(counting, progress, plan=plan)
    else:
        counted = {}
        if storage.exists(storage.join(counts, MANIFEST_FILE)):
            manifest = read_manifest(storage, counts)
            count.check_finished(storage, counts, settings.input, plan, manifest)
    return folder, counts, {key: counted[key] for key in _OF_COUNTING if key in counted}


def _counts_identity(storage: Storage, counts: str) -> dict[str, Any]:
    """What training depends on, of a counts folder."""
    return {"counts_manifest": manifest_hash(storage, counts)}


def _identity(settings: TrainSettings, recipe: Recipe, old: Tokenizer | None) -> dict[str, Any]:
    continued = {} if old is None else {"continued": old.fingerprint}
    return {**identity_of(settings, recipe), **continued, **weights_identity(settings)}


def _claim(settings: TrainSettings, storage: Storage, identity: dict[str, Any]) -> OutputFolder:
    job = {"job": "train", **identity}
    return OutputFolder.claim(
        storage,
        settings.output,
        job,
        _FILES[settings.model],
        settings.run.overwrite,
        final=_SUMMARY,
        restore=_restore,
        # Of a try that broke off, or that the words did not allow; and what is read.
        beside=(ROUNDS, *((COUNTS,) if _counts_inside(settings, storage) else ())),
    )


def _counts_inside(settings: TrainSettings, storage: Storage) -> bool:
    """Whether the counts are in the output."""
    inside = storage.join(settings.output, COUNTS)
    return settings.counts is None or same_folder(settings.counts, inside)


def _recipe(settings: TrainSettings, manifest: CountsManifest, old: Tokenizer | None) -> Recipe:
    """The recipe; special tokens that were cut when counting come first.

    Raises:
        UsageError: A normalizer or pre-tokenizer other than that of the counts.
    """
    for name, counted in (
        ("normalizer", manifest.normalizer),
        ("pretokenizer", manifest.pretokenizer),
    ):
        given = getattr(settings, name)
        if given not in (None, counted):
            raise UsageError(
                f"must be {counted!r}, with which the counts were made, got {given!r}",
                (name,),
                "leave it out, or count again",
            )
    names = (manifest.normalizer, manifest.pretokenizer)
    return recipe_of(settings, *names, manifest.special_tokens, old)


def _bytes_per_token(learned: Learned) -> float | None:
    """The bytes of the counted words over the tokens that the merges leave of them."""
    found = learned.totals.bytes_per_token if learned.totals is not None else None
    return None if found is None else round(found, 4)


def _last_count(learned: Learned, weights: Weights | None) -> int | float | None:
    """How often the last pair occurred, in units of one occurrence."""
    if not len(learned.counts):
        return None
    count, unit = int(learned.counts[-1]), 1 if weights is None else weights.unit
    return count if unit == 1 else count / unit


def _warnings(
    settings: TrainSettings,
    manifest: CountsManifest,
    recipe: Recipe,
    tokenizer: Tokenizer,
    learned: Learned,
) -> list[str]:
    """What went otherwise than one may think."""
    warnings = []
    added = [t for t in recipe.special_tokens if t not in manifest.special_tokens]
    if added:
        warnings.append(
            f"{', '.join(added)}: not cut out of the text when it was counted; where they stand "
            "in the corpus, their pieces were learned from as plain text"
        )
    longest = max(tokenizer.vocab.keys() - set(recipe.specials), key=len, default="")
    if len(longest) > _LONG_TOKEN and settings.model != "word_level":
        warnings.append(
            f"the longest token has {len(longest):,} characters, {shortened(longest)}: the text "
            "repeats it; --max-token-length makes no token so long"
        )
    if learned.text_full:
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"the merges have {MAX_TEXT:,} bytes together, which is the most there can be; give "
            "--max-token-length"
        )
    elif settings.model == "wordpiece" and is_nearly_characters(learned):
        warnings.append(
            f"{_bytes_per_token(learned):.2f} bytes a token: nearly single characters, since the "
            "likelihood prefers pairs of rare ones; give a higher --min-frequency (now "
            f"{settings.min_frequency:,}), or --model prefix_bpe, which is what Hugging Face calls "
            "WordPiece training"
        )
    elif tokenizer.vocab_size < settings.vocab_size:
        left = "word" if settings.model == "word_level" else "pair"
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"no {left} is left that is frequent enough"
        )
    return warnings


def _next(settings: TrainSettings) -> list[str]:
    tokenizer = f"{settings.output}/tokenizer.json"
    return [
        f"bpe-beam inspect {tokenizer}",
        f"bpe-beam encode --tokenizer {tokenizer} --show 'Hello world'",
        f"bpe-beam tokenize --tokenizer {tokenizer} --input INPUT --output tokens",
    ]
