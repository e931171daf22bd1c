"""The convert job: folders of shards to one of any format, without tokenizing again.

The shards of one folder keep their splits, plan and rejects: `verify --full` proves them as it
proves those of `tokenize`. Shards that are joined or divided are not those of a plan any more.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bpe_beam.engines.run import run_steps, run_summary
from bpe_beam.engines.steps import Collection, Engine
from bpe_beam.errors import UsageError, require
from bpe_beam.folders.artifact_names import (
    MANIFEST_FILE,
    REJECTS,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.corpus.summary import shard_source_facts
from bpe_beam.jobs.input_folders import (
    kind_of_tokens,
    refuse_own_folder,
    refuse_twice,
    refuse_unlike,
    restored_files,
    write_small_files,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.convert import ConvertSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import (
    ENCODING,
    NO_PLAN,
    VERSION,
    Manifest,
    Rejects,
    index_names,
    read_manifest,
    with_files,
)
from bpe_beam.shards.numbering import number_shards, shard_files, shard_name
from bpe_beam.shards.shard_rows import ArrangedPart, Shard, TokenlessSplit, Totals
from bpe_beam.shards.token_counts import (
    joined_token_counts,
    read_token_counts,
    write_token_counts,
)
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.convert_shard import (
    STAGE,
    ConvertStats,
    ConvertTask,
    NewShard,
    OldFiles,
    check_files,
    convert_shard,
    even_shards,
    rejects_of,
    same_shards,
)
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.measured import Measured
from bpe_beam.workers.tokenize_split import origin_of


class ConvertSummary(Struct, frozen=True, kw_only=True):
    """The summary of a conversion."""

    job: str = "convert"
    output: str
    was_finished_before: bool | None
    warnings: list[str] | None
    shards_kept_from_before: int | None
    converted: list[str]
    format: str
    sequences: int | None
    documents: int
    text_bytes: int | None
    tokens: int
    sources: dict[str, dict[str, Any]] | None
    shards: int
    shards_bytes: int
    seconds: float
    next: Sequence[str]
    runner: str | None
    workers: int | None
    counters: dict[str, int] | None
    distributions: dict[str, Any] | None


@dataclass(frozen=True)
class _Old:
    """The folders that are read, with the manifest and its SHA-256 of each."""

    urls: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    hashes: tuple[str, ...]

    @property
    def first(self) -> Manifest:
        """The manifest of the first folder."""
        return self.manifests[0]


def run(settings: ConvertSettings, progress: Progress) -> ConvertSummary:
    """Convert folders of shards.

    Returns:
        The summary.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    refuse_twice(settings.folders, "its documents would be there twice")
    refuse_own_folder(settings.output, settings.folders)
    old = _read(storage, settings.folders)
    format_name = settings.format or old.first.format
    shards = settings.shards
    new = same_shards(old.manifests) if shards is None else even_shards(old.manifests, shards)
    tokenizer = _tokenizer(storage, old)
    origin = origin_of(Encoding.of(Tokenizer.from_json(tokenizer), **old.first.encoding))
    _refuse_format(format_name, origin, new)
    columns = _columns(settings, old, format_name)
    folder = OutputFolder.claim(
        storage,
        settings.output,
        {
            "job": "convert",
            "manifests": old.hashes,
            "tokenizer": old.first.tokenizer.fingerprint,
            "format": format_name,
            "shards": shards,
            **({"columns": list(columns)} if columns else {}),
        },
        _names(format_name, new),
        settings.run.overwrite,
        restore=_restore,
        warn=progress.warn,
    )
    finished = folder.finished
    kept = [each.name for each in new if folder.receipt(each.name) is not None]
    measured = Measured()
    if not finished:
        folder.write(SHARDS_TOKENIZER_FILE, tokenizer)
        storage.make_folder(folder.path(REJECTS))
        left = [each for each in new if each.name not in kept]
        job = folder.new_run()
        if left:
            task = _task(job, old, format_name, replace(origin, columns=columns))
            _convert(settings, task, old, left, job, measured, progress)
        folder.require_ours()
        folder.take(job, all_files=False)
        receipts = folder.all_receipts([each.name for each in new])
        found = [receipts[each.name] for each in new]
        _finish(folder, format_name, old, found, columns, shards is None, tokenizer)
    manifest = read_manifest(storage, settings.output)
    if finished:
        write_small_files(folder, manifest, tokenizer)
    return ConvertSummary(
        output=settings.output,
        was_finished_before=finished or None,
        warnings=_warnings(format_name, old) or None,
        shards_kept_from_before=len(kept) or None,
        converted=list(settings.folders),
        format=format_name,
        sequences=manifest.sequences,
        documents=manifest.documents,
        text_bytes=manifest.totals.text_bytes or None,
        tokens=manifest.totals.tokens,
        sources=shard_source_facts(manifest.sources),
        shards=manifest.totals.shards,
        shards_bytes=sum(file.bytes for shard in manifest.shards for file in shard.files),
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", settings.output), command("inspect", settings.output)],
        **run_summary(settings.run, len(new)),
        **measured.to_json(),
    )


