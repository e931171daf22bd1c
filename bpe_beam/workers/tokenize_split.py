"""A split to its shard.

A worker reads its split a batch at a time, encodes it and writes it, all in one place, so that no
token travels. The shard becomes visible in `work/` as a whole and is then recorded; a retry, a twin
attempt or a late one writes the same bytes under the same name. A split without tokens is recorded
without a shard. The final names are given when all splits are done, see `numbering.py`. A worker
holds one batch, its tokens, the tokenizer (once a process) and a word cache of fixed size.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from bpe_beam import progress
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.slices import Edges
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.workers import metric_names as measures
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.source_tables import add_token_facts
from bpe_beam.workers.split_task import (
    WORK,
    Receipts,
    SplitWork,
    file_facts,
    read_texts,
    reading_facts,
    reject_writer,
    rejects_name,
    require_seen,
    split_values,
    text_bytes,
)


@dataclass(frozen=True)
class TokenizeTask:
    """What the workers of a tokenize job need to know; plain and picklable.

    Attributes:
        receipts: The run's folder, and how finished pieces are recorded there.
        reading: How splits become documents.
        encoding: How documents become ids.
        splits: How many splits the plan has.
        shard_format: The shards' format, one of SHARD_FORMATS.
        pool: The processes that encode, see `worker_processes`; None: the worker itself does.
        stage: The progress stage, in bytes, that work is reported to.
        lose_changed: See `read_split`.
    """

    receipts: Receipts
    reading: ReadSettings
    encoding: Encoding
    splits: int
    shard_format: str = DEFAULT_SHARD_FORMAT
    pool: str | None = None
    stage: str = "tokenize"
    lose_changed: bool = False


class MadeShard(NamedTuple):
    """A shard's name, and what was measured."""

    name: str
    counts: dict[str, int]
    values: dict[str, int]


def tokenize_split(task: TokenizeTask, element: str) -> MadeShard:
    """Writes the shard of one split, and records it."""
    started = time.monotonic()
    receipts = task.receipts
    work = SplitWork.from_json(element)
    require_seen(receipts.storage, receipts.url, work.plan.root)
    name = shard_name(work.split.index, task.splits)
    size = 0
    sources: dict[str, dict[str, int]] = {}
    seen: list[Edges] = []
    with ExitStack() as stack:
        rejects = stack.enter_context(reject_writer(receipts, work))
        bound = task.encoding.tokenizer().max_id + 1
        folder = receipts.storage.join(receipts.url, WORK)
        format_ = shard_format(task.shard_format)
        writer = stack.enter_context(format_.writer(receipts.storage, folder, name, bound))
        for batch in read_texts(
            receipts.storage,
            work,
            task.reading,
            rejects.add,
            seen.append,
            task.stage,
            lose_changed=task.lose_changed,
        ):
            batch, ids = encode_documents(
                task.encoding, batch, work.plan, rejects.add, format_.max_document_tokens
            )
            writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy())
            size += text_bytes(batch)
            if task.reading.names_sources:
                add_token_facts(sources, batch, ids.offsets.to_numpy())
            progress.report(
                task.stage,
                documents=batch.num_rows,
                bytes=text_bytes(batch),
                tokens=len(ids.values),
            )
    shard = writer.result()
    files = [{**asdict(file), "name": f"{WORK}/{file.name}"} for file in shard.files]
    if rejects.total:
        files.append(file_facts(receipts, rejects_name(work.split.index, task.splits)))
    facts: dict[str, Any] = {
        "documents": shard.documents,
        "text_bytes": size,
        "tokens": shard.tokens,
    }
    facts |= rejects.to_json()
    if task.reading.names_sources:
        facts["sources"] = dict(sorted(sources.items()))
    facts |= reading_facts(work.plan, work.split, seen)
    receipts.write_receipt(name, files, facts)
    counts = {
        measures.DOCUMENTS_TOKENIZED: shard.documents,
        measures.TEXT_BYTES_TOKENIZED: size,
        measures.RECORDS_REJECTED: rejects.total,
        measures.STORED_BYTES_LOST: sum(loss.bytes for loss in rejects.losses),
        measures.TOKENS_MADE: shard.tokens,
    }
    return MadeShard(name, counts, split_values(shard.documents, size, started))
