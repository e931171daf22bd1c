"""Checking the ids of shards through their readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bpe_beam.shards.formats.interface import ShardReader


@runtime_checkable
class IdReader(Protocol):
    """A `ShardReader` that reads all ids of its shard in batches."""

    def id_batches(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids of the shard."""

    def locate(self, token: int) -> tuple[int, int]:
        """Return the document of a token of the shard, and the token's position in it."""


class IdCheck:
    """A `ShardCheck` of the ids. `problems` needs an `IdReader`."""

    def __init__(self, name: str, vocab_size: int, *, suffix: str) -> None:
        self.file = name + suffix
        self.vocab_size = vocab_size

    def add(self, suffix: str, block: bytes) -> None:
        """See `ShardCheck.add`: a block alone has no ids."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        if not isinstance(reader, IdReader):
            return
        first, count, before = None, 0, 0
        for ids in reader.id_batches():
            bad = np.flatnonzero(ids >= self.vocab_size)
            if bad.size and first is None:
                first = before + int(bad[0]), int(ids[bad[0]])
            count += bad.size
            before += ids.size
        if first is not None:
            document, token = reader.locate(first[0])
            yield (
                f"{self.file}: document {document}, token {token}: the id is {first[1]}; expected "
                f"0 to {self.vocab_size - 1}; {count} such ids in this shard"
            )