def _read(storage: Storage, folders: tuple[str, ...]) -> _Old:
    """Return the folders, after a check that their shards can be in one."""
    manifests = tuple(read_manifest(storage, folder) for folder in folders)
    refuse_unlike(
        folders,
        [_kind(manifest) for manifest in manifests],
        "these shards cannot be joined",
        "tokenize with the same settings, or keep the shards in folders of their own",
    )
    return _Old(
        tuple(map(absolute, folders)),
        manifests,
        tuple(hashlib.sha256(manifest.to_bytes()).hexdigest() for manifest in manifests),
    )


def _kind(manifest: Manifest) -> dict[str, Any]:
    """Return what shards that are joined must share."""
    return {
        **kind_of_tokens(manifest, ENCODING),
        "rows": manifest.row_kind,
    }


def _refuse_format(format_name: str, origin: ShardOrigin, new: Sequence[NewShard]) -> None:
    """Refuse a format that cannot hold the documents, before work is done."""
    format_ = shard_format(format_name)
    require(
        bool(origin.prepend) or not format_.needs_prepend,
        f"must not be {format_name}: its readers know a document by the token that it begins with, "
        "and these begin with none",
        "format",
        remedy="tokenize again with --prepend",
    )
    most, largest = format_.max_shard_tokens, max((each.tokens for each in new), default=0)
    if most is not None and largest > most:
        raise UsageError(
            f"must not be {format_name}: a shard would have {largest:,} tokens, and the format "
            f"allows {most:,}",
            ("format",),
            "divide the documents with {shards}",
        )


def _columns(settings: ConvertSettings, old: _Old, format_name: str) -> tuple[str, ...]:
    """Return the columns for trainers: those that are asked for, or those of the folders."""
    found = [manifest.columns or () for manifest in old.manifests]
    columns = settings.columns
    if columns is None:
        columns = found[0] if _has_labels(format_name) else ()
        require(
            not _has_labels(format_name) or len({*found}) == 1,
            "must be given, since the folders have different ones",
            "columns",
            remedy="give {columns} none to leave them out",
        )
    sequences = _sequence_length(old) is not None
    require_columns(columns, format_name, sequences=sequences)
    bare = [manifest.format for manifest in old.manifests if not _has_labels(manifest.format)]
    require(
        not (columns and sequences and bare),
        f"must not be given for sequences of {', '.join(sorted({*bare}))}, which do not say where "
        "documents begin",
        "columns",
        remedy="tokenize with {format} parquet or arrow",
    )
    return columns


def _tokenizer(storage: Storage, old: _Old) -> bytes:
    """Return the tokenizer's file, which must be the one that made the shards."""
    url = storage.join(old.urls[0], SHARDS_TOKENIZER_FILE)
    return read_hashed(storage, url, old.first.tokenizer.fingerprint)


