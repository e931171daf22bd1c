"""`tokenize` with documents in a seeded order, in sequences, or divided for validation.

The documents are tokenized first, into shards of a folder within `work/`: another job, which
resumes by itself. Then its shards are measured, the driver plans, and new shards are written; see
`arrange_steps.py`. With a validation share the output has two folders of shards.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import UNSET, structs, to_builtins

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.claim import Takeover, claim_folder
from bpe_beam.folders.output_folder import (
    DOCUMENTS,
    OutputFolder,
    recorded_job,
)
from bpe_beam.folders.receipts import WORK
from bpe_beam.jobs.arranged_shards import restored_parts
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus.job import CorpusResult
from bpe_beam.jobs.corpus.summary import source_figures
from bpe_beam.jobs.shard_folder_files import inside, write_small_files
from bpe_beam.jobs.tokenize.arrange_steps import ArrangeSteps
from bpe_beam.jobs.tokenize.documents import (
    TokenizeInputs,
    TokenizeJob,
    TokenizeSummary,
    doubled_warnings,
    tokenizer_warnings,
    unmarked_warnings,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import ArrangementSettings
from bpe_beam.shards.formats import LABELLED_FORMAT, PLAIN_FORMAT, shard_format
from bpe_beam.shards.manifest import Manifest, index_names, read_manifest
from bpe_beam.shards.shard_rows import NO_CHANGES, ArrangedPart, Arrangement
from bpe_beam.workers.arrange.task import RANKS
from bpe_beam.workers.reject_limits import CorpusTotals
from bpe_beam.workers.task_results import MetricSums

_KINDS = ((PLAIN_FORMAT, False), (LABELLED_FORMAT, False), (LABELLED_FORMAT, True))
"""The formats of tokenized documents, with or without hashes; each has all of the previous one."""

_TAKEOVER = Takeover("arrangement", ("measure", "scatter", "regroup"))
"""Until a new shard is written, another arrangement of the same documents reuses them."""


def tokenize_arranged(inputs: TokenizeInputs, progress: Progress) -> TokenizeSummary:
    """Tokenize a corpus, and arrange the documents."""
    started = time.monotonic()
    inputs = structs.replace(inputs, limit=None)  # the arrangement says how large its shards are
    settings, storage = inputs.settings, inputs.storage
    arrangement = settings.arranging.arrangement
    assert arrangement is not None
    job = TokenizeJob(inputs)
    job.needs_ids = settings.arranging.validation_by == "id"
    job.check_input(progress)
    pad = arrangement.pad_token
    pad_id = None if pad is None else inputs.tokenizer.token_to_id(pad)
    if pad is not None and pad_id is None:
        raise UsageError(f"must be a token of the tokenizer, got {pad!r}", ("pad_token",))
    folder = _claim(inputs, job, arrangement, progress)
    summary, kept = partial(_summary, inputs, job, started), 0
    if folder.finished:
        folders = [folder.path(part) if part else folder.url for part in arrangement.parts]
        manifests = [read_manifest(storage, url) for url in folders]
        for name, manifest in zip(arrangement.parts, manifests, strict=True):
            write_small_files(folder, manifest, inputs.tokenizer.json_bytes, name)
        result = CorpusResult(manifests[0], True, 0, (), 0.0, MetricSums())
    else:
        documents = folder.path(f"{WORK}/{DOCUMENTS}")
        result = structs.replace(_tokenize(inputs, documents, progress), finished_before=False)
        tokenized = result.manifest
        steps = ArrangeSteps(inputs, arrangement, pad_id, folder, documents, tokenized, progress)
        steps.metrics = result.measured
        rows = steps.measure()
        if settings.arranging.dry_run:
            parts = [steps.described_part(number) for number in range(len(rows))]
            again, size = ["the same without --dry-run"], tokenized.shards_bytes
            return summary(result, parts, rows, next=again, temporary_bytes=size)
        plans = steps.plans(rows)
        kept = steps.write(plans)
        manifests = steps.finish(plans)
    return summary(
        result,
        [each.arranged for each in manifests if each.arranged is not UNSET],
        [each.totals.documents for each in manifests],
        shards_kept_from_before=kept or None,
        shards=sum(len(manifest.shards) for manifest in manifests),
        shards_bytes=sum(manifest.shards_bytes for manifest in manifests),
    )


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
        restore=partial(restored_parts, inputs.storage, settings.output, parts),
        takeover=_TAKEOVER,
        warn=progress.warn,
    )


def _tokenize(inputs: TokenizeInputs, documents: str, progress: Progress) -> CorpusResult[Manifest]:
    """Tokenize the documents into a temporary folder."""
    format_name, hashes = _kind_of_documents(inputs, documents)
    settings = structs.replace(
        inputs.settings,
        output=documents,
        formats=(format_name,),
        columns=(),
        arranging=ArrangementSettings(),
    )
    job = TokenizeJob(
        structs.replace(inputs, settings=settings, storage=inputs.storage.unsynced, limit=None),
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
    needed = int(shard_format(settings.format).labelled)
    if settings.arranging.validation_share is not None:
        needed = 2
    existing = recorded_job(inputs.storage, documents)
    if existing is not None:
        kind = existing.settings.get("format"), "hashes" in existing.settings
        needed = max([needed, *(at for at, each in enumerate(_KINDS) if each == kind)])
    return _KINDS[needed]


def _summary(
    inputs: TokenizeInputs,
    job: TokenizeJob,
    started: float,
    result: CorpusResult[Manifest],
    parts: Sequence[ArrangedPart],
    rows: Sequence[int],
    **figures: Any,
) -> TokenizeSummary:
    """Return the summary; `rows` are the numbers of documents, or of sequences, of the parts."""
    output, arranging, corpus = inputs.settings.output, inputs.settings.arranging, parts[0].corpus
    assert corpus is not None  # both ways to arrange have set it
    tokens = sum(part.tokens for part in parts)
    documents = sum(part.documents for part in parts)
    changes = corpus.changes or NO_CHANGES
    warnings = [
        *tokenizer_warnings(inputs.encoding),
        *doubled_warnings(inputs.encoding, changes, documents),
        *unmarked_warnings(inputs),
    ]
    if (length := arranging.sequence_length) is not None:
        room = length * sum(rows)
        name = "unfilled" if arranging.pad_token is None else "padding"
        figures |= {"sequences": sum(rows), "sequence_length": length}
        figures |= {name: room - tokens, f"{name}_share": (room - tokens) / room}
    if arranging.validation_share is not None:
        figures["parts"] = {part.part: part.figures for part in parts}
    common = job.summary_rows(
        result,
        totals=CorpusTotals(documents, corpus.rejects, corpus.lost, corpus.sources),
        warnings=warnings,
        next=[command("verify", output)],
    )
    return TokenizeSummary(
        **{
            **common,
            "shards_kept_from_before": None,
            "seconds": round(time.monotonic() - started, 3),
            **figures,
        },
        text_bytes=corpus.text_bytes,
        tokens=tokens,
        bytes_per_token=corpus.text_bytes / tokens,
        sources=source_figures(corpus.sources),
        documents_changed=to_builtins(changes) or UNSET,
    )
