"""One slice to be read: what every format's reader is request, and what it reports of its ends.

Most formats tell by themselves where a record begins. Where the worker must guess (members of a
compressed file, quoted lines of CSV) it reports where its first record began and where it stopped,
and the job proves that the slices of a file are contiguous; see `boundaries.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bpe_beam.corpus.batches import MAX_BATCH_ROWS
from bpe_beam.corpus.losses import Loss
from bpe_beam.corpus.plan import InputFile
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Reject, RejectReason
from bpe_beam.corpus.streams import Source, open_source
from bpe_beam.corpus.streams.stored import unmetered
from bpe_beam.storage import Storage


class Position(NamedTuple):
    """A place in a file that is cut where nobody counted from its start.

    Attributes:
        unit: The stored byte at which a unit (member, frame) begins; 0 in a plain file.
        offset: The byte in what that unit and those behind it decompress to.
    """

    unit: int
    offset: int


class Boundaries(NamedTuple):
    """Where a slice's records begin and end.

    Attributes:
        file: The file's number in the plan.
        start: The slice's first stored byte.
        end: The stored byte behind its last.
        begins: Where its first record begins, or would; None if no unit begins in the slice.
        ends: Where the first record behind it begins; None if no unit begins there.
        broken: The file could not be read to the slice's end.
    """

    file: int
    start: int
    end: int
    begins: Position | None
    ends: Position | None
    broken: bool = False


@dataclass(frozen=True)
class SliceRequest:
    """A slice, and all that its reader needs.

    Attributes:
        storage: The storage client.
        url: Where the file is.
        file: The file.
        number: Its number in the plan.
        start: The slice's first stored byte.
        end: The stored byte behind its last.
        settings: How files become documents.
        on_reject: Called for each record that cannot be used.
        on_boundaries: Called at the slice's end, if the reader had to guess where records begin.
        batch_bytes: About so many bytes of text are in a batch.
        only_text: Ids are not wanted, nor sources that nobody asked for: a reader may leave them
            null.
        on_read: Called with the number of stored bytes of each read; for progress, so some may be
            read twice, or not at all.
    """

    storage: Storage
    url: str
    file: InputFile
    number: int
    start: int
    end: int
    settings: ReadSettings
    on_reject: Callable[[Reject], None]
    on_boundaries: Callable[[Boundaries], None]
    batch_bytes: int
    only_text: bool = False
    on_read: Callable[[int], None] = unmetered

    @property
    def whole(self) -> bool:
        """Whether the slice is all of its file."""
        return self.start == 0 and self.end == self.file.size

    @property
    def source(self) -> str:
        """The source of the file's documents, unless a field of theirs names it."""
        return self.settings.source_of(self.file.name)

    @property
    def max_rows(self) -> int:
        """How many documents a batch may have, for it not to grow far beyond `batch_bytes` by
        their ids and sources alone."""
        row = len(self.file.name) + len(self.source) + 64
        return max(1, min(MAX_BATCH_ROWS, 4 * self.batch_bytes // row))

    def reject(
        self,
        reason: RejectReason,
        detail: str,
        data: bytes | memoryview = b"",
        total: int | None = None,
        *,
        offset: int | None = None,
        line: int | None = None,
        row: int | None = None,
        unit: int | None = None,
        lost: Loss | None = None,
    ) -> None:
        """Report a record of the file that cannot be used, or a part that is lost.

        Args:
            reason: Why.
            detail: What is particular to this record; may be empty.
            data: The bytes of the record, or its first ones.
            total: The size of the record in bytes, if `data` is not all of it.
            offset, line, row, unit, lost: As in `Reject`.
        """
        name = self.file.name
        self.on_reject(
            Reject.of(
                name, offset, line, reason, detail, data, total, row=row, unit=unit, lost=lost
            )
        )

    def open(self, start: int = 0) -> Source | None:
        """Opens the file's decompressed bytes.

        Args:
            start: In a plain file, the byte to begin at. In a compressed one reading begins at
                the first unit of the slice.

        Returns:
            The bytes up to the file's end, or None if no unit begins in the slice.
        """
        plain = self.file.compression == "none"
        source = open_source(
            self.storage,
            self.url,
            self.file.compression,
            self.file.size,
            start if plain else self.start,
            self.file.size if plain else self.end,
            self.file.tag,
            self.on_read,
        )
        if source is None:
            self.on_boundaries(Boundaries(self.number, self.start, self.end, None, None))
        return source
