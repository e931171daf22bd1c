"""The shards of a split: one, or several if a format cannot count all of its tokens or bytes.

Some formats count the tokens or the bytes of a file in 32 bits. A split may have more of them, such
as a compressed file, which one worker must read as a whole. Then a new shard begins. Each shard but
the last has all documents that fit, so the documents alone decide where a shard ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import TracebackType

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bpe_beam.folders.artifact_names import part_name
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards.formats.interface import ShardLimit, ShardWriter
from bpe_beam.shards.shard_rows import SourceTotals
from bpe_beam.storage.json_file import Count
from bpe_beam.workers.source_tables import add_token_totals
from bpe_beam.workers.split_task import text_bytes_of


class ShardSums(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sums of one shard of a split; `text_bytes` are UTF-8."""

    documents: Count
    text_bytes: Count
    tokens: Count
    sources: dict[str, SourceTotals] | None = None


class SplitShards:
    """Writes the shards of a split; a context manager, which closes or gives up the last writer.

    `files` has the files of all shards in their order, by names in the folder of the run; `sums`
    the sums of each. Both are complete when the `with` block has ended well.
    """

    def __init__(
        self,
        limit: ShardLimit | None,
        open_writer: Callable[[str], ShardWriter],
        name: str,
        *,
        by_source: bool,
    ) -> None:
        self._limit = limit
        self._open_writer = open_writer
        self._name = name
        self._by_source = by_source
        self.files: list[FileInfo] = []
        self.sums: list[ShardSums] = []
        self._begin()

    def __enter__(self) -> SplitShards:
        self._writer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)
        if kind is None:
            self._end()

    def add(
        self, batch: pa.RecordBatch, ids: NDArray[np.uint32], offsets: NDArray[np.int64]
    ) -> None:
        """Write documents.

        Args:
            ids: uint32[tokens], the ids of all documents one after the other.
            offsets: int64[documents + 1], the first token of each document and the end of the last.
        """
        start = 0
        while (stop := start + self._fitting(offsets[start:])) < batch.num_rows:
            self._write(batch, ids, offsets, start, stop)
            self._writer.__exit__(None, None, None)
            self._end()
            self._begin()
            self._writer.__enter__()
            start = stop
        self._write(batch, ids, offsets, start, stop)

    def _fitting(self, offsets: NDArray[np.int64]) -> int:
        """Return how many of some documents the shard has room for.

        It has room for one document with tokens, and for each without: a shard has tokens.
        """
        count = offsets.size - 1
        if self._limit is None:
            return count
        each = self._limit.document_weight
        room = self._limit.tokens - self._tokens - each * self._documents
        if int(offsets[-1] - offsets[0]) + each * count <= room:
            return count
        weights = offsets[1:] - offsets[0] + each * np.arange(1, count + 1)
        fitting = int(np.searchsorted(weights, room, side="right"))
        with_tokens = np.flatnonzero(np.diff(offsets))
        if not self._tokens and with_tokens.size:
            fitting = max(fitting, int(with_tokens[0]) + 1)
        later = with_tokens[with_tokens >= fitting]
        return int(later[0]) if later.size else count

    def _write(
        self,
        batch: pa.RecordBatch,
        ids: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        start: int,
        stop: int,
    ) -> None:
        if stop - start < batch.num_rows:
            batch = batch.slice(start, stop - start)
            offsets = offsets[start : stop + 1]
            ids = ids[offsets[0] : offsets[-1]]
            offsets = offsets - offsets[0]
        self._writer.write_documents(ids, offsets, batch)
        self._documents += batch.num_rows
        self._text_bytes += text_bytes_of(batch)
        self._tokens += ids.size
        if self._by_source:
            add_token_totals(self._sources, batch, offsets)

    def _begin(self) -> None:
        self._writer = self._open_writer(part_name(self._name, len(self.sums)))
        self._documents = self._text_bytes = self._tokens = 0
        self._sources: dict[str, Counter[str]] = {}

    def _end(self) -> None:
        written = self._writer.result().files
        self.files += [replace(file, name=f"{WORK}/{file.name}") for file in written]
        by_source = {source: SourceTotals(**row) for source, row in sorted(self._sources.items())}
        self.sums.append(
            ShardSums(
                documents=self._documents,
                text_bytes=self._text_bytes,
                tokens=self._tokens,
                sources=by_source if self._by_source else None,
            )
        )
