"""The tokenize job: a corpus and a tokenizer to a folder of token shards."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from threading import Timer
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec import UNSET, structs, to_builtins

from bpe_beam.corpus.plan import Plan
from bpe_beam.engines.run import run_summary
from bpe_beam.engines.steps import Steps
from bpe_beam.errors import DataError, require
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Receipt
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus.job import CorpusJob, CorpusSummary, SplitsLeft, TemplateSummary
from bpe_beam.jobs.corpus.summary import inputs_summary, losses_summary, shard_source_facts
from bpe_beam.jobs.input_folders import restored_files, write_small_files
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardLimit, limit_of
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import (
    ENCODING,
    Manifest,
    index_names,
    read_manifest,
    with_files,
)
from bpe_beam.shards.numbering import shard_name, token_counts_file
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.shards.token_counts import write_token_counts
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import metric_names
from bpe_beam.workers.corpus_totals import CorpusTotals
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.shard_manifest import final_names, manifest_of
from bpe_beam.workers.shard_manifest import plan_of as manifest_plan
from bpe_beam.workers.split_stats import SplitReading
from bpe_beam.workers.split_task import rejects_name
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import TokenizeStats, TokenizeTask, origin_of, tokenize_split

if TYPE_CHECKING:
    from bpe_beam.jobs.dry_run import Estimate
    from bpe_beam.jobs.tokenize.arrange import Arranged

_IMPORT_AFTER = 0.05
"""The seconds after which the tasks of a job have begun to encode."""


def run(
    settings: TokenizeSettings,
    progress: Progress,
    *,
    limit: ShardLimit | None = None,
    plan: Plan | None = None,
) -> CorpusSummary | TemplateSummary | Estimate:
    """Tokenize a corpus."""
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(settings))
    for format_name in settings.formats:
        require_frame(format_name, encoding)
        sequences = settings.arranging.sequence_length is not None
        require_columns(settings.columns, format_name, sequences=sequences)
    _require_shard_tokens(settings)
    plan = plan or corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    if settings.arranging.dry_run and settings.arranging.arrangement is None:
        from bpe_beam.jobs.dry_run import estimate_tokenizing

        return estimate_tokenizing(plan, settings)
    if len(settings.formats) > 1:
        # Imports that one format does not need.
        from bpe_beam.jobs.tokenize.several_formats import tokenize_to_each

        return tokenize_to_each(
            settings,
            progress,
            lambda one, most: cast(CorpusSummary, run(one, progress, limit=most, plan=plan)),
        )
    if settings.arranging.arrangement is not None:
        return _arrange(settings, storage, plan, tokenizer, encoding, progress)
    return _TokenizeJob(settings, storage, plan, tokenizer, encoding, limit=limit).run(progress)


def _require_shard_tokens(settings: TokenizeSettings) -> None:
    """Refuse shards of more tokens than a format can count, before work is done."""
    arrangement = settings.arranging.arrangement
    limit = limit_of(map(shard_format, settings.formats))
    if arrangement is not None and limit is not None:
        require(
            arrangement.shard_tokens <= limit.tokens,
            f"must be at most {limit.tokens:,} for shards of {', '.join(settings.formats)}, got "
            f"{arrangement.shard_tokens:,}",
            "shard_tokens",
        )


def require_frame(format_name: str, encoding: Encoding) -> None:
    """Refuse documents that begin with no token for a format that needs one."""
    begins = bool(encoding.frame(encoding.tokenizer())[0])
    require(
        begins or not shard_format(format_name).needs_prepend,
        f"must be given for shards of {format_name}, whose readers know a document by the token "
        "that it begins with",
        "prepend",
        remedy="give the end-of-text token, such as <|endoftext|>",
    )


def _arrange(
    settings: TokenizeSettings,
    storage: Storage,
    plan: Plan,
    tokenizer: Tokenizer,
    encoding: Encoding,
    progress: Progress,
) -> CorpusSummary:
    """Tokenize the corpus, and arrange the documents."""
    # Imports that documents in the order of the corpus do not need.
    from bpe_beam.jobs.tokenize.arrange import ArrangeJob, arrange

    started = time.monotonic()

    outer = _TokenizeJob(settings, storage, plan, tokenizer, encoding)
    outer.needs_ids = settings.arranging.validation_by == "id"
    outer.check_input(progress)

    def tokenize(inner: TokenizeSettings, hashes: bool) -> CorpusSummary:
        # The folder of documents is temporary.
        job = _TokenizeJob(inner, storage.unsynced, plan, tokenizer, encoding, hashes=hashes)
        job.for_another = True
        summary = job.run(progress)
        assert isinstance(summary, CorpusSummary)
        encoding.tokenizer().clear_cache()  # nothing is encoded from here on
        return summary

    found = arrange(
        ArrangeJob(
            settings,
            storage,
            {**outer.identity, **corpus_input.identity(settings.input, plan)},
            tokenizer,
            encoding,
            origin_of(encoding, settings.columns),
            plan,
            tokenize,
            progress,
        )
    )
    unmarked = _unmarked_warnings(settings, tokenizer, encoding)
    return _arranged_summary(settings, plan, encoding, found, unmarked, time.monotonic() - started)


def framing(settings: TokenizeSettings) -> dict[str, Any]:
    """Return the settings of encoding, as `__job` and the manifest have them."""
    return {key: value for key, value in identity_of(settings).items() if key in ENCODING}


def tokenizer_warnings(encoding: Encoding) -> list[str]:
    """Return what to tell the user of a tokenizer and the tokens around documents."""
    tokenizer = encoding.tokenizer()
    warnings = [*filter(None, (tokenizer.spec.warning, tokenizer.file_warning))]
    if encoding.left_out is not None:
        remedy = "give --add-special-tokens for these, or --prepend and --append"
        warnings.append(f"{encoding.left_out}: {remedy}")
    return warnings


def _unmarked_warnings(
    settings: TokenizeSettings, tokenizer: Tokenizer, encoding: Encoding
) -> list[str]:
    """Return a warning if sequences do not show where a document ends, and the tokenizer could."""
    end = tokenizer.roles.get("eos_token")
    if settings.arranging.sequence_length is None or end is None or any(encoding.frame(tokenizer)):
        return []
    return [
        f"sequences do not show where a document ends: {end} is the tokenizer's eos_token; give "
        f"{shlex.join(['--append', end])} to put it after each document"
    ]


def doubled_warnings(encoding: Encoding, changes: DocumentChanges, documents: int) -> list[str]:
    """Return what to tell the user of tokens around documents that texts have too."""
    return [*filter(None, (encoding.doubled_warning(changes.doubled, documents),))]


def _arranged_summary(
    settings: TokenizeSettings,
    plan: Plan,
    encoding: Encoding,
    found: Arranged,
    unmarked: list[str],
    seconds: float,
) -> CorpusSummary:
    """Return the summary of a tokenization whose documents were arranged."""
    tokens = sum(part.tokens for part in found.parts)
    rows: dict[str, Any] = {
        "output": settings.output,
        "was_finished_before": found.was_finished_before or None,
        "shards_kept_from_before": found.kept or None,
        "documents": sum(part.documents for part in found.parts),
        "tokens": tokens,
        "seconds": round(seconds, 3),
    }
    if found.manifests:
        shards = [shard for manifest in found.manifests for shard in manifest.shards]
        rows["shards"] = len(shards)
        rows["shards_bytes"] = sum(file.bytes for shard in shards for file in shard.files)
    length = settings.arranging.sequence_length
    if length is not None:
        room = length * sum(found.units)
        rows["sequences"] = sum(found.units)
        rows["sequence_length"] = length
        # Without a padding token sequences are shorter.
        name = "unfilled" if settings.arranging.pad_token is None else "padding"
        rows[name] = room - tokens
        rows[f"{name}_share"] = (room - tokens) / room
    if settings.arranging.validation_share is not None:
        rows["parts"] = {part.part: part.figures for part in found.parts}
    rows["next"] = [command("verify", settings.output)]
    if settings.arranging.dry_run and not found.manifests:
        rows |= {"shards": UNSET, "shards_bytes": UNSET, "next": ["the same without --dry-run"]}
        if found.tokenized is not None:  # the documents, which stay in the folder
            rows["temporary_bytes"] = found.tokenized.shards_bytes
    if found.tokenized is not None:
        rows["warnings"] = [*(found.tokenized.warnings or ()), *unmarked] or None
        tokenized: CorpusSummary = structs.replace(found.tokenized, **rows)
        return tokenized
    corpus = found.parts[0].corpus
    assert corpus is not None  # `arrange` has read it
    warnings = [*tokenizer_warnings(encoding), *unmarked]
    if corpus.changes is not None:
        warnings += doubled_warnings(encoding, corpus.changes, rows["documents"])
    return CorpusSummary(
        job="tokenize",
        warnings=warnings or None,
        **inputs_summary(plan, []),
        text_bytes=corpus.text_bytes,
        bytes_per_token=corpus.text_bytes / tokens,
        sources=shard_source_facts(corpus.sources),
        rejects=sum(corpus.rejects.values()),
        rejects_by_reason=corpus.rejects or None,
        documents_changed=to_builtins(corpus.changes) or UNSET,
        lost=losses_summary(corpus.lost),
        **run_summary(settings.run, len(plan.splits)),
        text_bytes_per_second=None,
        counters=None,
        distributions=None,
        **rows,
    )


class _TokenizeJob(CorpusJob[TokenizeSettings, Manifest]):
    """Makes a shard of each split with tokens."""

    name = "tokenize"
    kind = "shard"
    made = "shards"
    stats: ClassVar = TokenizeStats
    text_counter = metric_names.TEXT_BYTES_TOKENIZED
    min_ram = "1GB"
    spare = 2  # with two, a core rarely waits while tasks flush their shards

    def __init__(
        self,
        settings: TokenizeSettings,
        storage: Storage,
        plan: Plan,
        tokenizer: Tokenizer,
        encoding: Encoding,
        *,
        hashes: bool = False,
        limit: ShardLimit | None = None,
    ) -> None:
        super().__init__(settings, storage, plan)
        own = limit_of([shard_format(settings.format)])
        self._limit = None if limit == own else limit
        self._tokenizer = tokenizer
        self._encoding = encoding
        self._hashes = hashes
        self.holds_gil = tokenizer.holds_gil
        self.needs_ids = shard_format(settings.format).labelled_writer is not None
        self.identity = {
            "tokenizer": tokenizer.fingerprint,
            "format": settings.format,
            **framing(settings),
            **({"hashes": ["id", "text"]} if hashes else {}),
            **({"shard_limit": to_builtins(self._limit)} if self._limit else {}),
            **({"columns": list(settings.columns)} if settings.columns else {}),
        }
        shards = [shard_name(split.index, len(plan.splits)) for split in plan.splits]
        suffixes = shard_format(settings.format).suffixes
        files = [f"{shard}{suffix}" for shard in shards for suffix in suffixes]
        # The final names are these where every split has tokens; see `OutputFolder.publish`.
        self.names = [
            SHARDS_TOKENIZER_FILE,
            TOKEN_COUNTS_FILE,
            *index_names(settings.format),
            *(token_counts_name(shard) for shard in shards),
            *(f"{WORK}/{file}" for file in files),
            *files,
        ]
        output = settings.output
        self.next_commands = [command("verify", output), command("inspect", output)]
        self.warnings = tokenizer_warnings(encoding)

    @staticmethod
    def restore(manifest: bytes) -> RestoredFolder:
        found = Manifest.from_bytes(manifest)
        plan = manifest_plan(found, "")
        rejects = {file.name: file for file in found.rejects.files}
        tasks = restored_files(found)
        for split, rows in zip(plan.splits, found.by_split, strict=True):
            rejected = rejects.get(rejects_name(split.index, len(plan.splits)))
            files = tuple(file for row in rows for file in row.files)
            reading = SplitReading.restored(split)
            # The manifest has the sum of reject reasons only: a split with rejects is read again.
            tasks[shard_name(split.index, len(plan.splits))] = RestoredTask(
                files if rejected is None else (*files, rejected),
                TokenizeStats.of_rows(reading, rows) if rejected is None else None,
            )
        return RestoredFolder(found.job_fingerprint or None, tasks)

    @staticmethod
    def run_from(settings: TokenizeSettings, progress: Progress) -> object:
        return run(settings, progress)

    def prepare(self) -> None:
        folder, data = self.folder, self._tokenizer.json_bytes
        if folder.finished:
            write_small_files(folder, read_manifest(self.storage, folder.url), data)
        else:
            folder.write(SHARDS_TOKENIZER_FILE, data)

    def steps(self, left: SplitsLeft) -> Steps | None:
        if not left.tasks:
            return None
        task = TokenizeTask(
            folder=left.run.for_workers(),
            reading=corpus_input.read_settings(self.settings.input),
            encoding=self._encoding.kept_at(self.storage, self.folder.path(SHARDS_TOKENIZER_FILE)),
            splits=len(left.plan.splits),
            shard_format=self.settings.format,
            count_tokens=True,
            hashes=self._hashes,
            columns=self.settings.columns,
            limit=self._limit,
        )
        id_columns(self._tokenizer)  # or each thread would make them
        # What `publish` writes with is slow to import: beside the tasks, nobody waits for it. They
        # need Python at their start, native code from then on.
        later = Timer(_IMPORT_AFTER, import_module, args=("pyarrow.parquet",))
        later.daemon = True
        later.start()
        return lambda engine: engine.run(
            "TokenizeSplit",
            partial(tokenize_split, task),
            engine.tasks("Splits", left.tasks),
            str,
        )

    def worker_settings(self) -> TokenizeSettings:
        return replace(self.settings, tokenizer=self.folder.path(SHARDS_TOKENIZER_FILE))

    def manifest(self, plan: Plan, splits: list[Receipt], merged: list[Receipt]) -> Manifest:
        settings = {**framing(self.settings), **identity_of(self.settings.input)}
        manifest = manifest_of(plan, splits, self._tokenizer, settings, self.settings.format)
        return structs.replace(manifest, columns=self.settings.columns or UNSET)

    def publish(self, manifest: Manifest, splits: list[Receipt], merged: list[Receipt]) -> bytes:
        counts = self._write_token_counts(manifest, splits)
        self.folder.publish(final_names(splits))
        data = self._tokenizer.json_bytes
        write_small_files(self.folder, manifest, data)
        return with_files(manifest, data, counts, job=self.folder.fingerprint).to_bytes()

    def _done(self, receipt: Callable[[str], Receipt | None], plan: Plan) -> dict[int, Receipt]:
        """See `CorpusJob`; a split without token counts is done only if the folder has their sums.

        A folder that is repaired may have the sums, and no longer those of splits.
        """
        done = super()._done(receipt, plan)
        if all(token_counts_file(found) for found in done.values()):
            return done
        if self.folder.restored and self._restored_sums is not None:
            return done
        return {index: found for index, found in done.items() if token_counts_file(found)}

    @cached_property
    def _restored_sums(self) -> FileInfo | None:
        """The token counts of all splits in a folder that is repaired, if they are whole."""
        files = self.folder.restored.get(TOKEN_COUNTS_FILE, ())
        return next(filter(self.folder.matches, files), None)

    def _write_token_counts(self, manifest: Manifest, splits: list[Receipt]) -> FileInfo:
        """Write the token counts of all splits, unless a folder that is repaired has them."""
        files = [file for receipt in splits if (file := token_counts_file(receipt)) is not None]
        if len(files) < len(splits):
            assert self._restored_sums is not None  # or `_done` had left these splits out
            return self._restored_sums
        columns = id_columns(self._tokenizer)
        sources = None if manifest.sources is None else list(manifest.sources)
        return write_token_counts(
            self.storage,
            self.folder.url,
            self._tokenizer.fingerprint,
            added_up(self.folder, files, columns, sources),
        )

    def warnings_of(self, manifest: Manifest) -> Sequence[str]:
        return doubled_warnings(self._encoding, manifest.changes, manifest.totals.documents)

    def read_manifest(self, data: bytes) -> Manifest:
        return Manifest.from_bytes(data)

    def totals(self, manifest: Manifest) -> CorpusTotals:
        return CorpusTotals(
            manifest.totals.documents,
            manifest.rejects.by_reason,
            manifest.rejects.lost,
            manifest.sources,
            manifest.changes.dropped,
        )

    def check(self, manifest: Manifest, files: Sequence[str]) -> None:
        super().check(manifest, files)
        if not manifest.totals.tokens:
            raise DataError(
                f"there is no token: the {manifest.totals.documents:,} documents of "
                f"{', '.join(self.settings.input.inputs)} are empty, or the tokenizer makes "
                "nothing of them"
            )

    def rows(self, manifest: Manifest) -> dict[str, Any]:
        totals = manifest.totals
        return {
            "text_bytes": totals.text_bytes,
            "tokens": totals.tokens,
            "bytes_per_token": totals.text_bytes / totals.tokens if totals.tokens else None,
            "sources": shard_source_facts(manifest.sources),
            "documents_changed": to_builtins(manifest.changes) or UNSET,
            "shards": totals.shards,
            "shards_bytes": sum(file.bytes for shard in manifest.shards for file in shard.files),
        }
