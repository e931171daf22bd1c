"""Tokenize a split into its shard.

A worker reads its split a batch at a time, encodes it and writes it, all in one place, so that no
token travels. The shard becomes visible in `work/` as a whole and then gets its receipt; a retry, a
twin attempt or a late one writes the same bytes under the same name. A split without tokens gets a
receipt without a shard. The shards get their final names when all splits are done, see
`shards/numbering.py`. A worker holds one batch, its tokens, the tokenizer (once a process) and
a word cache of fixed size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from bpe_beam import progress
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import SourceTotals
from bpe_beam.workers import metric_names
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.source_tables import add_token_facts
from bpe_beam.workers.split_stats import (
    SplitReading,
    SplitStats,
    base_stats,
    rejects_by_reason,
    rejects_json,
)
from bpe_beam.workers.split_task import (
    SplitTask,
    read_texts,
    reject_writer,
    rejects_name,
    require_visible,
    split_values,
    text_bytes_of,
)


@dataclass(frozen=True)
class TokenizeStats(SplitStats):
    """What a receipt says of a tokenized split.

    Attributes:
        tokens: The number of its tokens.
        sources: What it has of each source, sorted by name; None without sources.
    """

    tokens: int
    sources: Mapping[str, SourceTotals] | None

    def to_json(self) -> dict[str, object]:
        """Return the stats as the JSON values of a receipt."""
        rows = {name: asdict(facts) for name, facts in (self.sources or {}).items()}
        return {
            "documents": self.documents,
            "text_bytes": self.text_bytes,
            "tokens": self.tokens,
            **rejects_json(self.rejects, self.lost),
            **({} if self.sources is None else {"sources": rows}),
            **self.reading.to_json(),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> TokenizeStats:
        """Read what `to_json` returned."""
        rows = value.get("sources")
        sources = None if rows is None else {name: SourceTotals(**rows[name]) for name in rows}
        return TokenizeStats(**base_stats(value), tokens=value["tokens"], sources=sources)


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
    """

    folder: TaskFolder
    reading: ReadSettings
    encoding: Encoding
    splits: int
    shard_format: str = DEFAULT_SHARD_FORMAT
    stage: str = "tokenize"
    lose_changed: bool = False


class MadeShard(NamedTuple):
    """A shard's name, and metrics by name."""

    name: str
    counts: dict[str, int]
    values: dict[str, int]


def tokenize_split(task: TokenizeTask, element: str) -> MadeShard:
    """Write the shard of one split, and its receipt.

    Args:
        task: The job.
        element: The split, see `split_tasks`.

    Raises:
        DataError: Storage fails, a document has no ids, or there are too many sources.
    """
    started = time.monotonic()
    folder = task.folder
    split_task = SplitTask.from_json(element)
    require_visible(folder.storage, folder.url, split_task.plan.root)
    name = shard_name(split_task.split.index, task.splits)
    size = 0
    sources: dict[str, dict[str, int]] = {}
    found: list[Boundaries] = []
    with ExitStack() as stack:
        rejects = stack.enter_context(reject_writer(folder, split_task))
        bound = task.encoding.tokenizer().max_id + 1
        format_ = shard_format(task.shard_format)
        writer = stack.enter_context(format_.writer(folder.storage, folder.path(WORK), name, bound))
        for batch in read_texts(
            folder.storage,
            split_task,
            task.reading,
            rejects.add,
            found.append,
            task.stage,
            lose_changed=task.lose_changed,
        ):
            batch, ids = encode_documents(
                task.encoding, batch, split_task.plan, rejects.add, format_.max_document_tokens
            )
            writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy())
            size += text_bytes_of(batch)
            if task.reading.names_sources:
                add_token_facts(sources, batch, ids.offsets.to_numpy())
            progress.report(
                task.stage,
                documents=batch.num_rows,
                bytes=text_bytes_of(batch),
                tokens=len(ids.values),
            )
    shard = writer.result()
    files = [replace(file, name=f"{WORK}/{file.name}") for file in shard.files]
    if rejects.total:
        files.append(folder.describe(rejects_name(split_task.split.index, task.splits)))
    by_source = {source: SourceTotals(**row) for source, row in sorted(sources.items())}
    stats = TokenizeStats(
        documents=shard.documents,
        text_bytes=size,
        rejects=rejects_by_reason(rejects),
        lost=rejects.losses,
        reading=SplitReading.of(split_task.plan, split_task.split, found),
        tokens=shard.tokens,
        sources=by_source if task.reading.names_sources else None,
    )
    folder.write_receipt(name, files, stats.to_json())
    counts = {
        metric_names.DOCUMENTS_TOKENIZED: shard.documents,
        metric_names.TEXT_BYTES_TOKENIZED: size,
        metric_names.RECORDS_REJECTED: rejects.total,
        metric_names.STORED_BYTES_LOST: sum(loss.bytes for loss in rejects.losses),
        metric_names.TOKENS_MADE: shard.tokens,
    }
    return MadeShard(name, counts, split_values(shard.documents, size, started))
