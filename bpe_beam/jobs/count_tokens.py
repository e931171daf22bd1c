"""The count of a corpus's tokens, for `evaluate`: `tokenize` without shards.

The folder has `__token_counts` and a small manifest. A killed job is resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct, structs

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.rejects import FileLoss
from bpe_beam.engines.steps import Steps
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import Receipt
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_job import CorpusJob, SplitsLeft
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.numbering import token_counts_file
from bpe_beam.shards.token_counts import SourceCounts, read_token_counts, write_token_counts
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import Count, Sha256, read_signed, to_struct, with_checksum
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import metric_names
from bpe_beam.workers.corpus_totals import CorpusTotals
from bpe_beam.workers.count_tokens import KIND, count_tokens
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_stats import lost_files, reject_reasons
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import TokenizeStats, TokenizeTask


class CorpusTokens(Struct, frozen=True):
    """The manifest of the tokens of a corpus.

    Attributes:
        documents: The number of documents.
        rejects: The number of rejected records by reason.
        lost: What is lost of damaged files.
        tokens: The number of tokens.
        sources: The number of tokens of each source, sorted by name; None without sources.
        job_fingerprint: The fingerprint of the job in `__job`.
        file: The token counts.
    """

    documents: Count
    rejects: dict[str, Count]
    lost: tuple[FileLoss, ...]
    tokens: Count
    sources: dict[str, Count] | None
    job_fingerprint: Sha256
    file: FileInfo | None = None

    @property
    def tokens_by_source(self) -> Mapping[str | None, int]:
        """The number of tokens of each source; without sources, of None."""
        if self.sources is None:
            return {None: self.tokens}
        return dict(self.sources.items())


def token_counts(
    settings: TokenizeSettings, storage: Storage, tokenizer: Tokenizer, progress: Progress
) -> Iterator[SourceCounts]:
    """Return how often each id occurs in each source of a corpus; without sources, of None."""
    plan = corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    job = _CountTokensJob(settings, storage, plan, tokenizer)
    job.run(progress)
    data = storage.read_bytes(storage.join(settings.output, MANIFEST_FILE))
    found = job.read_manifest(data)
    assert found.file is not None
    tokens = found.tokens_by_source
    return read_token_counts(storage, settings.output, tokenizer.fingerprint, tokens, found.file)


class _CountTokensJob(CorpusJob[TokenizeSettings, CorpusTokens]):
    """Counts the tokens of each split, and adds them up."""

    name = "count_tokens"
    kind = KIND
    made = "splits"
    stats: ClassVar = TokenizeStats
    text_counter = metric_names.TEXT_BYTES_TOKENIZED
    min_ram = "1GB"
    next_commands = ()

    def __init__(
        self, settings: TokenizeSettings, storage: Storage, plan: Plan, tokenizer: Tokenizer
    ) -> None:
        super().__init__(settings, storage, plan)
        self._tokenizer = tokenizer
        self.holds_gil = tokenizer.holds_gil
        self.identity = {"tokenizer": tokenizer.fingerprint}
        splits = [task_name(KIND, split.index, len(plan.splits)) for split in plan.splits]
        self.names = [SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, *map(token_counts_name, splits)]

    @staticmethod
    def restore(manifest: bytes) -> RestoredFolder:
        found = _manifest_of(manifest)
        files = () if found.file is None else (found.file,)
        return RestoredFolder(found.job_fingerprint, {KIND: RestoredTask(files, None)})

    def prepare(self) -> None:
        self.folder.write(SHARDS_TOKENIZER_FILE, self._tokenizer.json_bytes)

    def steps(self, left: SplitsLeft) -> Steps | None:
        if not left.tasks:
            return None
        task = TokenizeTask(
            folder=left.run.for_workers(),
            reading=corpus_input.read_settings(self.settings.input),
            encoding=Encoding.of(self._tokenizer).kept_at(
                self.storage, self.folder.path(SHARDS_TOKENIZER_FILE)
            ),
            splits=len(left.plan.splits),
            stage=self.name,
        )
        return lambda engine: engine.run(
            "CountTokens",
            partial(count_tokens, task),
            engine.tasks("Splits", left.tasks),
            str,
        )

    def manifest(self, plan: Plan, splits: list[Receipt], merged: list[Receipt]) -> CorpusTokens:
        stats = [receipt.read_stats(TokenizeStats) for receipt in splits]
        sources: Counter[str] = Counter()
        for each in stats:
            for source, totals in (each.sources or {}).items():
                sources[source] += totals.tokens
        return CorpusTokens(
            documents=sum(each.documents for each in stats),
            rejects=reject_reasons(stats),
            lost=lost_files(stats),
            tokens=sum(each.tokens for each in stats),
            sources=dict(sorted(sources.items())) if self.settings.input.by_source else None,
            job_fingerprint=self.folder.fingerprint,
        )

    def publish(
        self, manifest: CorpusTokens, splits: list[Receipt], merged: list[Receipt]
    ) -> bytes:
        self.folder.require_whole(splits)
        files = [file for receipt in splits if (file := token_counts_file(receipt)) is not None]
        columns = id_columns(self._tokenizer)
        sources = None if manifest.sources is None else list(manifest.sources)
        counts = added_up(self.folder, files, columns, sources)
        file = write_token_counts(
            self.storage, self.folder.url, self._tokenizer.fingerprint, counts
        )
        return with_checksum(structs.replace(manifest, file=file))

    def read_manifest(self, data: bytes) -> CorpusTokens:
        return _manifest_of(data)

    def totals(self, manifest: CorpusTokens) -> CorpusTotals:
        return CorpusTotals(manifest.documents, manifest.rejects, manifest.lost, manifest.sources)

    def rows(self, manifest: CorpusTokens) -> dict[str, Any]:
        return {"text_bytes": 0, "tokens": manifest.tokens, "sources": None}


def _manifest_of(data: bytes) -> CorpusTokens:
    return to_struct(read_signed(data, MANIFEST_FILE, 1), CorpusTokens, MANIFEST_FILE)