def _names(format_name: str, new: Sequence[NewShard]) -> list[str]:
    """Return the names of all files that the job may write, but for the manifest."""
    suffixes = shard_format(format_name).suffixes
    files = [f"{each.name}{suffix}" for each in new for suffix in suffixes]
    rejects = [file.name for each in new for file in each.rejects]
    names = [SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, *index_names(format_name)]
    return [*names, *(f"{WORK}/{file}" for file in files), *files, *rejects]


def _restore(manifest: bytes) -> RestoredFolder:
    """Return a finished folder, which is repaired if a file is missing or damaged."""
    found = Manifest.from_bytes(manifest)
    rows = list(zip(found.rows, rejects_of(found), strict=True))
    tasks = restored_files(found) | {
        shard_name(index, len(rows)): RestoredTask(
            (*row.files, *rejects), ConvertStats(row.documents if row.files else 0, row.tokens)
        )
        for index, (row, rejects) in enumerate(rows)
    }
    return RestoredFolder(found.job_fingerprint or None, tasks)


def _task(run: RunFolder, old: _Old, format_name: str, origin: ShardOrigin) -> ConvertTask:
    return ConvertTask(
        folder=run.for_workers(),
        urls=old.urls,
        formats=tuple(manifest.format for manifest in old.manifests),
        shard_format=format_name,
        vocab_size=old.first.tokenizer.vocab_size,
        origin=replace(origin, sequence_length=_sequence_length(old)),
    )


def _sequence_length(old: _Old) -> int | None:
    """Return the most tokens of a sequence, the same in all folders; None of documents."""
    part = old.first.arranged
    return part.settings.sequence_length if part else None


def _arranged(old: _Old) -> ArrangedPart | UnsetType:
    """Return what the manifest of several folders says of their sequences; UNSET of documents."""
    parts = [part for manifest in old.manifests if (part := manifest.arranged)]
    return UNSET if _sequence_length(old) is None else ArrangedPart.joined(parts)


def _convert(
    settings: ConvertSettings,
    task: ConvertTask,
    old: _Old,
    left: Sequence[NewShard],
    run: RunFolder,
    measured: Measured,
    progress: Progress,
) -> None:
    """Write the shards that are left."""
    needed = {(part.folder, part.name) for each in left for part in each.parts}
    files = [
        OldFiles(number, shard.files)
        for number, manifest in enumerate(old.manifests)
        for shard in manifest.shards
        if (number, shard.name) in needed
    ]

    def steps(engine: Engine) -> Collection:
        checked = engine.run(
            "CheckFiles",
            partial(check_files, task),
            engine.tasks("OldShards", map(_json, files)),
            str,
        )
        return engine.run(
            "WriteShard",
            partial(convert_shard, task),
            engine.tasks("NewShards", map(_json, left)),
            str,
            checked,
        )

    sizes = {each.name: each.tokens for each in left}
    with progress.stage(STAGE, sum(sizes.values()), "tokens") as stage:
        run_steps(
            settings.run,
            "Convert",
            steps,
            max(len(files), len(left)),
            measured,
            lambda: stage.at_least(sum(sizes.get(name, 0) for name in run.finished_tasks())),
            min_ram="1GB",
        )


