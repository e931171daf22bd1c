"""The mix job: tokens folders to one, with exactly so many tokens of each source."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256

from msgspec import UNSET, Struct, UnsetType, to_builtins

from bpe_beam.engines.run import run_summary
from bpe_beam.errors import require
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import WORK
from bpe_beam.jobs.arranged_shards import restored_parts
from bpe_beam.jobs.corpus.summary import mixed_figures
from bpe_beam.jobs.mix.inputs import read_inputs, read_options
from bpe_beam.jobs.mix.steps import MixSteps
from bpe_beam.jobs.shard_folder_files import inside, write_small_files
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.mix import MixSettings
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import limit_of
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import Manifest, index_names, read_manifest
from bpe_beam.shards.mixture import MixtureOptions, SourcePart
from bpe_beam.shards.mixture_folders import MixedFolders
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.arrange.task import RANKS

Figures = dict[str, object]


class MixSummary(Struct, frozen=True, kw_only=True):
    """The summary of a mixture; a dry run has only the sources, as the manifests describe them.

    Attributes:
        cut: Tokens at the end that fill no sequence.
        unfilled: Tokens for which sequences have room; without a padding token they are shorter.
        parts: The figures of the folders for training and validation.
    """

    job: str = "mix"
    output: str
    was_finished_before: bool | None = None
    warnings: list[str] | None = None
    shards_kept_from_before: int | None = None
    format: str
    sources: dict[str, Figures]
    sequences: int | None = None
    documents: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    cut: int | UnsetType = UNSET
    padding: int | UnsetType = UNSET
    unfilled: int | UnsetType = UNSET
    parts: dict[str, dict[str, int]] | UnsetType = UNSET
    shards: int | UnsetType = UNSET
    shards_bytes: int | UnsetType = UNSET
    seconds: float
    next: Sequence[str]
    runner: str | None = None
    workers: int | None = None


def run(settings: MixSettings, progress: Progress) -> MixSummary:
    """Mix tokens folders."""
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    inputs = read_inputs(settings, storage)
    options = read_options(settings, storage)
    parts = options.parts([*inputs.sizes])
    tables.refuse_too_many(parts, {name: each.tokens for name, each in inputs.sizes.items()})
    format_name = settings.format or inputs.first.format
    _refuse_format(settings, inputs.first, format_name)
    if settings.arranging.dry_run:
        return MixSummary(
            output=settings.output,
            format=format_name,
            sources=_asked(parts, inputs),
            seconds=round(time.monotonic() - started, 3),
            next=["the same without --dry-run"],
        )
    url = storage.join(inputs.folders[0].url, SHARDS_TOKENIZER_FILE)
    tokenizer = Tokenizer.from_json(read_hashed(storage, url, inputs.first.tokenizer.fingerprint))
    pad = settings.arranging.arrangement.pad_token
    require(
        pad is None or tokenizer.token_to_id(pad) is not None,
        f"must be a token of the tokenizer, got {pad!r}",
        "pad_token",
    )
    folder = _claim(settings, inputs, parts, options, format_name, storage, progress)
    kept, finished = 0, folder.finished
    if finished:
        manifests = _finished(settings, folder, tokenizer)
    else:
        folder.write(SHARDS_TOKENIZER_FILE, tokenizer.json_bytes)
        steps = MixSteps(settings, inputs, parts, options, format_name, folder, tokenizer, progress)
        steps.number()
        manifests, kept = steps.write(steps.select())
    return _summary(settings, finished, manifests, kept, time.monotonic() - started)


def _refuse_format(settings: MixSettings, first: Manifest, format_name: str) -> None:
    """Refuse a format that cannot hold the documents, before work is done."""
    format_, arrangement = shard_format(format_name), settings.arranging.arrangement
    require(
        not format_.needs_prepend or first.encoding.get("prepend") is not None,
        f"must not be {format_name}: its readers know a document by the token that it begins with",
        "format",
        remedy="tokenize again with --prepend",
    )
    limit = limit_of([format_])
    require(
        limit is None or arrangement.shard_tokens <= limit.tokens,
        f"must be at most {limit.tokens if limit else 0:,} for shards of {format_name}, got "
        f"{arrangement.shard_tokens:,}",
        "shard_tokens",
    )
    sequences = arrangement.sequence_length is not None
    require_columns(settings.columns, format_name, sequences=sequences)


def _claim(
    settings: MixSettings,
    inputs: MixedFolders,
    parts: Mapping[str, SourcePart],
    options: MixtureOptions,
    format_name: str,
    storage: Storage,
    progress: Progress,
) -> OutputFolder:
    """Return the output folder; its job depends on the documents, the mixture and the order."""
    arrangement, first = settings.arranging.arrangement, inputs.first
    names = (SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, MANIFEST_FILE, *index_names(format_name))
    return claim_folder(
        storage,
        settings.output,
        {
            "job": "mix",
            "manifests": [
                [sha256(manifest.to_bytes()).hexdigest(), folder.source]
                for manifest, folder in zip(inputs.manifests, inputs.folders, strict=True)
            ],
            "tokenizer": first.tokenizer.fingerprint,
            "format": format_name,
            "mixture": to_builtins(parts),
            "seed": options.seed or 0,
            "duplicates": options.duplicates or "keep",
            "identity": options.identity or "auto",
            "arrangement": to_builtins(arrangement),
            **({"columns": list(settings.columns)} if settings.columns else {}),
        },
        [
            *(inside(part, name) for part in arrangement.parts for name in names),
            SHARDS_TOKENIZER_FILE,
            f"{WORK}/{RANKS}",
        ],
        settings.run.overwrite,
        final=inside(arrangement.parts[0], MANIFEST_FILE),
        restore=partial(restored_parts, storage, settings.output, arrangement.parts),
        warn=progress.warn,
    )


def _finished(settings: MixSettings, folder: OutputFolder, tokenizer: Tokenizer) -> list[Manifest]:
    """Return the manifests of a finished folder, with its small files."""
    parts = settings.arranging.arrangement.parts
    urls = [folder.path(part) if part else folder.url for part in parts]
    manifests = [read_manifest(folder.storage, url) for url in urls]
    for part, manifest in zip(parts, manifests, strict=True):
        write_small_files(folder, manifest, tokenizer.json_bytes, part)
    return manifests


def _asked(parts: Mapping[str, SourcePart], inputs: MixedFolders) -> dict[str, Figures]:
    """Return the table of a dry run: what is asked of each source, and what it has."""
    total = sum(part.target for part in parts.values())
    asked: dict[str, Figures] = {
        name: {
            "tokens_to_take": part.target,
            "share": round(part.target / total, 6),
            "skip": part.skip or None,
            "epochs": round(part.target / inputs.sizes[name].tokens, 3),
            "max_epochs": part.max_epochs,
            "documents_there": inputs.sizes[name].documents,
            "tokens_there": inputs.sizes[name].tokens,
        }
        for name, part in parts.items()
    }
    others: dict[str, Figures] = {
        name: {"documents_there": each.documents, "tokens_there": each.tokens}
        for name, each in inputs.sizes.items()
        if name not in parts
    }
    return {**asked, **others}


def _summary(
    settings: MixSettings,
    finished: bool,
    manifests: Sequence[Manifest],
    kept: int,
    seconds: float,
) -> MixSummary:
    first = manifests[0]
    mixture, arranged = first.mixture, first.arranged
    assert mixture
    assert arranged
    length = arranged.settings.sequence_length
    room = 0 if length is None else length * first.totals.documents - first.totals.tokens
    parts = {each.arranged.part: each.arranged.figures for each in manifests if each.arranged}
    output = settings.output
    return MixSummary(
        output=output,
        was_finished_before=finished or None,
        warnings=_warnings(first) or None,
        shards_kept_from_before=kept or None,
        format=first.format,
        sources=mixed_figures(first),
        sequences=first.sequences,
        documents=arranged.documents,
        tokens=arranged.tokens,
        cut=UNSET if length is None else mixture.cut,
        padding=arranged.padding or UNSET,
        unfilled=room or UNSET,
        parts=UNSET if len(parts) == 1 else parts,
        shards=sum(len(each.shards) for each in manifests),
        shards_bytes=sum(each.shards_bytes for each in manifests),
        seconds=round(seconds, 3),
        next=[command("verify", output)],
        **run_summary(settings.run, sum(len(each.shards) for each in manifests)),
    )


def _warnings(manifest: Manifest) -> list[str]:
    """Return warnings of sources that have less than one document to give, or only one."""
    mixture, sizes = manifest.mixture, manifest.texts_by_source
    assert mixture
    warnings = []
    for name, each in mixture.sources.items():
        size = sizes.get(name)
        if size is None:
            warnings.append(f"{name}: no document begins in the {each.target:,} tokens to take")
        elif size.documents == 1 and size.tokens > each.target:
            warnings.append(
                f"{name}: its only document has {size.tokens:,} tokens, more than the "
                f"{each.target:,} to take"
            )
    return warnings
