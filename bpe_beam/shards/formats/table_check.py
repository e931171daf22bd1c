"""Checking tables of documents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bpe_beam.shards.formats.interface import (
    ShardReader,
)
from bpe_beam.shards.formats.table_reader import TableReader


class TableCheck:
    """A `ShardCheck` of the ids, and of the vocabulary size in the metadata."""

    def __init__(self, name: str, vocab_size: int, *, suffix: str) -> None:
        self._file = name + suffix
        self._vocab_size = vocab_size

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`: a block alone has no ids."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        if not isinstance(reader, TableReader):
            return
        first, count, before = None, 0, 0
        for ids in reader.groups():
            bad = np.flatnonzero(ids >= self._vocab_size)
            if bad.size and first is None:
                first = before + int(bad[0]), int(ids[bad[0]])
            count += bad.size
            before += ids.size
        if first is not None:
            document, token = reader.locate(first[0])
            yield (
                f"{self._file}: document {document}, token {token}: the id is {first[1]}; expected "
                f"0 to {self._vocab_size - 1}; {count} such ids in this shard"
            )
        elif reader.vocab_size != self._vocab_size:
            yield (
                f"{self._file}: the metadata say that the vocabulary has {reader.vocab_size} ids; "
                f"expected {self._vocab_size}"
            )
        for problem in reader.wrong_columns():
            yield f"{self._file}: {problem}"
