"""Tokenize a split into its shard, or shards.

A worker reads its split a batch at a time, encodes it and writes it, all in one task, so that no
token travels. Its shards, one or several (see `split_shards.py`), appear in `work/` when they are
complete, and then the receipt; a retry, a twin attempt or a late one writes the same bytes
under the same names. A split without tokens gets a receipt without a shard. The shards get their
final names when all splits are done, see `shards/numbering.py`. A worker holds one batch, its
tokens, the tokenizer (once a process), a word cache of fixed size and, if tokens are counted, the
table of `token_counter.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import asdict, replace

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.formats.interface import (
    ShardLimit,
    ShardOrigin,
    ShardWriter,
    limit_of,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import (
    NO_CHANGES,
    DocumentChanges,
    Shard,
    SourceTotals,
    TokenlessSplit,
    added_sources,
)
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.split_reader import SplitReader
from bpe_beam.workers.split_shards import ShardSums, SplitShards
from bpe_beam.workers.split_stats import SplitReading, SplitStats
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TokenCounter, id_columns
from bpe_beam.workers.unused_memory import release_unused_memory

ENCODED_BYTES = 2 << 20
"""Bytes of text that are encoded at once: a batch of any size costs Python half a millisecond."""

_MAX_UNUSED = 64 << 20
"""Maximum freed bytes that are kept for the next split, which needs most of them again."""


class TokenizeStats(SplitStats, frozen=True, kw_only=True):
    """The receipt's facts about a tokenized split.

    Attributes:
        sources: The totals of each source, sorted by name; None without sources.
        changes: See `DocumentChanges`; None if all of it is 0.
        shards: The totals of each shard, if there are several.
    """

    tokens: Count
    sources: dict[str, SourceTotals] | None = None
    changes: DocumentChanges | None = None
    shards: tuple[ShardSums, ...] | None = None

    @staticmethod
    def of_rows(reading: SplitReading, rows: Sequence[Shard | TokenlessSplit]) -> TokenizeStats:
        """Return the stats of a split without rejects."""
        sums = [
            ShardSums(
                documents=row.documents,
                text_bytes=row.text_bytes,
                tokens=row.tokens,
                sources=row.sources,
            )
            for row in rows
        ]
        return TokenizeStats(
            **asdict(reading), rejects={}, changes=rows[0].changes, **_of_shards(sums)
        )

    @property
    def sums(self) -> tuple[ShardSums, ...]:
        """The totals of each of its shards; without tokens, of the split."""
        return self.shards or (
            ShardSums(
                documents=self.documents,
                text_bytes=self.text_bytes,
                tokens=self.tokens,
                sources=self.sources,
            ),
        )


@dataclass(frozen=True)
class TokenizeTask:
    """The settings of a tokenize job for its workers; plain and picklable.

    Attributes:
        lose_changed: See `read_split`.
        count_tokens: Whether to write how often each id occurs, see `token_counter.py`.
        hashes: Whether to write the hash of each document, which decides whether it is for
            validation; only some formats can store it.
        columns: See `ShardOrigin`.
        limit: The limit of a shard; None: the format's limit.
    """

    folder: TaskFolder
    reading: ReadSettings
    encoding: Encoding
    splits: int
    shard_format: str = DEFAULT_SHARD_FORMAT
    stage: str = "tokenize"
    lose_changed: bool = False
    count_tokens: bool = False
    hashes: bool = False
    columns: tuple[str, ...] = ()
    limit: ShardLimit | None = None


def tokenize_split(task: TokenizeTask, element: str) -> TaskResult:
    """Write the shard of one split, and its receipt; the output is the shard's name."""
    release_unused_memory(_MAX_UNUSED)
    folder, by_source = task.folder, task.reading.names_sources
    counter: TokenCounter | None = None
    if task.count_tokens:
        counter = TokenCounter(id_columns(task.encoding.tokenizer()), by_source)
    with ExitStack() as stack:
        split = SplitReader(
            folder, element, task.reading, task.stage, lose_changed=task.lose_changed
        )
        stack.enter_context(split.rejects)
        name = shard_name(split.task.split.index, task.splits)
        limit = task.limit or limit_of([shard_format(task.shard_format)])
        shards = SplitShards(limit, partial(_writer, task), name, by_source=by_source)
        stack.enter_context(shards)
        changes = _write_documents(task, split, shards, counter)
    stats = TokenizeStats(
        **{**split.stats(), **_of_shards(shards.sums)},
        changes=None if changes == NO_CHANGES else changes,
    )
    files = shards.files + split.reject_files()
    if counter is not None:
        files.append(counter.write(folder, name))
    folder.write_receipt(name, files, stats)
    counts = {
        "documents_tokenized": split.documents,
        "text_bytes_tokenized": split.text_bytes,
        **split.reject_counts(),
        "tokens_made": stats.tokens,
    }
    return TaskResult([name], counts, split.values())


def _write_documents(
    task: TokenizeTask, split: SplitReader, shards: SplitShards, counter: TokenCounter | None
) -> DocumentChanges:
    """Write the ids of a split's documents to its shards, and return what the rules changed."""
    format_ = shard_format(task.shard_format)
    labelled = format_.labelled_writer is not None
    batches = split.batches(labelled=labelled, batch_bytes=ENCODED_BYTES)
    if task.hashes:
        # An import that other shards do not need.
        from bpe_beam.workers.document_hashes import with_hashes

        # Before the rules: all documents that a document is divided into have its hash.
        text_files = split.task.text_files()
        batches = (with_hashes(texts, text_files) for texts in batches)
    changes = NO_CHANGES
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
        "sources": added_sources(shard.sources for shard in shards),
        "shards": tuple(shards) if len(shards) > 1 else None,
    }


def _writer(task: TokenizeTask, name: str) -> ShardWriter:
    """Return the writer of a shard."""
    folder, tokenizer = task.folder, task.encoding.tokenizer()
    target = folder.storage, folder.path(WORK), name, tokenizer.max_id + 1
    origin = replace(origin_of(task.encoding, task.columns), hashes=task.hashes)
    return shard_format(task.shard_format).open_writer(*target, origin)


def origin_of(encoding: Encoding, columns: tuple[str, ...] = ()) -> ShardOrigin:
    """Return what formats store of an encoding."""
    tokenizer = encoding.tokenizer()
    prepend, append = encoding.frame_tokens(tokenizer)
    return ShardOrigin(tokenizer.fingerprint, tuple(prepend), tuple(append), columns=columns)
