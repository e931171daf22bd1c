"""The convert job: folders of shards to one of any format, without tokenizing again.

The shards of one folder keep their splits, plan and rejects, so `verify --full` compares them with
the corpus. Shards that are joined or divided have no plan any more.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Struct
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
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Publication
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.corpus.summary import Rows, SourceFigures, source_figures
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
from bpe_beam.storage.json_file import VERSION
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
from bpe_beam.workers.task_results import MetricSums
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
    sources: SourceFigures | None
    shards: int
    shards_bytes: int
    seconds: float
    next: Sequence[str]
    runner: str | None
    workers: int | None
    counters: dict[str, int] | None
    distributions: dict[str, object] | None


@dataclass(frozen=True)
class _Inputs:
    """The folders that are read.

    Attributes:
        urls: Their absolute names.
        manifests: The manifest of each.
        hashes: The SHA-256 of each manifest.
        tokenizer: The file of the tokenizer that made all their shards.
    """

    urls: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    hashes: tuple[str, ...]
    tokenizer: bytes

    @property
    def first(self) -> Manifest:
        """The manifest of the first folder."""
        return self.manifests[0]

    @property
    def sequence_length(self) -> int | None:
        """The maximum of tokens of a sequence, the same in all folders; None for documents."""
        arranged = self.first.arranged
        return arranged.settings.sequence_length if arranged else None


def run(settings: ConvertSettings, progress: Progress) -> ConvertSummary:
    """Convert folders of shards."""
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    refuse_twice(settings.folders, "its documents would appear twice")
    refuse_own_folder(settings.output, settings.folders)
    conversion = _Conversion(settings, storage, _read(storage, settings.folders))
    folder = conversion.claim(progress)
    measured = MetricSums()
    finished = folder.finished
    kept = [each.name for each in conversion.new if folder.receipt(each.name) is not None]
    if not finished:
        conversion.write(
            folder, [each for each in conversion.new if each.name not in kept], measured, progress
        )
        conversion.finish(folder)
    manifest = read_manifest(storage, settings.output)
    if finished:
        write_small_files(folder, manifest, conversion.inputs.tokenizer)
    return ConvertSummary(
        output=settings.output,
        was_finished_before=finished or None,
        warnings=conversion.warnings() or None,
        shards_kept_from_before=len(kept) or None,
        converted=list(settings.folders),
        format=manifest.format,
        sequences=manifest.sequences,
        documents=manifest.documents,
        text_bytes=manifest.totals.text_bytes or None,
        tokens=manifest.totals.tokens,
        sources=source_figures(manifest.sources),
        shards=manifest.totals.shards,
        shards_bytes=sum(file.bytes for shard in manifest.shards for file in shard.files),
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", settings.output), command("inspect", settings.output)],
        **run_summary(settings.run, len(conversion.new)),
        **measured.to_json(),
    )


def _read(storage: Storage, folders: tuple[str, ...]) -> _Inputs:
    """Return the folders, after a check that their shards can be in one."""
    manifests = tuple(read_manifest(storage, folder) for folder in folders)
    refuse_unlike(
        folders,
        [{**kind_of_tokens(each, ENCODING), "rows": each.row_kind} for each in manifests],
        "these shards cannot be joined",
        "tokenize with the same settings, or keep the shards in separate folders",
    )
    urls = tuple(map(absolute, folders))
    hashes = tuple(hashlib.sha256(manifest.to_bytes()).hexdigest() for manifest in manifests)
    url = storage.join(urls[0], SHARDS_TOKENIZER_FILE)
    tokenizer = read_hashed(storage, url, manifests[0].tokenizer.fingerprint)
    return _Inputs(urls, manifests, hashes, tokenizer)


class _Conversion:
    """A conversion: from the checks of its settings to the new folder.

    Attributes:
        inputs: The folders that are read.
        new: The shards to write.
    """

    def __init__(self, settings: ConvertSettings, storage: Storage, inputs: _Inputs) -> None:
        self._settings = settings
        self._storage = storage
        self.inputs = inputs
        self._format = settings.format or inputs.first.format
        manifests, shards = inputs.manifests, settings.shards
        self.new = same_shards(manifests) if shards is None else even_shards(manifests, shards)
        tokenizer = Tokenizer.from_json(inputs.tokenizer)
        origin = origin_of(Encoding.of(tokenizer, **inputs.first.encoding))
        self._refuse_format(origin)
        self._columns = self._chosen_columns()
        self._origin = replace(
            origin, columns=self._columns, sequence_length=inputs.sequence_length
        )

    def _refuse_format(self, origin: ShardOrigin) -> None:
        """Refuse a format that cannot hold the documents, before work is done."""
        format_ = shard_format(self._format)
        require(
            bool(origin.prepend) or not format_.needs_prepend,
            f"must not be {self._format}: its readers know a document by the token that it begins "
            "with, and these begin with none",
            "format",
            remedy="tokenize again with --prepend",
        )
        limit, largest = format_.max_shard_tokens, max((s.tokens for s in self.new), default=0)
        if limit is not None and largest > limit:
            raise UsageError(
                f"must not be {self._format}: a shard would have {largest:,} tokens, and the "
                f"format allows {limit:,}",
                ("format",),
                "divide the documents with {shards}",
            )

    def _chosen_columns(self) -> tuple[str, ...]:
        """Return the columns for trainers: the columns in the settings, or of the folders."""
        manifests = self.inputs.manifests
        existing = [manifest.columns or () for manifest in manifests]
        columns = self._settings.columns
        if columns is None:
            labelled = _has_labels(self._format)
            columns = existing[0] if labelled else ()
            require(
                not labelled or len({*existing}) == 1,
                "must be given, since the folders have different ones",
                "columns",
                remedy="give {columns} none to leave them out",
            )
        sequences = self.inputs.sequence_length is not None
        require_columns(columns, self._format, sequences=sequences)
        bare = {each.format for each in manifests if not _has_labels(each.format)}
        require(
            not (columns and sequences and bare),
            f"must not be given for sequences of {', '.join(sorted(bare))}, which do not say where "
            "documents begin",
            "columns",
            remedy="tokenize with {format} parquet or arrow",
        )
        return columns

    def warnings(self) -> list[str]:
        """Return what the new shards lack that shards of these formats may have."""
        names: dict[bool, set[str]] = {True: set(), False: set()}
        for manifest in self.inputs.manifests:
            names[_has_labels(manifest.format)].add(manifest.format)
        labelled, bare = (", ".join(sorted(names[has])) for has in (True, False))
        what = "the ids, sources and sizes of documents"
        if self.inputs.sequence_length is not None:
            what = "the lengths of the documents in a sequence"
            if bare and _has_labels(self._format):
                return [
                    f"{bare} has no place for {what}: they are null in {self._format}, and readers "
                    "cannot tell where documents begin in a sequence, and which tokens are "
                    f"padding; tokenize with --format {self._format} stores them"
                ]
        if not labelled or _has_labels(self._format):
            return []
        return [f"{self._format} has no place for {what}, which {labelled} has; they are dropped"]

    # ---- the new folder ----

    def claim(self, progress: Progress) -> OutputFolder:
        """Return the output folder."""
        return claim_folder(
            self._storage,
            self._settings.output,
            {
                "job": "convert",
                "manifests": self.inputs.hashes,
                "tokenizer": self.inputs.first.tokenizer.fingerprint,
                "format": self._format,
                "shards": self._settings.shards,
                **({"columns": list(self._columns)} if self._columns else {}),
            },
            self._names(),
            self._settings.run.overwrite,
            restore=_restore,
            warn=progress.warn,
        )

    def _names(self) -> list[str]:
        """Return the names of all files that the job may write, except the manifest."""
        suffixes = shard_format(self._format).suffixes
        files = [f"{each.name}{suffix}" for each in self.new for suffix in suffixes]
        rejects = [file.name for each in self.new for file in each.rejects]
        names = [SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, *index_names(self._format)]
        return [*names, *(f"{WORK}/{file}" for file in files), *files, *rejects]

    def write(
        self,
        folder: OutputFolder,
        shards: Sequence[NewShard],
        measured: MetricSums,
        progress: Progress,
    ) -> None:
        """Write some of the new shards."""
        folder.write(SHARDS_TOKENIZER_FILE, self.inputs.tokenizer)
        self._storage.make_folder(folder.path(REJECTS))
        run = folder.new_run()
        if shards:
            self._run_steps(run, shards, measured, progress)
        folder.require_ours()
        folder.take(run, all_files=False)

    def _run_steps(
        self, run: RunFolder, shards: Sequence[NewShard], measured: MetricSums, progress: Progress
    ) -> None:
        inputs = self.inputs
        task = ConvertTask(
            folder=run.for_workers(),
            urls=inputs.urls,
            formats=tuple(manifest.format for manifest in inputs.manifests),
            shard_format=self._format,
            vocab_size=inputs.first.tokenizer.vocab_size,
            origin=self._origin,
        )
        needed = {(part.folder, part.name) for each in shards for part in each.slices}
        files = [
            OldFiles(number, shard.files)
            for number, manifest in enumerate(inputs.manifests)
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
                engine.tasks("NewShards", map(_json, shards)),
                str,
                checked,
            )

        sizes = {each.name: each.tokens for each in shards}
        with progress.stage(STAGE, sum(sizes.values()), "tokens") as stage:
            run_steps(
                self._settings.run,
                "Convert",
                steps,
                max(len(files), len(shards)),
                measured,
                lambda: stage.at_least(sum(sizes.get(name, 0) for name in run.finished_tasks())),
                min_ram="1GB",
            )

    def finish(self, folder: OutputFolder) -> None:
        """Give all files their final names, and write the manifest."""
        receipts = folder.all_receipts([each.name for each in self.new])
        written = [receipts[each.name] for each in self.new]
        stats = [receipt.read_stats(ConvertStats) for receipt in written]
        publications = number_shards(written, [each.tokens for each in stats])
        manifest = self._manifest(stats, publications)
        folder.publish(publications)
        self._storage.remove_folder_if_empty(folder.path(REJECTS))
        tokenizer = self.inputs.tokenizer
        write_small_files(folder, manifest, tokenizer)
        token_counts = self._write_token_counts(folder, manifest)
        manifest = with_files(manifest, tokenizer, token_counts, job=folder.fingerprint)
        folder.finish(MANIFEST_FILE, manifest.to_bytes())

    def _manifest(
        self, stats: Sequence[ConvertStats], publications: Sequence[Publication]
    ) -> Manifest:
        inputs, joined = self.inputs, len(self.inputs.manifests) > 1
        shards: list[Shard] = []
        tokenless: list[TokenlessSplit] = []
        for row, each, publication in zip(self._rows(), stats, publications, strict=True):
            files = shard_files(publication.receipt)
            if files:
                name = files[0].name.partition(".")[0]
                counts = {"documents": each.documents, "tokens": each.tokens}
                shards.append(Shard(**{**row, **counts, "name": name, "files": files}))
            else:
                tokenless.append(TokenlessSplit(**row))
        manifest = replace(
            inputs.first,
            format=self._format,
            version=VERSION,
            shards=tuple(shards),
            tokenless=tuple(tokenless),
            totals=Totals.of(shards, tokenless),
            columns=self._columns or UNSET,
        )
        if not joined and self._settings.shards is None:
            return manifest
        manifest = replace(manifest, plan=NO_PLAN, rejects=Rejects({}, ()))
        if joined or not inputs.first.can_be_arranged_again:
            # With the settings of reading, `verify` makes the shards of one corpus again.
            manifest = replace(manifest, settings=inputs.first.encoding)
        if not joined:
            return manifest
        arranged = [each.arranged for each in inputs.manifests if each.arranged]
        sequences = inputs.sequence_length is not None
        return replace(manifest, arranged=ArrangedPart.joined(arranged) if sequences else UNSET)

    def _rows(self) -> list[Rows]:
        """Return what `Shard` and `TokenlessSplit` share, for each new shard.

        Divided shards have only their numbers; joined shards belong to no split.
        """
        if self._settings.shards is not None:
            return [_row(index) for index in range(len(self.new))]
        rows = [row for manifest in self.inputs.manifests for row in manifest.rows]
        by_source = all(row.sources is not None for row in rows)
        joined = len(self.inputs.manifests) > 1
        return [
            _row(
                index if joined else row.split,
                slices=() if joined else row.slices,
                documents=row.documents,
                text_bytes=row.text_bytes,
                rejects=0 if joined else row.rejects,
                sources=row.sources if by_source else None,
                changes=row.changes,
            )
            for index, row in enumerate(rows)
        ]

    def _write_token_counts(self, folder: OutputFolder, manifest: Manifest) -> FileInfo | None:
        """Write the token counts of the new shards, if each folder that is read has its own."""
        storage, fingerprint, inputs = self._storage, manifest.tokenizer.fingerprint, self.inputs
        counts = [
            read_token_counts(storage, url, fingerprint, each.tokens_by_source, file)
            for url, each in zip(inputs.urls, inputs.manifests, strict=True)
            if (file := each.token_counts) is not None
        ]
        if len(counts) < len(inputs.urls):
            return None
        by_source = None not in manifest.tokens_by_source
        joined = joined_token_counts(counts, by_source=by_source)
        return write_token_counts(storage, folder.url, fingerprint, joined)


def _row(split: int, **known: Any) -> Rows:
    """Return the fields that `Shard` and `TokenlessSplit` share; unknown numbers are 0."""
    unknown = {"slices": (), "documents": 0, "text_bytes": 0, "rejects": 0}
    return {"split": split, **unknown, **known}


def _restore(manifest: bytes) -> RestoredFolder:
    """Return a finished folder, which is repaired if a file is missing or damaged."""
    written = Manifest.from_bytes(manifest)
    rows = list(zip(written.rows, rejects_of(written), strict=True))
    tasks = restored_files(written) | {
        shard_name(index, len(rows)): RestoredTask(
            (*row.files, *rejects), ConvertStats(row.documents if row.files else 0, row.tokens)
        )
        for index, (row, rejects) in enumerate(rows)
    }
    return RestoredFolder(written.job_fingerprint or None, tasks)


def _has_labels(format_name: str) -> bool:
    return shard_format(format_name).labelled_writer is not None


def _json(value: Struct) -> str:
    return msgspec.json.encode(value).decode()
