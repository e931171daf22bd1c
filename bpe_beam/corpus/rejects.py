"""Records that cannot be used: where each stood, why, its bytes, and how many are too many.

A reader calls back with a `Reject` for each; a `RejectWriter` keeps those of one split in a file of
its own beside the job's output; `RejectLimit` decides at the end whether the job may stand.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO

from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

MAX_REJECT_BYTES = 64 << 10
"""So much of a record is kept, in bytes."""

BROKEN_STREAM = "broken compressed stream"
TOO_LONG = "record too long"
TOO_MANY_TOKENS = "too many tokens"
"""Reasons that several formats have; those of native code are `RECORD_FLAWS`."""


@dataclass(frozen=True)
class Reject:
    """A record that cannot be used.

    Attributes:
        file: The file's name in the plan.
        offset: Where the record begins, in bytes of the decompressed file; None in a format of
            rows.
        line: Its line, from 1, if the reader came by all lines before it.
        reason: Why, in words that are the same for all records of this kind.
        detail: What is particular to this one; may be empty.
        data: The record's bytes, at most MAX_REJECT_BYTES of them.
        bytes_total: How many it has.
        row: The record's row, from 0, in a format of rows.
        unit: If not None, `offset` counts from what the stored bytes from this one on decompress
            to: the slice began there, in the middle of a compressed file.
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

    @staticmethod
    def of(
        file: str,
        offset: int | None,
        line: int | None,
        reason: str,
        detail: str,
        data: bytes | memoryview,
        bytes_total: int | None = None,
        *,
        row: int | None = None,
        unit: int | None = None,
    ) -> Reject:
        """A reject with as much of `data` as is kept; `bytes_total` defaults to its size."""
        total = len(data) if bytes_total is None else bytes_total
        kept = bytes(data[:MAX_REJECT_BYTES])
        return Reject(file, offset, line, reason, detail, kept, total, row, unit)

    @property
    def place(self) -> str:
        """Where the record stands in its file, in words."""
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
        }


class RejectWriter:
    """Writes rejects as JSON Lines and counts them. A context manager.

    The file appears when the block ends well, and only if there was a reject. `add` is what
    `read_split` takes as `on_reject`.

    Attributes:
        counts: Rejects by reason.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.counts: Counter[str] = Counter()
        self._storage = storage
        self._url = url
        self._files = contextlib.ExitStack()
        self._stream: BinaryIO | None = None

    @property
    def total(self) -> int:
        """How many rejects there were."""
        return self.counts.total()

    def add(self, reject: Reject) -> None:
        """Writes one reject. Raises DataError if storage fails."""
        if self._stream is None:
            self._stream = self._files.enter_context(self._storage.create(self._url))
        row = json.dumps(reject.to_json(), ensure_ascii=False)
        self._stream.write(row.encode() + b"\n")
        self.counts[reject.reason] += 1

    def __enter__(self) -> RejectWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, traceback)


@dataclass(frozen=True)
class RejectLimit:
    """How many rejects a run may have: a number, or a share of the records.

    The share is `rejects / records` as two integers, so that no rounding decides.

    Attributes:
        numerator: The number; of a share, its upper part.
        denominator: 0 for a number; of a share, its lower part.
    """

    numerator: int
    denominator: int = 0

    @staticmethod
    def parse(limit: str | int) -> RejectLimit:
        """Reads "10" or "0.1%".

        Raises:
            UsageError: It is neither, or the share is above 100%.
        """
        text = str(limit).strip()
        match = re.fullmatch(r"([0-9]{1,18})(?:(?:\.([0-9]{1,18}))?\s*(%))?", text)
        if match is None or isinstance(limit, bool | float):
            raise UsageError(
                f"max-rejects is {limit!r}; give a number of records such as 10, "
                "or a share of them such as 0.1%"
            )
        whole, decimals, percent = match[1], match[2] or "", match[3]
        if not percent:
            return RejectLimit(int(whole))
        numerator, denominator = int(whole + decimals), 100 * 10 ** len(decimals)
        if numerator > denominator:
            raise UsageError(f"max-rejects is {text}; a share is at most 100%")
        return RejectLimit(numerator, denominator)

    def exceeded(self, rejects: int, records: int) -> bool:
        """True if so many rejects are too many among `records`, good and bad."""
        if not self.denominator:
            return rejects > self.numerator
        return rejects * self.denominator > records * self.numerator
