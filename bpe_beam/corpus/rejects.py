"""Unusable records: their positions, reasons and bytes.

A reader calls back with a `Reject` for each. A `RejectWriter` writes a split's to a file
next to the job's output. A `Limit` decides at the end whether the job fails.
The number of records in the lost parts of damaged files is unknown: the rest of a broken compressed
stream or of an archive, a row group, a record batch, a file that cannot be read at all. Losses
are counted in stored bytes, and have their own limit.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, BinaryIO

import msgspec

from bpe_beam.corpus.read_settings import field_path
from bpe_beam.errors import UsageError, require
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import Count, JsonObject

MAX_REJECT_BYTES = 64 << 10
"""Maximum bytes that are kept of a record."""

KEPT_BYTES = 1 << 20
"""Maximum bytes that are kept of all records of one rejects file."""

_SHOWN_NAMES = 20


class Limit(msgspec.Struct, frozen=True):
    """The maximum of something in a run: a number with the denominator 0, or a share of all."""

    numerator: int
    denominator: int = 0

    @staticmethod
    def parse(limit: str | int, name: str = "max_rejects") -> Limit:
        """Return the limit that "10" or "0.1%" means."""
        text = str(limit).strip()
        match = re.fullmatch(r"([0-9]{1,99})(?:(?:\.([0-9]{1,99}))?\s*(%))?", text)
        if match is None or isinstance(limit, bool | float):
            bound = ", and at least 0" if text.startswith("-") else ""
            raise UsageError(
                f"must be a whole number, or a share with a percent sign such as 0.1%{bound}, got "
                f"{limit!r}",
                (name,),
            )
        whole, decimals, percent = match[1], match[2] or "", match[3]
        if not percent:
            return Limit(int(whole))
        numerator, denominator = int(whole + decimals), 100 * 10 ** len(decimals)
        require(numerator <= denominator, f"must be at most 100%, got {text}", name)
        return Limit(numerator, denominator)

    def exceeded(self, count: int, total: int) -> bool:
        if not self.denominator:
            return count > self.numerator
        return count * self.denominator > total * self.numerator


class RejectReason(Enum):
    """The reason why a record is unusable, in rejects files, manifests and summaries.

    It begins with the reasons of native code, `RECORD_FLAWS`.
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
    TEXT_AFTER_QUOTE = "text after a closing quote"
    TOO_MANY_TOKENS = "too many tokens"
    SPARSE_FILE = "sparse file"
    NOT_TEXT = "not text"
    NO_WARC_RECORD = "no WARC record"
    BROKEN_WARC_HEADER = "broken WARC header"
    BROKEN_STREAM = "broken compressed stream"
    BROKEN_ARCHIVE = "broken archive"
    BROKEN_PARQUET = "broken Parquet file"
    BROKEN_ROW_GROUP = "broken row group"
    BROKEN_ARROW = "broken Arrow file"
    NOT_IMPLEMENTED = "type or encoding that is not read"
    BROKEN_RECORD_BATCH = "broken record batch"
    FILE_CHANGED = "file changed"
    NOTHING_READ = "nothing could be read"


