"""The inputs of `tokenize`, and its job over splits: a shard of each split with tokens.

The shards have the documents in the order of the corpus. `arrange.py` makes others of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from threading import Timer
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs, to_builtins

from bpe_beam.corpus.plan import Plan
from bpe_beam.engines.steps import Steps, TemplateMade, template_of
from bpe_beam.errors import DataError, require
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Receipt
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus import summary
from bpe_beam.jobs.corpus.job import CorpusJob, RemainingSplits
from bpe_beam.jobs.shard_folder_files import restored_files, write_small_files
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardLimit, limit_of
from bpe_beam.shards.formats.trainer_columns import require_columns
from bpe_beam.shards.manifest import ENCODING, Manifest, index_names, read_manifest, with_files
from bpe_beam.shards.numbering import shard_name, token_counts_file
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.shards.token_counts import write_token_counts
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import tokenize_split
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.reject_limits import CorpusTotals
from bpe_beam.workers.split_reader import SplitReading
from bpe_beam.workers.split_task import rejects_name
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import plan_of as manifest_plan

_IMPORT_AFTER = 0.05
"""The seconds after which the tasks of a job have begun to encode."""


class TokenizeInputs(msgspec.Struct, frozen=True):
    """The inputs of a tokenization.

    `limit` is the largest shard that other formats can store, into which shards are converted.
    """

    settings: TokenizeSettings
    storage: Storage
    tokenizer: Tokenizer
    encoding: Encoding
    plan: Plan
    limit: ShardLimit | None = None


def read_inputs(settings: TokenizeSettings, plan: Plan | None = None) -> TokenizeInputs:
    """Return the inputs; refuse settings that do not fit the tokenizer."""
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(settings))
    for format_name in settings.formats:
        require_frame(format_name, encoding)
        sequences = settings.arranging.sequence_length is not None
        require_columns(settings.columns, format_name, sequences=sequences)
    arrangement = settings.arranging.arrangement
    limit = limit_of(map(shard_format, settings.formats))
    if arrangement is not None and limit is not None:
        require(
            arrangement.shard_tokens <= limit.tokens,
            f"must be at most {limit.tokens:,} for shards of {', '.join(settings.formats)}, got "
            f"{arrangement.shard_tokens:,}",
            "shard_tokens",
        )
    plan = plan or corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    return TokenizeInputs(settings, storage, tokenizer, encoding, plan)


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


def framing(settings: TokenizeSettings) -> dict[str, Any]:
    """Return the settings of encoding, as `__job` and the manifest have them."""
    return {key: value for key, value in identity_of(settings).items() if key in ENCODING}


def tokenizer_warnings(encoding: Encoding) -> list[str]:
    """Return warnings about a tokenizer and the tokens around documents."""
    tokenizer = encoding.tokenizer()
    warnings = [*filter(None, (tokenizer.spec.warning, tokenizer.file_warning))]
    if encoding.left_out is not None:
        remedy = "give --add-special-tokens for these, or --prepend and --append"
        warnings.append(f"{encoding.left_out}: {remedy}")
    return warnings


def unmarked_warnings(inputs: TokenizeInputs) -> list[str]:
    """Return a warning if sequences do not show where a document ends, and the tokenizer could."""
    tokenizer, length = inputs.tokenizer, inputs.settings.arranging.sequence_length
    end = tokenizer.roles.get("eos_token")
    if length is None or end is None or any(inputs.encoding.frame(tokenizer)):
        return []
    return [
        f"sequences do not show where a document ends: {end} is the tokenizer's eos_token; give "
        f"{shlex.join(['--append', end])} to put it after each document"
    ]


def doubled_warnings(encoding: Encoding, changes: DocumentChanges, documents: int) -> list[str]:
    """Return a warning if texts already have the tokens that are put around documents."""
    return [*filter(None, (encoding.doubled_warning(changes.doubled, documents),))]


class TokenizeSummary(summary.CorpusSummary, frozen=True, kw_only=True):
    """The summary of a tokenization.

    Attributes:
        formats: The folder of each format, if there are several.
        temporary_bytes: The size of the tokenized documents, which a dry run of an arrangement
            leaves in the output.
        unfilled: The tokens for which sequences have room; without a padding token they are
            shorter.
        parts: The figures of the folders for training and validation.
    """

    shards_kept_from_before: int | None
    tokens: int
    bytes_per_token: float | None
    sources: summary.SourceFigures | None
    documents_changed: dict[str, int] | UnsetType = UNSET
    shards: int | UnsetType = UNSET
    shards_bytes: int | UnsetType = UNSET
    formats: dict[str, str] | UnsetType = UNSET
    temporary_bytes: int | UnsetType = UNSET
    sequences: int | UnsetType = UNSET
    sequence_length: int | UnsetType = UNSET
    padding: int | UnsetType = UNSET
    padding_share: float | UnsetType = UNSET
    unfilled: int | UnsetType = UNSET
    unfilled_share: float | UnsetType = UNSET
    parts: dict[str, dict[str, int]] | UnsetType = UNSET


def tokenize_documents(
    inputs: TokenizeInputs, progress: Progress
) -> TokenizeSummary | summary.TemplateSummary:
    """Tokenize a corpus to the shards of its splits."""
    job, settings = TokenizeJob(inputs), inputs.settings
    try:
        result = job.run(progress)
    except TemplateMade:
        return summary.TemplateSummary(job.name, settings.output, template_of(settings.run))
    manifest, totals, output = result.manifest, result.manifest.totals, settings.output
    warnings = [
        *tokenizer_warnings(inputs.encoding),
        *doubled_warnings(inputs.encoding, manifest.changes, totals.documents),
    ]
    next = [command("verify", output), command("inspect", output)]
    return TokenizeSummary(
        **job.summary_rows(result, warnings=warnings, next=next),
        shards_kept_from_before=result.splits_kept or None,
        text_bytes=totals.text_bytes,
        tokens=totals.tokens,
        bytes_per_token=totals.text_bytes / totals.tokens if totals.tokens else None,
        sources=summary.source_figures(manifest.sources),
        documents_changed=to_builtins(manifest.changes) or UNSET,
        shards=totals.shards,
        shards_bytes=manifest.shards_bytes,
    )


class TokenizeJob(CorpusJob[TokenizeSettings, Manifest]):
    """Makes a shard of each split with tokens."""

    name = "tokenize"
    kind = "shard"
    text_counter = "text_bytes_tokenized"
    min_ram = "1GB"
    spare = 2  # with two, a core rarely waits while tasks flush their shards

    def __init__(self, inputs: TokenizeInputs, *, hashes: bool = False) -> None:
        settings, plan, tokenizer = inputs.settings, inputs.plan, inputs.tokenizer
        super().__init__(settings, inputs.storage, plan)
        format_limit = limit_of([shard_format(settings.format)])
        self._limit = None if inputs.limit == format_limit else inputs.limit
        self._tokenizer = tokenizer
        self._encoding = inputs.encoding
        self._hashes = hashes
        self.holds_gil = tokenizer.holds_gil
        self.needs_ids = shard_format(settings.format).labelled
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

    @staticmethod
    def restore(manifest: bytes) -> RestoredFolder:
        finished = Manifest.from_bytes(manifest)
        plan = manifest_plan(finished, "")
        rejects = {file.name: file for file in finished.rejects.files}
        tasks = restored_files(finished)
        for split, rows in zip(plan.splits, finished.by_split, strict=True):
            rejected = rejects.get(rejects_name(split.index, len(plan.splits)))
            files = tuple(file for row in rows for file in row.files)
            reading = SplitReading.restored(split)
            # The manifest has the sum of reject reasons only: a split with rejects is read again.
            tasks[shard_name(split.index, len(plan.splits))] = RestoredTask(
                files if rejected is None else (*files, rejected),
                tokenize_split.TokenizeStats.of_rows(reading, rows) if rejected is None else None,
            )
        return RestoredFolder(finished.job_fingerprint or None, tasks)

    @staticmethod
    def run_from(settings: TokenizeSettings, progress: Progress) -> object:
        return tokenize_documents(read_inputs(settings), progress)

    def prepare(self) -> None:
        folder, data = self.folder, self._tokenizer.json_bytes
        if folder.finished:
            write_small_files(folder, read_manifest(self.storage, folder.url), data)
        else:
            folder.write(SHARDS_TOKENIZER_FILE, data)

    def steps(self, remaining: RemainingSplits) -> Steps | None:
        if not remaining.tasks:
            return None
        task = tokenize_split.TokenizeTask(
            folder=remaining.run.for_workers(),
            reading=corpus_input.read_settings(self.settings.input),
            encoding=self._encoding.kept_at(self.storage, self.folder.path(SHARDS_TOKENIZER_FILE)),
            shard_format=self.settings.format,
            count_tokens=True,
            hashes=self._hashes,
            columns=self.settings.columns,
            limit=self._limit,
        )
        id_columns(self._tokenizer)  # or each thread would make them
        # `publish` needs a package that is slow to import: while the tasks run, that costs no time.
        # Tasks need Python at their start, then native code.
        later = Timer(_IMPORT_AFTER, import_module, args=("pyarrow.parquet",))
        later.daemon = True
        later.start()
        return remaining.in_one_step("TokenizeSplit", partial(tokenize_split.tokenize_split, task))

    def worker_settings(self) -> TokenizeSettings:
        return structs.replace(self.settings, tokenizer=self.folder.path(SHARDS_TOKENIZER_FILE))

    def manifest(self, plan: Plan, splits: list[Receipt], merged: list[Receipt]) -> Manifest:
        settings = {**framing(self.settings), **identity_of(self.settings.input)}
        manifest = tokenize_split.manifest_of(
            plan, splits, self._tokenizer, settings, self.settings.format
        )
        return structs.replace(manifest, columns=self.settings.columns or UNSET)

    def publish(self, manifest: Manifest, splits: list[Receipt], merged: list[Receipt]) -> bytes:
        counts = self._write_token_counts(manifest, splits)
        self.folder.publish(tokenize_split.final_names(splits))
        data = self._tokenizer.json_bytes
        write_small_files(self.folder, manifest, data)
        return with_files(manifest, data, counts, job=self.folder.fingerprint).to_bytes()

    def _done(self, receipt: Callable[[str], Receipt | None], plan: Plan) -> dict[int, Receipt]:
        """See `CorpusJob`; a split without token counts is done only if the folder has their sums.

        A folder that is repaired may have the sums, but no longer the counts of splits.
        """
        done = super()._done(receipt, plan)
        if all(map(token_counts_file, done.values())):
            return done
        if self.folder.restored and self._restored_sums is not None:
            return done
        return {index: each for index, each in done.items() if token_counts_file(each)}

    @cached_property
    def _restored_sums(self) -> FileInfo | None:
        """The token counts of all splits in a folder that is repaired, if they are whole."""
        files = self.folder.restored.get(TOKEN_COUNTS_FILE, ())
        return next(filter(self.folder.matches, files), None)

    def _write_token_counts(self, manifest: Manifest, splits: list[Receipt]) -> FileInfo:
        """Write the token counts of all splits, unless a folder that is repaired has them."""
        files = [file for receipt in splits if (file := token_counts_file(receipt)) is not None]
        if len(files) < len(splits):
            assert self._restored_sums is not None  # or these splits would not be done
            return self._restored_sums
        columns = id_columns(self._tokenizer)
        sources = None if manifest.sources is None else list(manifest.sources)
        return write_token_counts(
            self.storage,
            self.folder.url,
            self._tokenizer.fingerprint,
            added_up(self.folder, files, columns, sources),
        )

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
