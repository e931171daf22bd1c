"""Tokenize a split into its shard.

A worker reads its split a batch at a time, encodes it and writes it, all in one task, so that no
token travels. The shard becomes visible in `work/` as a whole and then gets its receipt; a retry, a
twin attempt or a late one writes the same bytes under the same name. A split without tokens gets a
receipt without a shard. The shards get their final names when all splits are done, see
`shards/numbering.py`. A worker holds one batch, its tokens, the tokenizer (once a process), a word
cache of fixed size and, if tokens are counted, the table of `token_counter.py`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

from msgspec.structs import replace

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import NO_CHANGES, DocumentChanges, SourceTotals
from bpe_beam.storage.json_file import Count
from bpe_beam.workers import metric_names
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.measured import TaskResult
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_reader import SplitReader
from bpe_beam.workers.split_stats import SplitStats
from bpe_beam.workers.token_counter import TokenCounter, id_columns
from bpe_beam.workers.unused_memory import release_unused_memory

_BATCH_BYTES = 2 << 20
"""The text that is encoded at once: Python needs half a millisecond a batch, whatever its size."""

_MOST_UNUSED = 64 << 20
"""The freed bytes that may be kept from one split to the next, which needs most of them again."""


class TokenizeStats(SplitStats, frozen=True, kw_only=True):
    """What a receipt says of a tokenized split.

    Attributes:
        tokens: The number of its tokens.
        sources: What it has of each source, sorted by name; None without sources.
        changes: What rules for documents changed; None if they changed nothing.
    """

    tokens: Count
    sources: dict[str, SourceTotals] | None = None
    changes: DocumentChanges | None = None


@dataclass(frozen=True)
class TokenizeTask:
    """What the workers of a tokenize job need to know; plain and picklable.

    Attributes:
        folder: The folder of the run or the window.
        reading: How splits become documents.
        encoding: How documents become ids.
        splits: The number of splits of the plan.
        shard_format: The shards' format, one of SHARD_FORMATS.
        stage: The progress stage, in bytes, that gets reports.
        lose_changed: See `read_split`.
        count_tokens: Whether to write how often each id occurs, see `token_counter.py`.
    """

    folder: TaskFolder
    reading: ReadSettings
    encoding: Encoding
    splits: int
    shard_format: str = DEFAULT_SHARD_FORMAT
    stage: str = "tokenize"
    lose_changed: bool = False
    count_tokens: bool = False


def tokenize_split(task: TokenizeTask, element: str) -> TaskResult:
    """Write the shard of one split, and its receipt.

    Args:
        task: The job.
        element: The split, see `split_tasks`.

    Returns:
        The shard's name as the output, and metrics.

    Raises:
        DataError: Storage fails, a document has no ids, or there are too many sources.
    """
    release_unused_memory(_MOST_UNUSED)
    folder = task.folder
    format_ = shard_format(task.shard_format)
    sources: dict[str, Counter[str]] = {}
    changes = NO_CHANGES
    counter: TokenCounter | None = None
    if task.count_tokens:
        counter = TokenCounter(id_columns(task.encoding.tokenizer()), task.reading.names_sources)
    with ExitStack() as stack:
        split = SplitReader(
            folder, element, task.reading, task.stage, lose_changed=task.lose_changed
        )
        stack.enter_context(split.rejects)
        name = shard_name(split.task.split.index, task.splits)
        target = folder.storage, folder.path(WORK), name, task.encoding.tokenizer().max_id + 1
        labelled = format_.labelled_writer
        writer = stack.enter_context(
            format_.writer(*target)
            if labelled is None
            else labelled(*target, origin_of(task.encoding))
        )
        for texts in split.batches(labelled=labelled is not None, batch_bytes=_BATCH_BYTES):
            batch, ids, changed = encode_documents(
                task.encoding,
                texts,
                split.task.plan,
                split.rejects.add,
                format_.max_document_tokens,
            )
            writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy(), batch)
            changes += changed
            if counter is not None:
                counter.add(batch, ids)
            if task.reading.names_sources:
                add_token_totals(sources, batch, ids.offsets.to_numpy())
            split.add(batch, tokens=len(ids.values))
    shard = writer.result()
    files = [replace(file, name=f"{WORK}/{file.name}") for file in shard.files]
    by_source = {source: SourceTotals(**row) for source, row in sorted(sources.items())}
    stats = TokenizeStats(
        **split.stats(),
        tokens=shard.tokens,
        sources=by_source if task.reading.names_sources else None,
        changes=None if changes == NO_CHANGES else changes,
    )
    files += split.reject_files()
    if counter is not None:
        files.append(counter.write(folder, name))
    folder.write_receipt(name, files, stats)
    counts = {
        metric_names.DOCUMENTS_TOKENIZED: split.documents,
        metric_names.TEXT_BYTES_TOKENIZED: split.text_bytes,
        **split.reject_counts(),
        metric_names.TOKENS_MADE: shard.tokens,
    }
    return TaskResult([name], counts, split.values())


def origin_of(encoding: Encoding) -> ShardOrigin:
    """Return what formats store of an encoding."""
    tokenizer = encoding.tokenizer()
    prepend, append = encoding.frame_tokens(tokenizer)
    return ShardOrigin(tokenizer.fingerprint, tuple(prepend), tuple(append))
