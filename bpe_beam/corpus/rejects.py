"""Records that cannot be used: where each stood, why, its bytes, and how many are too many.

A reader calls back with a `Reject` for each; a `RejectWriter` keeps those of one split in a file of
its own beside the job's output; `Limit` (`limits.py`) decides at the end whether the job fails.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from types import TracebackType
from typing import BinaryIO

from bpe_beam.corpus.losses import FileLoss, Loss, add_losses
from bpe_beam.storage import Storage

MAX_REJECT_BYTES = 64 << 10
"""So much of a record is kept, in bytes."""

KEPT_BYTES = 1 << 20
"""So much of all records of one rejects file is kept, in bytes."""


class RejectReason(Enum):
    """Why a record cannot be used, in the words of rejects files, manifests and summaries.

    The first are those of native code, `RECORD_FLAWS`.
    """

    INVALID_UTF8 = "invalid UTF-8"
    TOO_LONG = "record too long"
    BROKEN_JSON = "broken JSON"
    NOT_AN_OBJECT = "not a JSON object"
    FIELD_MISSING = "field missing"
    FIELD_NOT_A_STRING = "field not a string"
    LONE_SURROGATE = "lone surrogate"
    NESTED_TOO_DEEPLY = "nested too deeply"
    WRONG_COLUMNS = "wrong number of columns"
    NUL_BYTE = "NUL byte"
    UNCLOSED_QUOTE = "unclosed quote"
    TEXT_BEHIND_QUOTE = "text behind a closing quote"
    TOO_MANY_TOKENS = "too many tokens"
    SPARSE_FILE = "sparse file"
    NO_WARC_RECORD = "no WARC record"
    BROKEN_WARC_HEADER = "broken WARC header"
    BROKEN_STREAM = "broken compressed stream"
    BROKEN_ARCHIVE = "broken archive"
    BROKEN_PARQUET = "broken Parquet file"
    BROKEN_ROW_GROUP = "broken row group"
    BROKEN_ARROW = "broken Arrow file"
    BROKEN_RECORD_BATCH = "broken record batch"
    FILE_CHANGED = "file changed"
    NOTHING_READ = "nothing could be read"


@dataclass(frozen=True)
class Reject:
    """A record that cannot be used.

    Attributes:
        file: The file's name in the plan.
        offset: Where the record begins, in bytes of the decompressed file; None in a format of
            rows.
        line: Its line, from 1, if the reader came by all lines before it.
        reason: Why: the value of a RejectReason.
        detail: What is particular to this one; may be empty.
        data: The record's bytes, at most MAX_REJECT_BYTES of them.
        bytes_total: How many it has.
        row: The record's row, from 0, in a format of rows.
        unit: If not None, `offset` counts from what the stored bytes from this one on decompress
            to: the slice began there, in the middle of a compressed file.
        lost: What is lost there, if it is no record but a damaged part of the file.
    """

    file: str
    offset: int | None
    line: int | None
    reason: str
    detail: str
    data: bytes
    bytes_total: int
    row: int | None = None
    unit: int | None = None
    lost: Loss | None = None

    @staticmethod
    def of(
        file: str,
        offset: int | None,
        line: int | None,
        reason: RejectReason,
        detail: str,
        data: bytes | memoryview,
        bytes_total: int | None = None,
        *,
        row: int | None = None,
        unit: int | None = None,
        lost: Loss | None = None,
    ) -> Reject:
        """A reject with as much of `data` as is kept; `bytes_total` defaults to its size."""
        total = len(data) if bytes_total is None else bytes_total
        kept = bytes(data[:MAX_REJECT_BYTES])
        return Reject(file, offset, line, reason.value, detail, kept, total, row, unit, lost)

    @property
    def place(self) -> str:
        """The position of the record in its file, in words."""
        if self.row is not None:
            return f"row {self.row:,}"
        behind = "" if self.unit is None else f" of what begins at stored byte {self.unit:,}"
        return f"byte {self.offset:,}{behind}" if self.offset is not None else "the whole file"

    def to_json(self) -> dict[str, object]:
        """The row of a rejects file."""
        return {
            "file": self.file,
            "offset": self.offset,
            "line": self.line,
            "reason": self.reason,
            "detail": self.detail,
            "bytes": base64.b64encode(self.data).decode("ascii"),
            "bytes_total": self.bytes_total,
            **({} if self.row is None else {"row": self.row}),
            **({} if self.unit is None else {"unit": self.unit}),
            **({} if self.lost is None else {"lost_bytes": self.lost.bytes}),
        }


class RejectWriter:
    """Writes rejects as JSON Lines and counts them. A context manager.

    The file appears when the block ends well, and only if there was a reject. `add` is what
    `read_split` takes as `on_reject`.

    Of a file with many rejects the first KEPT_BYTES of their bytes are kept, so that `rejects/`
    does not become a copy of the corpus; the later ones are written with their positions alone.

    Attributes:
        counts: Rejects by reason.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.counts: Counter[str] = Counter()
        self._losses: list[FileLoss] = []
        self._kept = 0
        self._storage = storage
        self._url = url
        self._files = contextlib.ExitStack()
        self._stream: BinaryIO | None = None

    @property
    def total(self) -> int:
        """How many rejects there were."""
        return self.counts.total()

    @property
    def losses(self) -> tuple[FileLoss, ...]:
        """What is lost of each file."""
        return add_losses(self._losses)

    def add(self, reject: Reject) -> None:
        """Writes one reject. Raises DataError if storage fails."""
        if self._stream is None:
            self._stream = self._files.enter_context(self._storage.create(self._url))
        if self._kept + len(reject.data) > KEPT_BYTES:
            reject = replace(reject, data=b"")
        self._kept += len(reject.data)
        row = json.dumps(reject.to_json(), ensure_ascii=False)
        self._stream.write(row.encode() + b"\n")
        self.counts[reject.reason] += 1
        if reject.lost is not None:
            self._losses.append(FileLoss(reject.file, reject.lost.bytes, 1, reject.lost.records))

    def __enter__(self) -> RejectWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, traceback)
