"""The convert job: folders of shards to one of any format, without tokenizing again.

The shards of one folder keep their splits, plan and rejects, so `verify --full` compares them with
the corpus. Shards that are joined or divided have no plan any more.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from msgspec import UNSET, Struct, json
from msgspec.structs import replace

from bpe_beam.engines.run import run_steps, run_summary
from bpe_beam.engines.steps import Collection, Engine
from bpe_beam.errors import UsageError, require
from bpe_beam.folders import artifact_names, folder_checks
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import (
    OutputFolder,
    RestoredFolder,
    RestoredTask,
    recorded_job,
)
from bpe_beam.folders.receipts import WORK, Publication, side_by_side
from bpe_beam.jobs import shard_folder_files
from bpe_beam.jobs.corpus.summary import Rows, SourceFigures, source_figures
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.convert import ConvertSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import (
    ENCODING,
    NO_PLAN,
    Manifest,
    Rejects,
    index_names,
    kind_of_tokens,
    read_manifest,
    with_files,
)
from bpe_beam.shards.numbering import number_shards, shard_files, shard_name
from bpe_beam.shards.shard_rows import ArrangedPart, manifest_rows, shard_row
from bpe_beam.shards.token_counts import joined_token_counts, read_token_counts, write_token_counts
from bpe_beam.shards.windows import chosen_folders, is_stream
from bpe_beam.storage import Storage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import convert_shard
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
    windows: int | None  # of a stream
    windows_open: int | None
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


def run(settings: ConvertSettings, progress: Progress) -> ConvertSummary:
    """Convert folders of shards."""
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    folder_checks.refuse_twice(settings.folders, "its documents would appear twice")
    folder_checks.refuse_own_folder(settings.output, settings.folders)
    chosen = chosen_folders(storage, settings.folders, readable=True)
    is_of_stream = len(settings.folders) == 1 and is_stream(storage, settings.folders[0])
    conversion = _Conversion(settings, storage, chosen.folders, grows=is_of_stream)
    folder = conversion.claim(progress)
    finished, measured = folder.finished, MetricSums()
    remaining = [each for each in conversion.new if folder.receipt(each.name) is None]
    if not finished:
        conversion.write(folder, remaining, measured, progress)
        conversion.finish(folder)
    manifest = read_manifest(storage, settings.output)
    if finished:
        shard_folder_files.write_small_files(folder, manifest, conversion.tokenizer)
    return ConvertSummary(
        output=settings.output,
        was_finished_before=finished or None,
        warnings=conversion.warnings() or None,
        shards_kept_from_before=len(conversion.new) - len(remaining) or None,
        converted=list(settings.folders),
        windows=conversion.folders if is_of_stream else None,
        windows_open=len(chosen.open) if is_of_stream else None,
        format=manifest.format,
        sequences=manifest.sequences,
        documents=manifest.documents,
        text_bytes=manifest.totals.text_bytes or None,
        tokens=manifest.totals.tokens,
        sources=source_figures(manifest.sources),
        shards=manifest.totals.shards,
        shards_bytes=manifest.shards_bytes,
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", settings.output), command("inspect", settings.output)],
        **run_summary(settings.run, len(conversion.new)),
        **measured.to_json(),
    )


class _Conversion:
    """A conversion: from the checks of its settings to the `new` shards in their folder."""

    def __init__(
        self, settings: ConvertSettings, storage: Storage, folders: list[str], *, grows: bool
    ) -> None:
        self._settings = settings
        self._storage = storage
        folder_checks.refuse_equal(folders, "its documents would appear twice")
        require(
            len(folders) > 1
            or (settings.format, settings.shards, settings.columns) != (None, None, None),
            "are both missing, and one folder is given: nothing would change",
            "format",
            "shards",
            remedy="give {format}, {shards} or {columns}",
        )
        manifests = side_by_side(lambda folder: read_manifest(storage, folder), folders)
        self._left = 0  # the windows that finished after an earlier run had begun
        if grows:
            begun = self._begun_with(manifests)
            self._left = len(folders) - begun
            folders, manifests = folders[:begun], manifests[:begun]
        self.folders = len(folders)
        self._urls, self._manifests = tuple(map(absolute, folders)), manifests
        folder_checks.refuse_unlike(
            folders,
            [{**kind_of_tokens(each, ENCODING), "rows": each.row_kind} for each in manifests],
            "these shards cannot be joined",
            "tokenize with the same settings, or keep the shards in separate folders",
        )
        self._first = first = manifests[0]
        self._joined = len(manifests) > 1
        self._keeps_plan = not self._joined and settings.shards is None
        self._rejects = first.rejects if self._keeps_plan else Rejects({}, ())
        url = storage.join(self._urls[0], artifact_names.SHARDS_TOKENIZER_FILE)
        self.tokenizer = read_hashed(storage, url, first.tokenizer.fingerprint)
        self._format = settings.format or first.format
        self._labelled = shard_format(self._format).labelled
        length = first.arranged.settings.sequence_length if first.arranged else None
        self._sequences = length is not None
        shards = settings.shards
        self.new = (
            convert_shard.same_shards(manifests)
            if shards is None
            else convert_shard.even_shards(manifests, shards)
        )
        encoding = Encoding.of(Tokenizer.from_json(self.tokenizer), **first.encoding)
        self._origin = replace(origin_of(encoding), sequence_length=length)
        self._refuse_format()
        self._origin = replace(self._origin, columns=self._chosen_columns())

    def _begun_with(self, manifests: Sequence[Manifest]) -> int:
        """Return the number of windows that an earlier run has begun with, else of all windows.

        A stream grows while a run is interrupted. The same command resumes with the same windows.
        """
        storage, output = self._storage, self._settings.output
        job = None if self._settings.run.overwrite else recorded_job(storage, output)
        known = [] if job is None else job.settings.get("manifests", [])
        hashes = [sha256(each.to_bytes()).hexdigest() for each in manifests[: len(known)]]
        return len(known) if known and known == hashes else len(manifests)

    def _refuse_format(self) -> None:
        """Refuse a format that cannot hold the documents, before work is done."""
        format_ = shard_format(self._format)
        require(
            bool(self._origin.prepend) or not format_.needs_prepend,
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
        existing = [manifest.columns or () for manifest in self._manifests]
        columns = self._settings.columns
        if columns is None:
            columns = existing[0] if self._labelled else ()
            require(
                not self._labelled or len({*existing}) == 1,
                "must be given, since the folders have different ones",
                "columns",
                remedy="give {columns} none to leave them out",
            )
        require_columns(columns, self._format, sequences=self._sequences)
        bare = self._formats(labelled=False)
        require(
            not (columns and self._sequences and bare),
            f"must not be given for sequences of {bare}, which do not say where documents begin",
            "columns",
            remedy="tokenize with {format} parquet or arrow",
        )
        return columns

    def _formats(self, *, labelled: bool) -> str:
        """Return the formats of the folders that have, or lack, a place for labels."""
        names = {manifest.format for manifest in self._manifests}
        return ", ".join(sorted(n for n in names if shard_format(n).labelled == labelled))

    def warnings(self) -> list[str]:
        """Return what the new shards lack: newer windows, and labels of documents."""
        newer = f"{self._left:,} windows that finished later are not in {self._settings.output}"
        left = [f"{newer}: convert them to another output"] if self._left else []
        return [*left, *self._label_warnings()]

    def _label_warnings(self) -> list[str]:
        """Return what the new shards lack that shards of these formats may have."""
        labelled, bare = self._formats(labelled=True), self._formats(labelled=False)
        what = "the ids, sources and sizes of documents"
        if self._sequences:
            what = "the lengths of the documents in a sequence"
            if bare and self._labelled:
                return [
                    f"{bare} has no place for {what}: they are null in {self._format}, and readers "
                    "cannot tell where documents begin in a sequence, and which tokens are "
                    f"padding; tokenize with --format {self._format} stores them"
                ]
        if not labelled or self._labelled:
            return []
        return [f"{self._format} has no place for {what}, which {labelled} has; they are dropped"]

    # ---- the new folder ----

    def claim(self, progress: Progress) -> OutputFolder:
        """Return the output folder."""
        files = [
            f"{each.name}{suffix}"
            for each in self.new
            for suffix in shard_format(self._format).suffixes
        ]
        columns = self._origin.columns
        return claim_folder(
            self._storage,
            self._settings.output,
            {
                "job": "convert",
                "manifests": [sha256(each.to_bytes()).hexdigest() for each in self._manifests],
                "tokenizer": self._first.tokenizer.fingerprint,
                "format": self._format,
                "shards": self._settings.shards,
                **({"columns": list(columns)} if columns else {}),
            },
            [
                artifact_names.SHARDS_TOKENIZER_FILE,
                artifact_names.TOKEN_COUNTS_FILE,
                *index_names(self._format),
                *(f"{WORK}/{file}" for file in files),
                *files,
                *(file.name for file in self._rejects.files),
            ],
            self._settings.run.overwrite,
            restore=_restore,
            warn=progress.warn,
        )

    def write(
        self,
        folder: OutputFolder,
        shards: Sequence[convert_shard.NewShard],
        measured: MetricSums,
        progress: Progress,
    ) -> None:
        """Write some of the new shards."""
        folder.write(artifact_names.SHARDS_TOKENIZER_FILE, self.tokenizer)
        run = folder.new_run()
        task = convert_shard.ConvertTask(
            folder=run.for_workers(),
            urls=self._urls,
            formats=tuple(manifest.format for manifest in self._manifests),
            shard_format=self._format,
            vocab_size=self._first.tokenizer.vocab_size,
            origin=self._origin,
        )
        needed = {(part.folder, part.name) for each in shards for part in each.slices}
        files = [
            convert_shard.OldFiles(number, shard.files)
            for number, manifest in enumerate(self._manifests)
            for shard in manifest.shards
            if (number, shard.name) in needed
        ]

        def steps(engine: Engine) -> Collection:
            old, new = (
                engine.tasks(label, [json.encode(each).decode() for each in elements])
                for label, elements in (("OldShards", files), ("NewShards", shards))
            )
            checked = engine.run("CheckFiles", partial(convert_shard.check_files, task), old, str)
            return engine.run(
                "WriteShard", partial(convert_shard.convert_shard, task), new, str, checked
            )

        sizes = {each.name: each.tokens for each in shards}
        if shards:
            with progress.stage(convert_shard.STAGE, sum(sizes.values()), "tokens") as stage:
                run_steps(
                    self._settings.run,
                    "Convert",
                    steps,
                    max(len(files), len(shards)),
                    measured,
                    lambda: stage.at_least(sum(sizes.get(n, 0) for n in run.finished_tasks())),
                    min_ram="1GB",
                )
        folder.require_ours()
        folder.take(run, all_files=False)

    def finish(self, folder: OutputFolder) -> None:
        """Give all files their final names, and write the manifest."""
        receipts = folder.all_receipts([each.name for each in self.new])
        written = [receipts[each.name] for each in self.new]
        stats = [receipt.read_stats(convert_shard.ConvertStats) for receipt in written]
        publications = number_shards(written, [each.tokens for each in stats])
        manifest = self._manifest(stats, publications)
        folder.publish(publications)
        shard_folder_files.copy_rejects(folder, self._urls[0], self._rejects.files)
        shard_folder_files.write_small_files(folder, manifest, self.tokenizer)
        counts = self._write_token_counts(folder, manifest)
        manifest = with_files(manifest, self.tokenizer, counts, job=folder.fingerprint)
        folder.finish(artifact_names.MANIFEST_FILE, manifest.to_bytes())

    def _manifest(
        self, stats: Sequence[convert_shard.ConvertStats], publications: Sequence[Publication]
    ) -> Manifest:
        rows = []
        for known, each, publication in zip(self._known(), stats, publications, strict=True):
            files = shard_files(publication.receipt)
            if files:
                known["documents"] = each.documents
            rows.append(shard_row(files, each.tokens, **known))
        first, columns = self._first, self._origin.columns or UNSET
        manifest = replace(first, **manifest_rows(rows), format=self._format, columns=columns)
        if self._keeps_plan:
            return manifest
        manifest = replace(manifest, plan=NO_PLAN, rejects=self._rejects)
        if self._joined or not first.can_be_arranged_again:
            # With the settings of reading, `verify` makes the shards of one corpus again.
            manifest = replace(manifest, settings=first.encoding)
        if not self._joined:
            return manifest
        parts = [each.arranged for each in self._manifests if each.arranged]
        arranged = ArrangedPart.joined(parts) if self._sequences else UNSET
        return replace(manifest, arranged=arranged, mixture=UNSET)

    def _known(self) -> list[Rows]:
        """Return what is known of each new shard before it is written, for its row.

        Divided shards have only their numbers; joined shards belong to no split.
        """
        if self._settings.shards is not None:
            return [{"split": index} for index in range(len(self.new))]
        rows = [row for manifest in self._manifests for row in manifest.rows]
        by_source = all(row.sources is not None for row in rows)
        return [
            {
                "split": index if self._joined else row.split,
                "slices": () if self._joined else row.slices,
                "documents": row.documents,
                "text_bytes": row.text_bytes,
                "rejects": 0 if self._joined else row.rejects,
                "sources": row.sources if by_source else None,
                "changes": row.changes,
            }
            for index, row in enumerate(rows)
        ]

    def _write_token_counts(self, folder: OutputFolder, manifest: Manifest) -> FileInfo | None:
        """Write the token counts of the new shards, if each folder that is read has its own."""
        storage, fingerprint = self._storage, manifest.tokenizer.fingerprint
        counts = [
            read_token_counts(storage, url, fingerprint, each.tokens_by_source, file)
            for url, each in zip(self._urls, self._manifests, strict=True)
            if (file := each.token_counts) is not None
        ]
        if len(counts) < len(self._urls):
            return None
        by_source = None not in manifest.tokens_by_source
        joined = joined_token_counts(counts, by_source=by_source)
        return write_token_counts(storage, folder.url, fingerprint, joined)


def _restore(manifest: bytes) -> RestoredFolder:
    """Return a finished folder, which is repaired if a file is missing or damaged."""
    written = Manifest.from_bytes(manifest)
    rows, rejects = written.rows, written.rejects.files
    tasks = shard_folder_files.restored_files(written) | {
        shard_name(index, len(rows)): RestoredTask(
            row.files, convert_shard.ConvertStats(row.documents if row.files else 0, row.tokens)
        )
        for index, row in enumerate(rows)
    }
    return RestoredFolder(
        written.job_fingerprint or None,
        {**tasks, artifact_names.REJECTS: RestoredTask(rejects, None)},
    )
