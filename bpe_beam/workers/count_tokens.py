"""Count the tokens of a split: how often each id occurs, by source. The ids are not stored."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS
from bpe_beam.shards.shard_rows import SourceTotals
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_reader import SplitReader
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.token_counter import TokenCounter, id_columns
from bpe_beam.workers.tokenize_split import TokenizeStats, TokenizeTask

KIND = "tokens"
"""The kind of task of a split, as in the names of receipts."""


def count_tokens(task: TokenizeTask, element: str) -> TaskResult:
    """Write the token counts of one split, and its receipt.

    Returns:
        The task's name as the output, and metrics.
    """
    folder, by_source = task.folder, task.reading.names_sources
    counter = TokenCounter(id_columns(task.encoding.tokenizer()), by_source)
    sources: dict[str, Counter[str]] = {}
    tokens = 0
    with ExitStack() as stack:
        split = SplitReader(folder, element, task.reading, task.stage)
        stack.enter_context(split.rejects)
        for texts in split.batches():
            batch, ids, _ = encode_documents(
                task.encoding, texts, split.task.plan, split.rejects.add, MAX_DOCUMENT_TOKENS
            )
            counter.add(batch, ids)
            if by_source:
                add_token_totals(sources, batch, ids.offsets.to_numpy())
            split.add(batch, tokens=len(ids.values))
            tokens += len(ids.values)
    name = task_name(KIND, split.task.split.index, task.splits)
    by_name = {source: SourceTotals(**row) for source, row in sorted(sources.items())}
    stats = TokenizeStats(**split.stats(), tokens=tokens, sources=by_name if by_source else None)
    folder.write_receipt(name, [*split.reject_files(), counter.write(folder, name)], stats)
    counts = {
        "documents_tokenized": split.documents,
        "text_bytes_tokenized": split.text_bytes,
        **split.reject_counts(),
        "tokens_made": tokens,
    }
    return TaskResult([name], counts, split.values())
