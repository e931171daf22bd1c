"""`tokenize` with documents in a seeded order, in sequences, or divided for validation.

The documents are tokenized first, into shards of a folder within `work/`: another job, which
resumes by itself. Then its shards are measured, the driver plans, and new shards are written; see
`arrange_steps.py`. With a validation share the output has two folders of shards.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from msgspec import UNSET, UnsetType, structs, to_builtins

from bpe_beam.engines.run import run_summary
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import (
    MANIFEST_FILE,
    REJECTS,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
)
from bpe_beam.folders.claim import Takeover, claim_folder
from bpe_beam.folders.output_folder import (
    DOCUMENTS,
    OutputFolder,
    RestoredFolder,
    RestoredTask,
    recorded_job,
)
from bpe_beam.folders.receipts import WORK
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus.job import CorpusResult
from bpe_beam.jobs.corpus.summary import (
    Rows,
    inputs_summary,
    loss_warnings,
    losses_summary,
    shard_source_figures,
    source_warnings,
)
from bpe_beam.jobs.input_folders import inside, restored_files, write_small_files
from bpe_beam.jobs.tokenize.arrange_steps import ArrangeSteps, Arranging, described_part
from bpe_beam.jobs.tokenize.arranged_shards import ArrangedShards, files_inside
from bpe_beam.jobs.tokenize.documents import TokenizeJob, TokenizeSummary, shards_bytes
from bpe_beam.jobs.tokenize.inputs import (
    TokenizeInputs,
    doubled_warnings,
    tokenizer_warnings,
    unmarked_warnings,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import ArrangementSettings
from bpe_beam.shards.arrangement import Arrangement
from bpe_beam.shards.formats import LABELLED_FORMAT, PLAIN_FORMAT, shard_format
from bpe_beam.shards.manifest import Manifest, index_names, read_manifest
from bpe_beam.shards.shard_rows import NO_CHANGES, ArrangedPart
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.arrange.task import RANKS

_KINDS = ((PLAIN_FORMAT, False), (LABELLED_FORMAT, False), (LABELLED_FORMAT, True))
"""The formats of tokenized documents, with or without hashes; each has all of the previous one."""

_TAKEOVER = Takeover("arrangement", ("measure", "scatter"))
"""Until a new shard is written, another arrangement of the same documents reuses them."""


class ArrangedSummary(TokenizeSummary, frozen=True, kw_only=True):
    """The summary of a tokenization whose documents were arranged.

    Attributes:
        temporary_bytes: The size of the tokenized documents, which a dry run leaves in the output.
        padding: The number of padding tokens.
        unfilled: The tokens for which sequences have room; without a padding token they are
            shorter.
        parts: The figures of the folders for training and validation.
    """

    temporary_bytes: int | UnsetType = UNSET
    sequences: int | UnsetType = UNSET
    sequence_length: int | UnsetType = UNSET
    padding: int | UnsetType = UNSET
    padding_share: float | UnsetType = UNSET
    unfilled: int | UnsetType = UNSET
    unfilled_share: float | UnsetType = UNSET
    parts: dict[str, dict[str, int]] | UnsetType = UNSET


@dataclass(frozen=True)
class _Arranged:
    """An arrangement that is finished, or that a dry run has planned.

    Attributes:
        finished_before: Whether an earlier run had finished it.
        shards_kept: The number of new shards that earlier runs had finished.
        tokenized: The tokenization of the documents; None if an earlier run had finished all.
        parts: The contents of the folders for training and validation.
        manifests: The manifest of each part; none after a dry run.
        rows: The number of documents, or of sequences, of each part.
    """

    finished_before: bool
    shards_kept: int
    tokenized: CorpusResult[Manifest] | None
    parts: tuple[ArrangedPart, ...]
    manifests: tuple[Manifest, ...]
    rows: tuple[int, ...]


def tokenize_arranged(inputs: TokenizeInputs, progress: Progress) -> ArrangedSummary:
    """Tokenize a corpus, and arrange the documents."""
    started = time.monotonic()
    inputs = replace(inputs, limit=None)  # the arrangement says how large its shards are
    arranged = _arrange(inputs, progress)
    return _summary(inputs, arranged, time.monotonic() - started)


def _arrange(inputs: TokenizeInputs, progress: Progress) -> _Arranged:
    settings, storage = inputs.settings, inputs.storage
    job = TokenizeJob(inputs)
    job.needs_ids = settings.arranging.validation_by == "id"
    job.check_input(progress)
    arrangement = settings.arranging.arrangement
    assert arrangement is not None
    pad = arrangement.pad_token
    pad_id = None if pad is None else _id_of(inputs.tokenizer, pad)
    folder = _claim(inputs, job, arrangement, progress)
    if folder.finished:
        manifests = _manifests(storage, settings.output, arrangement.parts)
        for name, manifest in zip(arrangement.parts, manifests, strict=True):
            write_small_files(folder, manifest, inputs.tokenizer.json_bytes, name)
        return _finished(True, 0, None, manifests)
    documents = folder.path(f"{WORK}/{DOCUMENTS}")
    tokenized = _tokenize(inputs, documents, progress)
    arranging = Arranging(inputs, arrangement, folder, documents, tokenized.manifest, progress)
    steps = ArrangeSteps(arranging, pad_id)
    sums = steps.measure()
    rows = steps.rows(sums)
    if settings.arranging.dry_run:
        parts = tuple(
            described_part(arranging, sums, number, padding=0) for number in range(len(rows))
        )
        return _Arranged(False, 0, tokenized, parts, (), tuple(rows))
    plans = steps.plans(sums, rows)
    shards_kept = steps.write(sums, plans)
    manifests = ArrangedShards(arranging, sums).finish(plans)
    return _finished(False, shards_kept, tokenized, manifests)


def _finished(
    before: bool,
    shards_kept: int,
    tokenized: CorpusResult[Manifest] | None,
    manifests: tuple[Manifest, ...],
) -> _Arranged:
    parts = tuple(each.arranged for each in manifests if isinstance(each.arranged, ArrangedPart))
    rows = tuple(each.totals.documents for each in manifests)
    return _Arranged(before, shards_kept, tokenized, parts, manifests, rows)


def _claim(
    inputs: TokenizeInputs, job: TokenizeJob, arrangement: Arrangement, progress: Progress
) -> OutputFolder:
    """Return the output folder; its job depends on the documents and on the arrangement."""
    settings, parts = inputs.settings, arrangement.parts
    identity = {**job.identity, **corpus_input.identity(settings.input, inputs.plan)}
    names = (SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, MANIFEST_FILE, *index_names(settings.format))
    return claim_folder(
        inputs.storage,
        settings.output,
        {"job": "tokenize", **identity, "arrangement": to_builtins(arrangement)},
        [
            *(inside(part, name) for part in parts for name in names),
            f"{WORK}/{RANKS}",
            *(inside(parts[0], name) for name in corpus_input.rejects_names(inputs.plan)),
        ],
        settings.run.overwrite,
        final=inside(parts[0], MANIFEST_FILE),
        restore=partial(_restore, inputs.storage, settings.output, parts),
        takeover=_TAKEOVER,
        warn=progress.warn,
    )


def _tokenize(inputs: TokenizeInputs, documents: str, progress: Progress) -> CorpusResult[Manifest]:
    """Tokenize the documents into a temporary folder."""
    format_name, hashes = _kind_of_documents(inputs, documents)
    settings = replace(
        inputs.settings,
        output=documents,
        formats=(format_name,),
        columns=(),
        arranging=ArrangementSettings(),
    )
    job = TokenizeJob(
        replace(inputs, settings=settings, storage=inputs.storage.unsynced, limit=None),
        hashes=hashes,
    )
    job.for_another = True
    result = job.run(progress)
    inputs.encoding.tokenizer().clear_cache()  # nothing is encoded from here on
    return result


def _kind_of_documents(inputs: TokenizeInputs, documents: str) -> tuple[str, bool]:
    """Return the format of the tokenized documents, and whether they have hashes.

    Documents of an earlier arrangement are reused, with all that they have.
    """
    settings = inputs.settings
    needed = int(shard_format(settings.format).labelled_writer is not None)
    if settings.arranging.validation_share is not None:
        needed = 2
    existing = recorded_job(inputs.storage, documents)
    if existing is not None:
        kind = existing.settings.get("format"), "hashes" in existing.settings
        needed = max([needed, *(at for at, each in enumerate(_KINDS) if each == kind)])
    return _KINDS[needed]


def _summary(inputs: TokenizeInputs, arranged: _Arranged, seconds: float) -> ArrangedSummary:
    settings, plan, tokenized = inputs.settings, inputs.plan, arranged.tokenized
    corpus = arranged.parts[0].corpus
    assert corpus is not None  # both ways to arrange have set it
    tokens = sum(part.tokens for part in arranged.parts)
    documents = sum(part.documents for part in arranged.parts)
    changes = corpus.changes or NO_CHANGES
    warnings = [
        *tokenizer_warnings(inputs.encoding),
        *doubled_warnings(inputs.encoding, changes, documents),
        *loss_warnings(corpus.lost, plan.size),
        *source_warnings(settings.input, corpus.sources),
        *unmarked_warnings(inputs),
    ]
    measured: Rows = {"counters": None, "distributions": None}
    rate = None
    if tokenized is not None:
        measured = tokenized.measured.to_json()
        rate = tokenized.measured.rate("text_bytes_tokenized", tokenized.seconds)
    summary = ArrangedSummary(
        job="tokenize",
        output=settings.output,
        was_finished_before=arranged.finished_before or None,
        warnings=warnings or None,
        **inputs_summary(plan, () if tokenized is None else tokenized.not_split),
        documents=documents,
        text_bytes=corpus.text_bytes,
        rejects=sum(corpus.rejects.values()),
        rejects_by_reason=corpus.rejects or None,
        lost=losses_summary(corpus.lost),
        seconds=round(seconds, 3),
        next=[command("verify", settings.output)],
        **run_summary(settings.run, len(plan.splits)),
        text_bytes_per_second=rate,
        **measured,
        shards_kept_from_before=arranged.shards_kept or None,
        tokens=tokens,
        bytes_per_token=corpus.text_bytes / tokens,
        sources=shard_source_figures(corpus.sources),
        documents_changed=to_builtins(changes) or UNSET,
        **_sequence_figures(settings.arranging, arranged, tokens),
    )
    if arranged.manifests:
        return structs.replace(
            summary,
            shards=sum(len(manifest.shards) for manifest in arranged.manifests),
            shards_bytes=shards_bytes(arranged.manifests),
        )
    assert tokenized is not None
    return structs.replace(
        summary,
        next=["the same without --dry-run"],
        temporary_bytes=shards_bytes([tokenized.manifest]),
    )


def _sequence_figures(arranging: ArrangementSettings, arranged: _Arranged, tokens: int) -> Rows:
    """Return the figures of sequences, and of each part."""
    figures: Rows = {}
    length = arranging.sequence_length
    if length is not None:
        room = length * sum(arranged.rows)
        name = "unfilled" if arranging.pad_token is None else "padding"
        figures = {
            "sequences": sum(arranged.rows),
            "sequence_length": length,
            name: room - tokens,
            f"{name}_share": (room - tokens) / room,
        }
    if arranging.validation_share is not None:
        figures["parts"] = {part.part: part.figures for part in arranged.parts}
    return figures


def _manifests(storage: Storage, output: str, parts: Sequence[str]) -> tuple[Manifest, ...]:
    folders = [storage.join(output, part) if part else output for part in parts]
    return tuple(read_manifest(storage, folder) for folder in folders)


def _restore(storage: Storage, output: str, parts: Sequence[str], _: bytes) -> RestoredFolder:
    """Return a finished folder: all tasks run again if a file is missing or changed."""
    tasks: dict[str, RestoredTask] = {}
    jobs = set()
    for part in parts:
        url = storage.join(output, *inside(part, MANIFEST_FILE).split("/"))
        # Not by `read_manifest`, which refuses a folder whose manifest is missing.
        manifest = Manifest.from_bytes(storage.read_bytes(url), redact(url))
        jobs.add(manifest.job_fingerprint)
        tasks |= restored_files(manifest, part)
        tasks[inside(part, REJECTS)] = RestoredTask(
            files_inside(part, manifest.rejects.files), None
        )
        for shard in manifest.shards:
            tasks[inside(part, shard.name)] = RestoredTask(files_inside(part, shard.files), None)
    # Manifests of several jobs belong to none of them.
    return RestoredFolder((jobs.pop() or None) if len(jobs) == 1 else None, tasks)


def _id_of(tokenizer: Tokenizer, token: str) -> int:
    token_id = tokenizer.token_to_id(token)
    if token_id is None:
        raise UsageError(f"must be a token of the tokenizer, got {token!r}", ("pad_token",))
    return token_id