def _json(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def _finish(
    folder: OutputFolder,
    format_name: str,
    old: _Old,
    receipts: list[Receipt],
    columns: tuple[str, ...],
    same: bool,
    tokenizer: bytes,
) -> None:
    """Give all files their final names, and write the manifest."""
    stats = [receipt.read_stats(ConvertStats) for receipt in receipts]
    publications = number_shards(receipts, [each.tokens for each in stats])
    rows = _rows(old.manifests) if same else [_row(index) for index in range(len(receipts))]
    shards: list[Shard] = []
    tokenless: list[TokenlessSplit] = []
    for row, found, publication in zip(rows, stats, publications, strict=True):
        files = shard_files(publication.receipt)
        if files:
            name = files[0].name.partition(".")[0]
            counts = {"documents": found.documents, "tokens": found.tokens}
            shards.append(Shard(**{**row, **counts, "name": name, "files": files}))
        else:
            tokenless.append(TokenlessSplit(**row))
    changed: dict[str, Any] = {
        "format": format_name,
        "version": VERSION,
        "shards": tuple(shards),
        "tokenless": tuple(tokenless),
        "totals": Totals.of(shards, tokenless),
        "columns": columns or UNSET,
    }
    if not same or len(old.manifests) > 1:
        changed |= {"plan": NO_PLAN, "rejects": Rejects({}, ())}
        # With those of reading, `verify` makes the shards of one corpus again.
        if len(old.manifests) > 1 or not old.first.can_be_arranged_again:
            changed["settings"] = old.first.encoding
    if len(old.manifests) > 1:
        changed["arranged"] = _arranged(old)
    manifest = replace(old.first, **changed)
    folder.publish(publications)
    folder.storage.remove_folder_if_empty(folder.path(REJECTS))
    write_small_files(folder, manifest, tokenizer)
    token_counts = _write_token_counts(folder, old, manifest)
    manifest = with_files(manifest, tokenizer, token_counts, job=folder.fingerprint)
    folder.finish(MANIFEST_FILE, manifest.to_bytes())


def _write_token_counts(folder: OutputFolder, old: _Old, manifest: Manifest) -> FileInfo | None:
    """Write the token counts of the new shards, if each folder that is read has its own."""
    storage, fingerprint = folder.storage, manifest.tokenizer.fingerprint
    parts = [
        read_token_counts(storage, url, fingerprint, each.tokens_by_source, file)
        for url, each in zip(old.urls, old.manifests, strict=True)
        if (file := each.token_counts) is not None
    ]
    if len(parts) < len(old.urls):
        return None
    by_source = None not in manifest.tokens_by_source
    return write_token_counts(
        storage, folder.url, fingerprint, joined_token_counts(parts, by_source=by_source)
    )


def _rows(manifests: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Return what is known of the rows of all folders, in their order."""
    rows = [row for manifest in manifests for row in manifest.rows]
    by_source = all(row.sources is not None for row in rows)
    one = len(manifests) == 1
    return [
        _row(
            row.split if one else index,
            slices=row.slices if one else (),
            documents=row.documents,
            text_bytes=row.text_bytes,
            rejects=row.rejects if one else 0,
            sources=row.sources if by_source else None,
            changes=row.changes,
        )
        for index, row in enumerate(rows)
    ]


def _row(index: int, **known: Any) -> dict[str, Any]:
    """Return the fields that `Shard` and `TokenlessSplit` share; 0 where nobody knows more."""
    unknown = {"slices": (), "documents": 0, "text_bytes": 0, "rejects": 0}
    return {"split": index, **unknown, **known}


def _warnings(format_name: str, old: _Old) -> list[str]:
    """Return what the new shards lack that shards of these formats may have."""
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for manifest in old.manifests:
        names[_has_labels(manifest.format)].add(manifest.format)
    labelled, bare = (", ".join(sorted(names[has])) for has in (True, False))
    what = "the ids, sources and sizes of documents"
    if _sequence_length(old) is not None:
        what = "the lengths of the documents in a sequence"
        if bare and _has_labels(format_name):
            return [
                f"{bare} has no place for {what}: they are null in {format_name}, and readers "
                "cannot tell where documents begin in a sequence, and which tokens are padding; "
                f"tokenize with --format {format_name} stores them"
            ]
    if not labelled or _has_labels(format_name):
        return []
    return [f"{format_name} has no place for {what}, which {labelled} has; they are left out"]


def _has_labels(format_name: str) -> bool:
    return shard_format(format_name).labelled_writer is not None
