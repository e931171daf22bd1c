"""Tokenize a split into its shard, or shards; count its tokens only; make the manifest of shards.

A worker reads its split a batch at a time, encodes it and writes it, all in one task, so that no
token travels. Its shards (see `split_shards.py`) appear in `work/` when they are complete, and then
the receipt: a retried or doubled attempt writes the same bytes under the same names. A split
without tokens gets a receipt without a shard. The shards get their final names when all splits are
done, see `shards/numbering.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import asdict, replace

from bpe_beam import json_structs
from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, Publication, Receipt
from bpe_beam.shards import shard_rows
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.formats.interface import (
    MAX_DOCUMENT_TOKENS,
    ShardLimit,
    ShardOrigin,
    ShardWriter,
    limit_of,
)
from bpe_beam.shards.manifest import Manifest, Rejects, TokenizerInfo
from bpe_beam.shards.numbering import number_shards, reject_files, shard_name, shards_of
from bpe_beam.storage.json_file import VERSION, Count, JsonObject
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers import split_reader
from bpe_beam.workers.document_encoding import Encoding, encode_documents
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_shards import ShardSums, SplitShards
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TokenCounter, id_columns
from bpe_beam.workers.unused_memory import release_unused_memory

ENCODED_BYTES = 2 << 20
"""Bytes of text that are encoded at once: a batch of any size costs Python half a millisecond."""

COUNT_KIND = "tokens"  # the kind of the task of `count_tokens`, as in the names of receipts

_MAX_UNUSED = 64 << 20
"""Maximum freed bytes that are kept for the next split, which needs most of them again."""


class TokenizeStats(split_reader.SplitStats, frozen=True, kw_only=True):
    """The receipt's facts about a tokenized split."""

    tokens: Count
    # The totals of each source, sorted by name; None without sources.
    sources: dict[str, shard_rows.SourceTotals] | None = None
    # See `DocumentChanges`; None if all of it is 0.
    changes: shard_rows.DocumentChanges | None = None
    shards: tuple[ShardSums, ...] | None = None  # the totals of each shard, if there are several

    @staticmethod
    def of_rows(
        reading: split_reader.SplitReading,
        rows: Sequence[shard_rows.Shard | shard_rows.TokenlessSplit],
    ) -> TokenizeStats:
        """Return the stats of a split without rejects."""
        sums = [json_structs.convert(row, ShardSums, from_attributes=True) for row in rows]
        return TokenizeStats(
            **asdict(reading), rejects={}, changes=rows[0].changes, **_of_shards(sums)
        )

    @property
    def sums(self) -> tuple[ShardSums, ...]:
        """The totals of each of its shards; without tokens, of the split."""
        return self.shards or (json_structs.convert(self, ShardSums, from_attributes=True),)


class TokenizeTask(split_reader.CorpusTask, frozen=True, kw_only=True):
    """The settings of a tokenize job for its workers."""

    encoding: Encoding
    shard_format: str = DEFAULT_SHARD_FORMAT
    stage: str = "tokenize"
    count_tokens: bool = False  # whether to write how often each id occurs, see `token_counter.py`
    # Whether to write the hash of each document, which decides whether it is for validation;
    # only some formats can store it.
    hashes: bool = False
    columns: tuple[str, ...] = ()  # see `ShardOrigin`
    limit: ShardLimit | None = None  # the limit of a shard; None: the format's limit


def tokenize_split(task: TokenizeTask, element: str) -> TaskResult:
    """Write the shard of one split, and its receipt; the output is the shard's name."""
    release_unused_memory(_MAX_UNUSED)
    counter = _token_counter(task) if task.count_tokens else None
    split = split_reader.SplitReader(task, element)
    name = shard_name(split.task.split.index, split.task.splits)
    limit = task.limit or limit_of([shard_format(task.shard_format)])
    shards = SplitShards(limit, partial(_writer, task), name, by_source=task.by_source)
    with split.rejects, shards:
        changes = _write_documents(task, split, shards, counter)
    stats = TokenizeStats(
        **{**split.stats(), **_of_shards(shards.sums)},
        changes=None if changes == shard_rows.NO_CHANGES else changes,
    )
    return _finish(task, split, name, shards.files, stats, counter)


def count_tokens(task: TokenizeTask, element: str) -> TaskResult:
    """Write the token counts of one split, and its receipt; the output is the task's name.

    The ids are not stored.
    """
    counter = _token_counter(task)
    sources: dict[str, Counter[str]] = {}
    tokens = 0
    split = split_reader.SplitReader(task, element)
    with split.rejects:
        for texts in split.batches():
            batch, ids, _ = encode_documents(
                task.encoding, texts, split.task.plan, split.rejects.add, MAX_DOCUMENT_TOKENS
            )
            counter.add(batch, ids)
            if task.by_source:
                add_token_totals(sources, batch, ids.offsets.to_numpy())
            split.add(batch, tokens=len(ids.values))
            tokens += len(ids.values)
    name = task_name(COUNT_KIND, split.task.split.index, split.task.splits)
    by_source = {source: shard_rows.SourceTotals(**row) for source, row in sorted(sources.items())}
    stats = TokenizeStats(
        **split.stats(), tokens=tokens, sources=by_source if task.by_source else None
    )
    return _finish(task, split, name, [], stats, counter)


def _token_counter(task: TokenizeTask) -> TokenCounter:
    return TokenCounter(id_columns(task.encoding.tokenizer()), task.by_source)