class Reject(msgspec.Struct, frozen=True, omit_defaults=True, rename={"data": "bytes"}):
    """An unusable record, or a lost part of a file.

    Attributes:
        offset: Where the record begins, in bytes of the decompressed file; None in a format of
            rows.
        line: Its line, from 1; None if the lines before it were not counted.
        reason: The value of a RejectReason.
        data: The record's bytes, at most MAX_REJECT_BYTES of them.
        row: The record's row, from 0, in a format of rows.
        unit: If not None, the slice began at this stored byte, in the middle of a compressed file,
            and `offset` counts from there in the decompressed content.
        lost_bytes: Stored bytes of a damaged part of the file, at least 1; None for a record.
        lost_records: The records of this part, if the format shows it; not written.
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
    lost_bytes: int | None = None
    lost_records: int | None = None

    @staticmethod
    def of(
        file: str,
        reason: RejectReason,
        detail: str,
        data: bytes | memoryview = b"",
        total: int | None = None,
        **position: int | None,
    ) -> Reject:
        """Return a reject with the first MAX_REJECT_BYTES of the record."""
        if (lost := position.get("lost_bytes")) is not None:
            position["lost_bytes"] = max(1, lost)
        return Reject(
            file=file,
            reason=reason.value,
            detail=detail,
            data=bytes(data[:MAX_REJECT_BYTES]),
            bytes_total=len(data) if total is None else total,
            **{"offset": None, "line": None, **position},
        )

    @property
    def position(self) -> str:
        """The position of the record in its file, in words."""
        if self.row is not None:
            return f"row {self.row:,}"
        base = "" if self.unit is None else f" of the content from stored byte {self.unit:,} on"
        return f"byte {self.offset:,}{base}" if self.offset is not None else "the whole file"

    def to_json(self) -> JsonObject:
        row: JsonObject = msgspec.to_builtins(self)
        row.pop("lost_records", None)
        return row


class FileLoss(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The loss of one file, in stored bytes; also the row of a receipt and of a manifest.

    `positions` is the number of lost parts: each has one line in `__rejects/`. `records` is None
    unless the format shows the number of lost records.
    """

    file: str
    bytes: Count
    positions: Count
    records: Count | None = None


def add_losses(losses: Iterable[FileLoss]) -> tuple[FileLoss, ...]:
    """Return the losses with one entry a file, sorted by the files' names."""
    files: dict[str, list[FileLoss]] = {}
    for loss in losses:
        files.setdefault(loss.file, []).append(loss)

    def total(name: str) -> FileLoss:
        rows = files[name]
        sums = (sum(row.bytes for row in rows), sum(row.positions for row in rows))
        return FileLoss(name, *sums, lost_records(rows))

    return tuple(map(total, sorted(files)))


def lost_records(losses: Iterable[FileLoss]) -> int | None:
    """Return the number of lost records; None if it is unknown for a file."""
    counts = [loss.records for loss in losses]
    return sum(filter(None, counts)) if None not in counts else None


class RejectWriter(contextlib.ExitStack):
    """Writes rejects as JSON Lines and counts them. A context manager.

    The file appears when the block ends without an error, and only if there was a reject. `add` is
    the `on_reject` of `read_split`. Rejects after the first KEPT_BYTES are written without their
    bytes, so that `__rejects/` does not become a copy of the corpus.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self._losses: list[FileLoss] = []
        self._kept = 0
        self._storage = storage
        self._url = url
        self._stream: BinaryIO | None = None

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def losses(self) -> tuple[FileLoss, ...]:
        return add_losses(self._losses)

    def add(self, reject: Reject) -> None:
        if self._stream is None:
            self._stream = self.enter_context(self._storage.create(self._url))
        if self._kept + len(reject.data) > KEPT_BYTES:
            reject = msgspec.structs.replace(reject, data=b"")
        self._kept += len(reject.data)
        row = json.dumps(reject.to_json(), ensure_ascii=False)
        self._stream.write(row.encode() + b"\n")
        self.counts[reject.reason] += 1
        if reject.lost_bytes is not None:
            loss = FileLoss(reject.file, reject.lost_bytes, 1, reject.lost_records)
            self._losses.append(loss)


def names_in(row: Mapping[str, Any], text_field: str) -> str:
    """Return the missing field of a rejected JSON record, and its fields, for a message."""
    if row["reason"] != RejectReason.FIELD_MISSING.value or "row" in row:
        return ""
    sought = f": text_field {text_field!r} names no field"
    data = base64.b64decode(row["bytes"])
    try:
        record = json.loads(data)
    except ValueError:  # longer than what is kept of a record
        return sought
    above: list[str] = []
    for name in field_path(text_field)[:-1]:
        if not isinstance(record, dict) or name not in record:
            break
        record = record[name]
        above.append(name)
    within = f"its {'.'.join(above)!r}" if above else "it"
    if not isinstance(record, dict):
        return f"{sought}; {within} is no object"
    names = [repr(name) for name in record]
    has = list_few(names, _SHOWN_NAMES) if names else "no field at all"
    return f"{sought}; {within} has {has}"
