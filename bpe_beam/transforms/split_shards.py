"""`TokenizeSplits`, what the tokenize job is made of: one split in, one shard out.

A worker reads its split a batch at a time, encodes it and writes it, all in one place, so that no
token travels. The shard becomes visible as a whole and is then recorded; a retry, a twin attempt or
a late one writes the same bytes under the same name. A worker holds one batch, its tokens, the
tokenizer (once a process) and a word cache of fixed size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe_beam import progress
from bpe_beam.corpus import ReadSettings
from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.kinds import COLUMN_FORMATS
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.slices import Edges
from bpe_beam.errors import DataError, TextError
from bpe_beam.shards.formats import shard_name
from bpe_beam.shards.formats.megatron import MegatronWriter
from bpe_beam.transforms import counters
from bpe_beam.transforms.encoding import Encoding
from bpe_beam.transforms.source_tables import add_token_facts
from bpe_beam.transforms.split_work import (
    Receipts,
    SplitWork,
    SpreadWorks,
    file_facts,
    read_texts,
    reading_facts,
    reject_writer,
    rejects_name,
    text_bytes,
)

_WORKER_RAM = "1GB"


@dataclass(frozen=True)
class TokenizeTask:
    """What the workers of a tokenize job need to know; plain and picklable.

    Attributes:
        receipts: The job's folder, and how finished pieces are recorded there.
        reading: How splits become documents.
        encoding: How documents become ids.
        splits: How many splits the plan has.
        stage: The progress stage that batches are reported to.
    """

    receipts: Receipts
    reading: ReadSettings
    encoding: Encoding
    splits: int
    stage: str = "tokenize"


@beam.typehints.with_output_types(str)
class TokenizeSplits(beam.PTransform):
    """Writes a shard for each split; the output is the shards' names.

    Args:
        task: The job.
        works: The splits that have no shard yet; see `works_of`.
    """

    def __init__(self, task: TokenizeTask, works: Iterable[str]) -> None:
        super().__init__()
        # Of all steps: those that differ in their hints are not fused.
        self.with_resource_hints(min_ram=_WORKER_RAM)
        self.task = task
        self.works = list(works)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        """Wires the steps."""
        return (
            begin
            | "Splits" >> SpreadWorks(self.works)
            | "TokenizeSplit" >> beam.ParDo(_TokenizeSplit(self.task))
        )


@beam.typehints.with_input_types(str)
@beam.typehints.with_output_types(str)
class _TokenizeSplit(beam.DoFn):
    """A split to its shard."""

    def __init__(self, task: TokenizeTask) -> None:
        self.task = task

    def process(self, element: str) -> Iterator[str]:
        """Writes one shard."""
        task = self.task
        receipts = task.receipts
        work = SplitWork.from_json(element)
        name = shard_name(work.split.index, task.splits)
        size = 0
        sources: dict[str, dict[str, int]] = {}
        seen: list[Edges] = []
        with ExitStack() as stack:
            rejects = stack.enter_context(reject_writer(receipts, work))
            bound = task.encoding.tokenizer().max_id + 1
            writer = MegatronWriter(receipts.storage, receipts.url, name, bound)
            stack.enter_context(writer)
            for batch in read_texts(receipts.storage, work, task.reading, rejects.add, seen.append):
                ids = self._encode(batch, work.plan)
                writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy())
                size += text_bytes(batch)
                if task.reading.names_sources:
                    add_token_facts(sources, batch, ids.offsets.to_numpy())
                self._count(batch.num_rows, text_bytes(batch), len(ids.values))
        shard = writer.result()
        files = [asdict(file) for file in shard.files]
        if rejects.total:
            files.append(file_facts(receipts, rejects_name(work.split.index, task.splits)))
        counters.counter(counters.RECORDS_REJECTED).inc(rejects.total)
        facts: dict[str, Any] = {
            "documents": shard.documents,
            "text_bytes": size,
            "tokens": shard.tokens,
        }
        facts |= {"rejects": dict(sorted(rejects.counts.items()))}
        if task.reading.names_sources:
            facts["sources"] = dict(sorted(sources.items()))
        facts |= reading_facts(work.plan, work.split, seen)
        receipts.write_receipt(name, files, facts)
        progress.report(task.stage, done=1)
        yield name

    def _encode(self, batch: pa.RecordBatch, plan: Plan) -> pa.LargeListArray:
        try:
            return self.task.encoding.encode(batch.column("text"))
        except TextError as error:
            raise DataError(f"{_record(batch, error.number, plan)}: {error.reason}") from None

    def _count(self, documents: int, size: int, tokens: int) -> None:
        counters.counter(counters.DOCUMENTS_TOKENIZED).inc(documents)
        counters.counter(counters.TEXT_BYTES_TOKENIZED).inc(size)
        counters.counter(counters.TOKENS_MADE).inc(tokens)
        progress.report(self.task.stage, documents=documents, bytes=size, tokens=tokens)


def _record(batch: pa.RecordBatch, number: int, plan: Plan) -> str:
    """A record of a batch by its place; by its id where nobody knows the place."""
    place = batch.column("place")[number].as_py()
    if place is None:
        name = batch.column("id")[number].as_py()
        files = ", ".join(plan.files[piece.file].name for piece in plan.splits[0].slices[:3])
        return f"the record {name}" if name else f"a record without an id in {files}"
    file = plan.files[place >> PLACE_BITS]
    offset = place & ((1 << PLACE_BITS) - 1)
    unit = "row" if file.format in COLUMN_FORMATS else "byte"
    return f"{file.name}: the record at {unit} {offset:,}"
