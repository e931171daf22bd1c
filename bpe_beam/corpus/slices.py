"""One slice of a file: the request that each format's reader gets, and its report of boundaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bpe_beam.corpus.batches import MAX_BATCH_ROWS
from bpe_beam.corpus.plan import InputFile
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Reject, RejectReason
from bpe_beam.corpus.streams import Source, Stored, decompress
from bpe_beam.corpus.streams.stored import ignore
from bpe_beam.storage import Storage


class Position(NamedTuple):
    """A position in a file that is read from the middle.

    `offset` is a byte of the decompressed content from the unit (member, frame) on that begins at
    the stored byte `unit`; in a plain file that is 0.
    """

    unit: int
    offset: int


class Boundaries(NamedTuple):
    """The positions at which a slice's first record, and the first one after it, begin.

    They are None where no unit begins. If `broken`, the file could not be read to the slice's end.
    """

    file: int
    start: int
    end: int
    begins: Position | None
    ends: Position | None
    broken: bool = False


class SliceRequest(msgspec.Struct, frozen=True):
    """A slice, and all that its reader needs.

    `read_split` documents the callbacks, `batch_bytes` and `only_text`. `number` is the file's in
    the plan; `on_read` gets the number of stored bytes of each read: some may be read twice.
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
    on_read: Callable[[int], None] = ignore

    @property
    def whole(self) -> bool:
        return self.start == 0 and self.end == self.file.size

    @property
    def plain(self) -> bool:
        return self.file.compression == "none"

    @property
    def source(self) -> str:
        """The source of the file's documents, unless a field of theirs names it."""
        return self.settings.source_of(self.file.name)

    @property
    def max_rows(self) -> int:
        """Maximum documents of a batch; with more, ids and sources could exceed the texts."""
        row = len(self.file.name) + len(self.source) + 64
        return max(1, min(MAX_BATCH_ROWS, 4 * self.batch_bytes // row))

    def reject(self, reason: RejectReason, detail: str, *data: Any, **position: Any) -> None:
        """Report a record of the file, or a lost part of it; see `Reject.of`."""
        self.on_reject(Reject.of(self.file.name, reason, detail, *data, **position))

    def open(self, start: int = 0) -> Source | None:
        """Return the file's bytes to its end, in a plain file from `start` on.

        The bytes of a compressed file are decompressed from the slice's first unit on. If no unit
        begins in the slice, this is reported, and None is returned.
        """
        if self.plain:
            return self.open_stored(start)
        source = decompress(self.open_stored(self.start), self.file.compression, self.end)
        if source is None:
            self.on_boundaries(Boundaries(self.number, self.start, self.end, None, None))
        return source

    def open_stored(self, start: int = 0) -> Stored:
        file = self.file
        return Stored(self.storage, self.url, file.size, start, file.tag, self.on_read)