def _finish(
    task: TokenizeTask,
    split: split_reader.SplitReader,
    name: str,
    files: list[FileInfo],
    stats: TokenizeStats,
    counter: TokenCounter | None,
) -> TaskResult:
    """Write the token counts, if any, and the receipt of a split, and return the task's result."""
    files = files + split.reject_files()
    if counter is not None:
        files.append(counter.write(task.folder, name))
    task.folder.write_receipt(name, files, stats)
    return split.result(
        [name],
        {
            "documents_tokenized": split.documents,
            "text_bytes_tokenized": split.text_bytes,
            "tokens_made": stats.tokens,
        },
    )


def _write_documents(
    task: TokenizeTask,
    split: split_reader.SplitReader,
    shards: SplitShards,
    counter: TokenCounter | None,
) -> shard_rows.DocumentChanges:
    """Write the ids of a split's documents to its shards, and return what the rules changed."""
    format_ = shard_format(task.shard_format)
    labelled = format_.labelled
    batches = split.batches(labelled=labelled, batch_bytes=ENCODED_BYTES)
    if task.hashes:
        # An import that other shards do not need.
        from bpe_beam.workers.document_hashes import with_hashes

        # Before the rules: all documents that a document is divided into have its hash.
        text_files = split.task.text_files()
        batches = (with_hashes(texts, text_files) for texts in batches)
    changes = shard_rows.NO_CHANGES
    for texts in batches:
        batch, ids, changed = encode_documents(
            task.encoding, texts, split.task.plan, split.rejects.add, format_.max_document_tokens
        )
        shards.add(batch, ids.values.to_numpy(), ids.offsets.to_numpy())
        changes += changed
        if counter is not None:
            counter.add(batch, ids)
        split.add(batch, tokens=len(ids.values))
    return changes


def _of_shards(shards: Sequence[ShardSums]) -> Mapping[str, Any]:
    """Return the stats of a split that are about its shards."""
    return {
        "documents": sum(shard.documents for shard in shards),
        "text_bytes": sum(shard.text_bytes for shard in shards),
        "tokens": sum(shard.tokens for shard in shards),
        "sources": shard_rows.added_sources(shard.sources for shard in shards),
        "shards": tuple(shards) if len(shards) > 1 else None,
    }


def _writer(task: TokenizeTask, name: str) -> ShardWriter:
    folder, tokenizer = task.folder, task.encoding.tokenizer()
    target = folder.storage, folder.path(WORK), name, tokenizer.max_id + 1
    origin = replace(origin_of(task.encoding, task.columns), hashes=task.hashes)
    return shard_format(task.shard_format).writer(*target, origin)


def origin_of(
    encoding: Encoding, columns: tuple[str, ...] = (), tokenizer: Tokenizer | None = None
) -> ShardOrigin:
    """Return what formats store of an encoding, with its own or another tokenizer."""
    tokenizer = tokenizer or encoding.tokenizer()
    prepend, append = encoding.frame_tokens(tokenizer)
    return ShardOrigin(tokenizer.fingerprint, tuple(prepend), tuple(append), columns=columns)


def manifest_of(
    plan: Plan,
    receipts: Sequence[Receipt],
    tokenizer: Tokenizer,
    settings: Mapping[str, Any],
    format_name: str,
) -> Manifest:
    """Return the manifest of all shards."""
    rows: list[shard_rows.Shard | shard_rows.TokenlessSplit] = []
    rejects: list[FileInfo] = []
    stats = [receipt.read_stats(TokenizeStats) for receipt in receipts]
    publications = number_shards(receipts, [split.tokens for split in stats])
    for split, split_stats, publication in zip(plan.splits, stats, publications, strict=True):
        written = shards_of(publication.receipt)
        rejects += reject_files(publication.receipt)
        of_split: JsonObject = {
            "slices": _slices_of(plan, split),
            "rejects": sum(split_stats.rejects.values()),
            "changes": split_stats.changes,
        }
        for number, sums in enumerate(split_stats.sums):
            row = shard_rows.shard_row(
                written[number] if written else (),
                sums.tokens,
                split.index,
                documents=sums.documents,
                text_bytes=sums.text_bytes,
                sources=sums.sources,
                **(of_split if number == 0 else {}),
            )
            rows.append(row)
    return Manifest(
        **shard_rows.manifest_rows(rows),
        format=format_name,
        version=VERSION,
        tokenizer=TokenizerInfo(tokenizer.fingerprint, tokenizer.max_id + 1),
        settings=dict(settings),
        plan={"fingerprint": plan.fingerprint(), **plan.to_json()},
        rejects=Rejects(
            split_reader.reject_reasons(stats),
            tuple(sorted(rejects, key=lambda file: file.name)),
            split_reader.lost_files(stats),
        ),
    )


def final_names(receipts: Sequence[Receipt]) -> list[Publication]:
    """Return the receipts of all splits, in the order of the plan, with the shards' final names."""
    tokens = (receipt.read_stats(TokenizeStats).tokens for receipt in receipts)
    return number_shards(receipts, tokens)


def _slices_of(plan: Plan, split: Split) -> tuple[shard_rows.SourceSlice, ...]:
    return tuple(
        shard_rows.SourceSlice(plan.files[part.file].name, part.start, part.end)
        for part in split.slices
    )


def plan_of(manifest: Manifest, root: str) -> Plan:
    """Return the plan of a manifest, once it is proven to cover its files."""
    values = dict(manifest.plan)
    fingerprint = values.pop("fingerprint")
    plan = Plan.from_json(values, root)
    if plan.fingerprint() != fingerprint:
        raise DataError(f"{MANIFEST_FILE}: the fingerprint of the plan does not match the plan")
    plan.check_cover()
    for split, (row, *_) in zip(plan.splits, manifest.by_split, strict=True):
        if row.slices != _slices_of(plan, split):
            raise DataError(f"{MANIFEST_FILE}: split {row.split} has other slices than the plan")
    return plan
