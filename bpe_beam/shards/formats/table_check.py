"""Checking tables of documents."""

from __future__ import annotations

from collections.abc import Iterator

from bpe_beam.shards.formats.id_check import IdCheck
from bpe_beam.shards.formats.interface import ShardReader
from bpe_beam.shards.formats.table_reader import TableReader


class TableCheck(IdCheck):
    """A `ShardCheck` of the ids, the vocabulary size in the metadata, and the trainers' columns."""

    def problems(self, reader: ShardReader | None) -> Iterator[str]:
        """See `ShardCheck.problems`."""
        if not isinstance(reader, TableReader):
            return
        wrong_ids = list(super().problems(reader))
        yield from wrong_ids
        if not wrong_ids and reader.vocab_size != self.vocab_size:
            yield (
                f"{self.file}: the metadata say that the vocabulary has {reader.vocab_size} ids; "
                f"expected {self.vocab_size}"
            )
        for problem in reader.wrong_columns():
            yield f"{self.file}: {problem}"
